"""Keeps real keys out of everything the gateway says: answers, records, its own complaints."""

from __future__ import annotations

import io
from typing import TextIO

REDACTED = "[redacted]"
MIN_LENGTH = 6  # shorter "secrets" are words; replacing them would garble answers and hide nothing


class Redactor:
    """Replaces known secrets in text and bytes."""

    def __init__(self, secrets: list[str]) -> None:
        unique = {s for s in secrets if len(s) >= MIN_LENGTH}
        self._texts = sorted(unique, key=len, reverse=True)
        self._bytes = [s.encode() for s in self._texts]

    def text(self, text: str) -> str:
        """`text` without secrets."""
        for secret in self._texts:
            if secret in text:
                text = text.replace(secret, REDACTED)
        return text

    def bytes(self, data: bytes) -> bytes:
        """`data` without secrets; the same object when there are none, which is the usual case."""
        for secret in self._bytes:
            if secret in data:
                data = data.replace(secret, REDACTED.encode())
        return data


class RedactingStream(io.TextIOBase):
    """Stands in for sys.stderr: tracebacks and libraries' warnings may quote a request."""

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        self._line = ""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        # Whole lines: a secret may be split over two writes.
        self._line += text
        done, newline, rest = self._line.rpartition("\n")
        if newline:
            self._stream.write(self._redactor.text(done + newline))
            self._line = rest
        elif len(self._line) > 65536:
            self._stream.write(self._redactor.text(self._line))
            self._line = ""
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Says what is left; the stream below stays open."""
        self._stream.write(self._redactor.text(self._line))
        self._line = ""
        self._stream.flush()

"""Server-sent events, cut out of a byte stream."""

from __future__ import annotations

from dataclasses import dataclass

from sandboxes.model_proxy.faults import malformed

EVENT_LIMIT = 8 << 20


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its bytes as they came, with the blank line, and its joined `data`."""

    raw: bytes
    data: bytes


class Splitter:
    """Feed bytes, get whole events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that are complete now. Raises a Fault on an endless one."""
        data = self._rest + chunk
        if b"\r" in data:
            # A \r at the very end may be half of \r\n.
            tail = b"\r" if data.endswith(b"\r") else b""
            data = data[: len(data) - len(tail)].replace(b"\r\n", b"\n").replace(b"\r", b"\n") + tail
        *whole, self._rest = data.split(b"\n\n")
        if len(self._rest) > EVENT_LIMIT:
            raise malformed("The provider's stream holds an event without an end.")
        return [_event(text) for text in whole if text.strip(b"\n")]

    def end(self) -> list[Event]:
        """What was left when the stream ended without a last blank line."""
        text, self._rest = self._rest.strip(b"\r\n"), b""
        return [_event(text)] if text else []


def _event(text: bytes) -> Event:
    if text.startswith(b"data: ") and b"\n" not in text:
        return Event(text + b"\n\n", text[6:])
    lines = [line[5:].removeprefix(b" ") for line in text.split(b"\n") if line.startswith(b"data:")]
    return Event(text + b"\n\n", b"\n".join(lines))

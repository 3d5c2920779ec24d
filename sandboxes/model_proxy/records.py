"""JSON lines on stdout: what the worker learns about calls. A caller never has an answer that is not on record."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import orjson


class Records:
    """Collects the lines of one loop tick and writes them with one system call."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = fd
        self._loop = loop
        self._lines: list[bytes] = []
        self._written: asyncio.Future[None] | None = None

    def put(self, line: dict[str, Any]) -> asyncio.Future[None]:
        """Adds a line; the future is done when it is out."""
        self._lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        if self._written is None:
            self._written = self._loop.create_future()
            self._loop.call_soon(self.write)
        return self._written

    def write(self) -> None:
        """Writes what is collected. Blocks when nobody reads: calls that can't be accounted for must not go on."""
        data = memoryview(b"".join(self._lines))
        self._lines.clear()
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            os._exit(3)  # nobody keeps the account any more
        if self._written is not None:
            self._written.set_result(None)
            self._written = None

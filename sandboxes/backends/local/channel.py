"""sandboxd's end of the socket to a box's process 1: jobs in, their fates out."""

from __future__ import annotations

import array
import asyncio
import errno
import marshal
import os
import re
import socket
from collections.abc import Callable
from typing import Any

_INLINE = 100 << 10  # larger messages travel in a memfd
# Received descriptors are inheritable otherwise, and the next box would hold the listeners of this one.
_CLOEXEC = socket.MSG_CMSG_CLOEXEC
_LINE = re.compile(rb"(ready|listeners|gone (\d+)|exit (\d+) (\d+)|fail (\d+) (\d+))")


class Channel:
    """Sends marshalled dicts (the box never sends any: marshal is only safe towards it) and reads short ASCII lines."""

    def __init__(
        self, sock: socket.socket, on_line: Callable[[str, int, int], None], on_end: Callable[[], None]
    ) -> None:
        self._sock = sock
        self._sock.setblocking(False)
        self._on_line = on_line
        self._on_end = on_end
        self._lock = asyncio.Lock()
        self.listeners: list[socket.socket] = []
        asyncio.get_running_loop().add_reader(sock.fileno(), self._readable)

    async def send(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        """Raises BrokenPipeError when the box is gone. The descriptors stay the caller's to close."""
        data = marshal.dumps(message)
        extra: list[int] = []
        if len(data) > _INLINE:
            big = os.memfd_create("bw-message", os.MFD_CLOEXEC)
            left = memoryview(data)
            while left:
                left = left[os.write(big, left) :]
            extra, data = [big], marshal.dumps({"op": "memfd"})
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [*extra, *(fds or [])]))]
        try:
            async with self._lock:
                while True:
                    try:
                        self._sock.sendmsg([data], ancillary if extra or fds else [])
                        return
                    except BlockingIOError:
                        await asyncio.sleep(0.002)
                    except OSError as e:
                        raise BrokenPipeError(errno.EPIPE, "the box is gone") from e
        finally:
            for fd in extra:
                os.close(fd)

    def _readable(self) -> None:
        for _ in range(64):
            try:
                # Only the launcher passes descriptors; it does so once, before anything hostile runs.
                room = socket.CMSG_SPACE(64) if not self.listeners else 0
                data, ancillary, _, _ = self._sock.recvmsg(256, room, _CLOEXEC)
            except BlockingIOError:
                return
            except OSError:
                data, ancillary = b"", []
            if not data:
                self.close()
                self._on_end()
                return
            for level, kind, raw in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    numbers = array.array("i")
                    numbers.frombytes(raw[: len(raw) - len(raw) % 4])
                    self.listeners += [socket.socket(fileno=n) for n in numbers]
            match = _LINE.fullmatch(data)
            if match is None:
                continue
            word, _, _ = match[0].decode().partition(" ")
            numbers_ = [int(g) for g in match.groups()[1:] if g is not None]
            self._on_line(word, numbers_[0] if numbers_ else 0, numbers_[1] if len(numbers_) > 1 else 0)

    def close(self) -> None:
        """Closes the socket; the box's process 1 leaves when it notices."""
        if self._sock.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._sock.fileno())
            self._sock.close()

"""Pipes between sandboxd and the commands in a box, on the event loop and without threads."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable

PIPE_SIZE = 1 << 20
READ_SIZE = 256 << 10
_READS_PER_WAKE = 4


def new_pipe(uid: int, *, ours: int) -> tuple[int, int]:
    """(read, write); the end that is ours (0 or 1) does not block. It belongs to the boxes' user, so that a command may
    reopen it as /dev/stderr."""
    ends = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(ends[ours], False)
    if uid != os.geteuid():
        os.fchown(ends[0], uid, -1)
    try:
        fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    except OSError:
        pass  # an ordinary user has a budget for large pipes; the usual size works too
    return ends


class Reader:
    """Hands everything that comes out of a pipe to `sink`."""

    def __init__(self, fd: int, sink: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._sink = sink
        self._paused = False
        asyncio.get_running_loop().add_reader(fd, self._on_readable)

    def _on_readable(self) -> None:
        for _ in range(_READS_PER_WAKE):
            if not self._once():
                return

    def _once(self) -> bool:
        try:
            data = os.read(self._fd, READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.close()
            return False
        self._sink(data)
        return self._fd >= 0

    def drain(self) -> None:
        """Takes what is in the pipe now, then closes it: whoever still holds the other end is not waited for."""
        while self._fd >= 0 and self._once():
            pass
        self.close()

    def close(self) -> None:
        """Closes our end."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


class Writer:
    """Feeds a pipe. Bytes queue up in memory while the command does not read; `room` waits until it did."""

    LIMIT = 4 << 20

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue = bytearray()
        self._closing = False
        self._waiting = False
        self._room = asyncio.Event()
        self._room.set()

    def write(self, data: bytes) -> None:
        """Queues bytes; they are dropped when the command is gone."""
        if self._fd < 0 or self._closing:
            return
        self._queue += data
        self._push()

    async def room(self) -> None:
        """Waits until the queue is short again."""
        await self._room.wait()

    def end(self) -> None:
        """End of file, after what is queued."""
        self._closing = True
        self._push()

    def close(self) -> None:
        """Closes now and forgets the queue."""
        if self._fd >= 0:
            if self._waiting:
                asyncio.get_running_loop().remove_writer(self._fd)
                self._waiting = False
            os.close(self._fd)
            self._fd = -1
        self._queue.clear()
        self._room.set()

    def _push(self) -> None:
        if self._fd < 0:
            return
        try:
            while self._queue:
                with memoryview(self._queue) as view:
                    done = os.write(self._fd, view[: 1 << 20])
                del self._queue[:done]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if len(self._queue) > self.LIMIT:
            self._room.clear()
        else:
            self._room.set()
        loop = asyncio.get_running_loop()
        if self._queue and not self._waiting:
            loop.add_writer(self._fd, self._push)
            self._waiting = True
        elif not self._queue and self._waiting:
            loop.remove_writer(self._fd)
            self._waiting = False
        if not self._queue and self._closing:
            self.close()

"""One command, or one file operation, in a box: its pipes, its fate, and where its output goes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandboxes.backends.local.pipes import Reader, Writer, new_pipe
from sandboxes.vocabulary import ExecEnd

STDERR_TAIL = 64 << 10
SPOOL_LIMIT = 2 << 30


class Job:
    """What runs in a box. `done` is set once it ended; then `code`, `errno` or a `reason` other than exit tells why."""

    def __init__(
        self, number: int, uid: int, out: Callable[[bytes], None], err: Callable[[bytes], None], stdin: bool
    ) -> None:
        self.number = number
        self.started = time.monotonic()
        self.ended_at: float | None = None
        self.done = asyncio.Event()
        self.code: int | None = None
        self.errno: int | None = None
        self.reason: ExecEnd | None = None
        self.note = b""  # for people: why a limit killed it
        self._doom: ExecEnd | None = None
        out_r, out_w = new_pipe(uid, ours=0)
        err_r, err_w = new_pipe(uid, ours=0)
        self.remote = [out_w, err_w]
        self.names = "oe"
        self.stdin: Writer | None = None
        if stdin:
            in_r, in_w = new_pipe(uid, ours=1)
            self.remote.append(in_r)
            self.names += "i"
            self.stdin = Writer(in_w)
        self._readers = [Reader(out_r, out), Reader(err_r, err)]

    def handed_over(self) -> None:
        """The box has its ends now: closes ours of them."""
        for fd in self.remote:
            os.close(fd)
        self.remote = []

    def doom(self, why: ExecEnd, note: bytes = b"") -> None:
        """It is about to be killed for this reason; the first reason stays."""
        if self._doom is None and self.reason is None:
            self._doom = why
            self.note = note

    def finish(self, code: int | None = None, errno: int | None = None, reason: ExecEnd = ExecEnd.EXIT) -> None:
        """Its fate, told by the box (or by the box's end). Later news is ignored."""
        if self.reason is not None:
            return
        for reader in self._readers:
            reader.drain()
        if self.stdin:
            self.stdin.close()
        self.handed_over()
        self.reason = self._doom or reason
        self.code = code if self.reason is ExecEnd.EXIT else None
        self.errno = errno
        self.ended_at = time.monotonic()
        self.done.set()


class Collected:
    """Bytes up to a limit; the rest is counted and dropped, so that the command does not block on a full pipe."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self.limit = limit
        self.truncated = False

    def __call__(self, data: bytes) -> None:
        room = self.limit - len(self.data)
        if room >= len(data):
            self.data += data
            return
        self.data += data[: max(0, room)]
        self.truncated = True


class Tail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self.data = bytearray()

    def __call__(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > 2 * STDERR_TAIL:
            del self.data[:-STDERR_TAIL]

    def get(self) -> bytes:
        """At most 64 KiB."""
        return bytes(self.data[-STDERR_TAIL:])


class Spooled:
    """A command that outlives its client: stdout goes to a file outside the box, and any number of readers follow."""

    def __init__(self, exec_id: str, path: Path) -> None:
        self.id = exec_id
        self.size = 0
        self.tail = Tail()
        self.job: Job | None = None
        self.overflow: Callable[[], Any] | None = None
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._idle = False
        self._waiters: set[asyncio.Event] = set()

    def write(self, data: bytes) -> None:
        """The sink of the command's stdout."""
        if self.size >= SPOOL_LIMIT:
            return
        view = memoryview(data)
        try:
            while view:
                done = os.write(self._fd, view)
                self.size += done
                view = view[done:]
        except OSError as e:
            self._stop(f"[killed: its output cannot be stored: {e.strerror}]\n".encode())
        if self.size >= SPOOL_LIMIT:
            self._stop(f"[killed: more than {SPOOL_LIMIT >> 20} MiB of output]\n".encode())
        self.wake()

    def _stop(self, note: bytes) -> None:
        if self.job is not None and self.overflow is not None:
            self.job.doom(ExecEnd.KILLED, note)
            self.overflow()

    def read(self, offset: int, limit: int) -> bytes:
        """What is stored from `offset` on."""
        return os.pread(self._fd, limit, offset)

    def follow(self) -> asyncio.Event:
        """An event that is set on news; give it back to `unfollow`. Raises OSError when the box is gone."""
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        event = asyncio.Event()
        event.set()
        self._waiters.add(event)
        return event

    def unfollow(self, event: asyncio.Event) -> None:
        self._waiters.discard(event)
        self._close_if_idle()

    def wake(self) -> None:
        """Tells the followers."""
        for event in self._waiters:
            event.set()

    def ended(self) -> None:
        """Nothing more will be written: the file stays open only for those who read it."""
        self._idle = True
        self.wake()
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._idle and not self._waiters and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

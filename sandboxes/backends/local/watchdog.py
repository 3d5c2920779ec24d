"""Limits that no rlimit knows: the memory and disk of a whole box, and its deadline.

A box's biggest process is killed when the box holds more than it may; its command then ends with the reason in stderr.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from sandboxes.backends.local.box import Box
from sandboxes.backends.local.layers import disk_usage
from sandboxes.vocabulary import ExecEnd

_PAGE = os.sysconf("SC_PAGE_SIZE")
FAST, SLOW, IDLE = 0.1, 0.25, 1.0
DISK_SECONDS = 1.0


def tree(pid: int) -> list[int]:
    """All processes below `pid`."""
    out: list[int] = []
    todo = [pid]
    while todo:
        one = todo.pop()
        try:
            for tid in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{tid}/children", "rb") as f:
                    todo += map(int, f.read().split())
        except OSError:
            continue
        out.append(one)
    return out[1:]


def resident(pid: int) -> int:
    """Bytes of a process that are its own: pages of files, which the kernel can drop, are not counted."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as f:
            fields = f.read().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE


def shared_memory(init_pid: int) -> int:
    """Bytes in the box's /dev/shm, which belong to no process."""
    try:
        info = os.statvfs(f"/proc/{init_pid}/root/dev/shm")
    except OSError:
        return 0
    return (info.f_blocks - info.f_bfree) * info.f_frsize


class Watchdog:
    """Looks at one box for as long as it lives."""

    def __init__(self, box: Box, bury: Callable[[str], None]) -> None:
        self._box = box
        self._bury = bury
        self._next_disk = 0.0

    async def watch(self) -> None:
        """Returns when the box is dead."""
        box = self._box
        pause = SLOW
        while not box.dead.is_set():
            if time.time() >= box.deadline_at:
                self._bury("its deadline passed")
                return
            pause = IDLE
            if box.state == "running" and (box.jobs or box.lingering):
                busy = bool(box.jobs)
                share = self._look_at_memory()
                pause = (FAST if share > 0.5 else SLOW) if busy else IDLE
                if time.monotonic() >= self._next_disk:
                    await self._look_at_disk()
            # A command that starts while we rest is looked at soon, not after the rest.
            rest = box.dead if box.jobs else box.activity
            box.activity.clear()
            try:
                await asyncio.wait_for(rest.wait(), min(pause, max(0.01, box.deadline_at - time.time())))
            except TimeoutError:
                continue

    def _look_at_memory(self) -> float:
        """The share of the memory limit that is in use."""
        box = self._box
        limit = box.spec.size.memory_mb << 20
        sizes = {pid: resident(pid) for pid in tree(box.init_pid)}
        total = sum(sizes.values()) + shared_memory(box.init_pid)
        if total > limit and sizes:
            biggest = max(sizes, key=lambda pid: sizes[pid])
            note = f"[killed: the sandbox held {total >> 20} MiB of memory, its limit is {limit >> 20} MiB]\n"
            box.limit_hit = (time.monotonic(), note.encode())
            _kill(biggest, box.init_pid)
        return total / limit

    async def _look_at_disk(self) -> None:
        box = self._box
        started = time.monotonic()
        folders: list[Path] = [box.folder / name for name in ("upper", "tmp")]
        used = await asyncio.to_thread(disk_usage, folders)
        took = time.monotonic() - started
        self._next_disk = time.monotonic() + max(DISK_SECONDS, 20 * took)
        limit = box.spec.size.disk_mb << 20
        if used <= limit:
            return
        note = f"[killed: the sandbox holds {used >> 20} MiB on disk, its limit is {limit >> 20} MiB]\n".encode()
        for job in list(box.jobs.values()):
            await box.kill_job(job, ExecEnd.KILLED, note)


def _kill(pid: int, root: int) -> None:
    """Kills through a pidfd, after a second look: the number may have gone to somebody else meanwhile."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if pid in tree(root):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)

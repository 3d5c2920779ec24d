"""Limits that no rlimit knows: the memory and disk of a whole box, and its deadline.

A box's biggest process is killed when the box holds more than it may; its command then ends with the reason in stderr.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from sandboxes.backends.local.box import Box
from sandboxes.backends.local.layers import disk_usage

_PAGE = os.sysconf("SC_PAGE_SIZE")
FAST, SLOW, IDLE = 0.1, 0.25, 1.0
DISK_SECONDS = 1.0
MAX_STRIKES = 4

# A look at a process waits while that process changes its memory, which a hostile one can draw out: never in the loop.
_MEASURING = concurrent.futures.ThreadPoolExecutor(8, "measure")


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


def proportional(pid: int) -> int:
    """The same, with pages that forks share counted once among them all: exact, but slow, and not for all to see."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as f:
            lines = f.read().splitlines()
    except OSError:
        return resident(pid)
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")))


def shared_memory(init_pid: int) -> int:
    """Bytes in the box's /dev/shm, which belong to no process."""
    try:
        info = os.statvfs(f"/proc/{init_pid}/root/dev/shm")
    except OSError:
        return 0
    return (info.f_blocks - info.f_bfree) * info.f_frsize


def measure(init_pid: int, limit: int) -> tuple[dict[int, int], int]:
    """Bytes by process, and those of the whole box. Exact only when a first, cheap look finds more than the limit."""
    sizes = {pid: resident(pid) for pid in tree(init_pid)}
    shared = shared_memory(init_pid)
    if sum(sizes.values()) + shared > limit:
        sizes = {pid: proportional(pid) for pid in sizes}
    return sizes, sum(sizes.values()) + shared


class Watchdog:
    """Looks at one box for as long as it lives."""

    def __init__(self, box: Box, bury: Callable[[str], None]) -> None:
        self._box = box
        self._bury = bury
        self._next_disk = 0.0
        self._strikes = 0  # looks in a row that found too much memory

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
                share = await self._look_at_memory()
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

    async def _look_at_memory(self) -> float:
        """The share of the memory limit that is in use."""
        box = self._box
        limit = box.spec.size.memory_mb << 20
        loop = asyncio.get_running_loop()
        sizes, total = await loop.run_in_executor(_MEASURING, measure, box.init_pid, limit)
        if total > limit and sizes:
            biggest = max(sizes, key=lambda pid: sizes[pid])
            note = f"[killed: the sandbox held {total >> 20} MiB of memory, its limit is {limit >> 20} MiB]\n"
            box.limit_hit = (time.monotonic(), note.encode())
            self._strikes += 1
            if self._strikes > MAX_STRIKES:  # they multiply faster than they are killed one by one
                await box.kill_everything(note.encode())
            else:
                _kill(biggest, box.init_pid)
        else:
            self._strikes = 0
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
        await box.kill_everything(note)


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

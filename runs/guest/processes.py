"""Killing what a scorer left behind. Needs /proc; without it only the process group is reached."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable


def parents() -> dict[int, int]:
    """Every process that can be seen, with its parent."""
    out: dict[int, int] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return out
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name in brackets may hold anything, so count from its end.
                    fields = file.read().rpartition(b")")[2].split()
                out[int(name)] = int(fields[1])
            except (OSError, IndexError, ValueError):
                continue
    return out


def descendants(roots: Iterable[int], tree: dict[int, int], spare: set[int]) -> list[int]:
    """All processes under `roots`, without what is in or under `spare`."""
    children: dict[int, list[int]] = {}
    for pid, parent in tree.items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    seen: set[int] = set(spare)
    stack = list(roots)
    while stack:
        for pid in children.get(stack.pop(), ()):
            if pid not in seen:
                seen.add(pid)
                found.append(pid)
                stack.append(pid)
    return found


def kill_orphans(spare: set[int], seconds: float = 2.0) -> None:
    """Kill everything below this process but the runners in `spare`; again while they multiply."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        found = descendants([os.getpid()], parents(), spare)
        if not found:
            return
        # Stopped first: a process that forks as fast as it is killed does not while it stands still.
        for kind in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                try:
                    os.kill(pid, kind)
                except OSError:
                    continue
        for pid in found:
            try:
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                continue
        time.sleep(0.005)


def cpu_ticks(pid: int, tid: int) -> int:
    """Processor time of one thread in clock ticks, or -1."""
    try:
        with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError):
        return -1

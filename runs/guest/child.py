"""One runner process, seen from the supervisor: start it, watch it, say why it died."""

from __future__ import annotations

import os
import re
import signal
import time

from . import board as b
from .board import Board, InFlight, Record
from .impl import PR_SET_PDEATHSIG, prctl
from .job import Job, Tasks
from .processes import cpu_ticks
from .runner import Plan, child_main

STALE_SECONDS = 2.0
SAMPLE_SECONDS = 0.5
HOSTAGE_GRACE = 1.0
GRACE = 10.0

_CURRENT_THREAD = re.compile(rb"Current thread (0x[0-9a-f]+)")


class Child:
    """A forked runner and what was learned about it."""

    def __init__(self, job: Job, tasks: Tasks, plan: Plan, log_write: int, close_in_child: list[int]) -> None:
        self.job = job
        self.plan = plan
        self.board = Board(plan.slots)
        self.fault_fd = _scratch_fd()
        self.started = time.monotonic()
        self.status: int | None = None
        self.why_killed = ""
        self.draining = False
        self.guilty_by_kill: InFlight | None = None
        self._stale_since = 0.0
        self._ticks: dict[int, int] = {}
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setpgid(0, 0)
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
                    signal.signal(number, signal.SIG_DFL)
                for fd in close_in_child:
                    os.close(fd)
                child_main(job, self.board, tasks, plan, log_write, self.fault_fd)
            finally:
                os._exit(4)

    def records(self) -> list[Record]:
        """New frames; a runner that spoiled the ring is killed."""
        try:
            return self.board.drain()
        except b.Broken as error:
            self.kill(f"it wrote into the frames: {error}")
            return []

    def drain(self) -> None:
        """Let it finish what it has begun, and take nothing new."""
        self.draining = True
        self.board.stop()

    def kill(self, why: str) -> None:
        """End the process and its group at once."""
        if self.status is None and not self.why_killed:
            self.why_killed = why
        for target in (-self.pid, self.pid):
            try:
                os.kill(target, signal.SIGKILL)
            except OSError:
                continue

    def watch(self, now: float) -> None:
        """Kill the runner when it hangs in a way that it cannot end itself."""
        beat, _, state = self.board.header()
        if state == b.IMPORTING:
            if now - self.started > self.job.import_seconds:
                self.kill(f"importing the scorer took over {self.job.import_seconds:g} s")
            return
        stale = now - beat > STALE_SECONDS
        flights = [f for f in self.board.in_flight() if f.phase != b.WAIT]
        if not stale:
            self._stale_since = 0.0
        elif not self._stale_since:
            self._stale_since = now
            self._ticks = {f.tid: cpu_ticks(self.pid, f.tid) for f in flights}
        over = [f for f in flights if now - f.since > self._limit(f) + (HOSTAGE_GRACE if stale else GRACE)]
        over = [f for f in over if f.phase != b.CALL] or over
        if not over:
            return
        if stale and now - self._stale_since < SAMPLE_SECONDS:
            return
        if stale:
            self.guilty_by_kill = self._holder(flights) or (over[0] if len(flights) == 1 else None)
            self._ask_where()
        elif len(over) == 1:
            self.guilty_by_kill = over[0]
        self.kill("a task held the whole process past its time")

    def _ask_where(self) -> None:
        """Have the stacks of all threads written down; the process may be beyond that."""
        try:
            os.kill(self.pid, signal.SIGUSR2)
        except OSError:
            return
        time.sleep(0.05)

    def _limit(self, flight: InFlight) -> float:
        return self.job.score_seconds if flight.phase == b.SCORE else self.job.attempt_seconds

    def _holder(self, flights: list[InFlight]) -> InFlight | None:
        """Who holds the interpreter lock: the one thread that burnt processor time while nothing else moved."""
        spent = {tid: cpu_ticks(self.pid, tid) - ticks for tid, ticks in self._ticks.items() if ticks >= 0}
        if not spent:
            return None
        tid = max(spent, key=lambda t: spent[t])
        mine = [f for f in flights if f.tid == tid]
        busy = spent[tid] * 2 > sum(spent.values()) and spent[tid] > 5
        return mine[0] if busy and len(mine) == 1 else None

    def guilty(self, flights: list[InFlight]) -> InFlight | None:
        """The task that took the process down, where that can be told."""
        _, exit_slot, _ = self.board.header()
        if self.guilty_by_kill is not None:
            wanted = [f for f in flights if f.item == self.guilty_by_kill.item]
            return wanted[0] if wanted else None
        if self.why_killed:
            return None
        for flight in flights:
            if flight.slot == exit_slot:
                return flight
        found = _CURRENT_THREAD.search(self.fault_text())
        if found:
            matches = [f for f in flights if f.ident == int(found.group(1), 16)]
            if len(matches) == 1:
                return matches[0]
        suspects = [f for f in flights if f.phase in (b.THINK, b.SCORE)]
        if self.plan.alone and flights:
            return flights[0]
        return suspects[0] if len(suspects) == 1 and len(flights) == 1 else None

    def fault_text(self) -> bytes:
        """What faulthandler wrote when the process crashed."""
        return os.pread(self.fault_fd, 1 << 20, 0)

    def trace(self) -> str | None:
        """Where the guilty thread was, as far as it is known."""
        text = self.fault_text().decode("utf-8", "replace")
        if self.guilty_by_kill is not None:
            _, found, text = text.partition(f"hread 0x{self.guilty_by_kill.ident:016x} ")
            text = text.partition("\n\n")[0].partition("\n")[2] if found else ""
        return text[:2000] or None

    def death(self) -> str:
        """How it ended, in words."""
        if self.why_killed:
            return self.why_killed
        status = self.status or 0
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
            return f"the process was killed by {name}" + (" (out of memory?)" if number == signal.SIGKILL else "")
        return f"the process exited with code {os.WEXITSTATUS(status)}"

    def close(self) -> None:
        """Give back what it held."""
        os.close(self.fault_fd)
        self.board.close()


def _scratch_fd() -> int:
    if hasattr(os, "memfd_create"):
        try:
            return os.memfd_create("fault", os.MFD_CLOEXEC)
        except OSError:
            pass
    import tempfile

    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


def reap(children: dict[int, Child]) -> list[Child]:
    """Runners that ended since the last call; orphans that ended are reaped on the way."""
    ended: list[Child] = []
    seen: set[int] = set()
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except OSError:
            return ended
        if pid == 0 or pid in seen:
            return ended
        seen.add(pid)
        child = children.get(pid)
        if child is not None:
            child.status = status
            ended.append(child)

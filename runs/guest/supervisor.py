"""The parent: hands tasks to runner processes, passes their frames on, and outlives whatever a scorer does.

It never imports the scorer. When a runner dies, the task that did it gets its error, answers that had come in are
scored again without a model call, and calls that were outstanding are made again with the next key.

    both    solve and score in one process: the ordinary case
    solve, score    apart, once scoring has killed several processes: then a crash costs no outstanding call
    alone   one task by itself: when it was near several deaths and nobody can tell who did it, or when the box had
            no process or thread left for it; then the others wait, and fewer run side by side afterwards
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from . import board as b
from .board import InFlight
from .child import Child, reap
from .impl import PR_SET_CHILD_SUBREAPER, prctl
from .job import Job, Tasks
from .processes import kill_orphans
from .runner import Plan
from .verdict import failed_line, result_line

ALONE_AT_ONCE = 4
SCORERS_APART = 8
SPLIT_AFTER = 3
MAX_INTERRUPTIONS = 2
MAX_IDLE_DEATHS = 3
MAX_DOUBTS = 50
WATCH_SECONDS = 0.1


def crash_error(child: Child, where: str) -> dict[str, Any]:
    """Why a task has no score: it took its process down, or held it past its time."""
    hang = child.guilty_by_kill is not None
    return {
        "kind": "timeout" if hang else "crash",
        "type": "Timeout" if hang else "Crash",
        "message": child.death() + where,
        "trace": child.trace(),
    }


class Supervisor:
    """One job from start to done."""

    def __init__(self, job: Job, out_fd: int) -> None:
        self.job = job
        self.out_fd = out_fd
        self.tasks = Tasks(job.tasks)
        self.done = bytearray(len(self.tasks))
        self.left = len(self.tasks)
        self.attempts: dict[int, int] = {}
        self.answers: dict[int, bytes] = {}
        self.interruptions: dict[int, int] = {}
        self.crowded: list[int] = []
        self.concurrency = job.concurrency
        self.false_starts: dict[int, int] = {}
        self.apart: list[int] = []
        self.children: dict[int, Child] = {}
        self.owner: dict[int, int] = {}
        self.score_deaths = 0
        self.idle_deaths = 0
        self.doubts = 0
        self.imported = False
        self.stopping = False
        self.out: list[bytes] = []
        self.log_read, self.log_write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.log_read, False)
        self.log_left = job.log_bytes
        self.fatal: dict[str, Any] | None = None

    def run(self) -> int:
        """Everything; returns the exit code: 0 done, 1 nobody reads, 3 the scorer cannot be imported."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGTERM, lambda *_: self.stop())
        signal.signal(signal.SIGINT, lambda *_: self.stop())
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        self.frame({"t": "start", "tasks": len(self.tasks), "python": sys.version.split()[0]})
        try:
            self._loop()
        except BrokenPipeError:
            return 1
        finally:
            for child in self.children.values():
                child.kill("the job ended")
            kill_orphans(set())
        self._read_log()
        done: dict[str, Any] = {"t": "done"}
        if self.left:
            done["left"] = self.left
        if self.stopping:
            done["stopped"] = True
        self.frame(done)
        self.flush()
        return 3 if self.fatal else 0

    def stop(self) -> None:
        """Nothing new; what is in flight may end. A second time: at once."""
        if self.stopping:
            for child in self.children.values():
                child.kill("stopped")
        self.stopping = True
        for child in self.children.values():
            child.board.stop()

    def frame(self, frame: dict[str, Any]) -> None:
        """Print one frame with the next batch."""
        self.out.append(json.dumps(frame).encode("ascii") + b"\n")

    def flush(self) -> None:
        """One write for all frames that are ready. Raises BrokenPipeError."""
        if self.out:
            data = memoryview(b"".join(self.out))
            self.out.clear()
            while data:
                data = data[os.write(self.out_fd, data) :]

    # The loop.

    def _loop(self) -> None:
        poll = select.poll()
        poll.register(self.log_read, select.POLLIN)
        poll.register(0, select.POLLIN)
        wait = 1.0
        watched = 0.0
        while self.left and not self.fatal:
            self._fill()
            if not self.children:
                break
            moved = False
            ended = reap(self.children)
            for child in list(self.children.values()):
                moved = self._take(child) or moved
            for child in ended:
                moved = True
                self._bury(child)
            self.flush()
            now = time.monotonic()
            if now - watched > WATCH_SECONDS:
                watched = now
                for child in self.children.values():
                    child.watch(now)
            # Frames come by shared memory, without a wake-up: look often while they come, rarely while they do not.
            wait = 2.0 if moved else min(wait * 1.5, 20.0)
            for fd, _ in poll.poll(wait):
                if fd == 0:
                    if not self._command():
                        poll.unregister(0)
                else:
                    self._read_log()
        if self.fatal:
            self._report_fatal(self.fatal)
        self.flush()

    def _fill(self) -> None:
        """Start the runners that there is work for."""
        if self.stopping:
            return
        if self.crowded:
            # Only when nobody else is there does a full box say something about the task.
            if not self.children:
                self._start_alone(self.crowded.pop(0))
            return
        alone = sum(1 for c in self.children.values() if c.plan.alone)
        while self.apart and alone < ALONE_AT_ONCE:
            alone += self._start_alone(self.apart.pop(0))
        modes = {c.plan.mode for c in self.children.values() if not c.plan.alone}
        if self.score_deaths < SPLIT_AFTER:
            if not modes:
                self._start_for(self._open_items(), "both")
        elif "both" not in modes:
            if "solve" not in modes:
                self._start_for([i for i in self._open_items() if i not in self.answers], "solve")
            if "score" not in modes:
                self._start_for(self._open_items(list(self.answers)), "score")

    def _start_alone(self, item: int) -> bool:
        if self.done[item]:
            return False
        self._start(Plan([item], dict(self.attempts), self._answers([item]), "both", 1, True))
        return True

    def _open_items(self, among: Sequence[int] | None = None) -> list[int]:
        apart = {*self.apart, *self.crowded}
        items = range(len(self.tasks)) if among is None else among
        return [i for i in items if not self.done[i] and i not in self.owner and i not in apart]

    def _start_for(self, items: list[int], mode: str) -> None:
        if items:
            most = SCORERS_APART if mode == "score" else self.concurrency
            concurrency = max(1, min(self.concurrency, most, len(items)))
            self._start(Plan(items, dict(self.attempts), self._answers(items), mode, concurrency, False))

    def _answers(self, items: list[int]) -> dict[int, bytes]:
        return {i: self.answers[i] for i in items if i in self.answers}

    def _start(self, plan: Plan) -> None:
        close = [self.out_fd, self.log_read]
        for attempt in range(20):
            try:
                child = Child(self.job, self.tasks, plan, self.log_write, close)
                break
            except BlockingIOError:
                # No process to be had: a scorer's children may fill the box.
                kill_orphans(set(self.children))
                time.sleep(0.05 * attempt)
        else:
            self.fatal = {"kind": "crash", "type": "NoProcess", "message": "the sandbox has no room for a process"}
            return
        self.children[child.pid] = child
        self.owner.update(dict.fromkeys(plan.items, child.pid))

    def _take(self, child: Child) -> bool:
        """Pass a runner's frames on and remember what they mean."""
        records = child.records()
        for kind, item, attempt, body in records:
            if kind == b.FATAL:
                # Later on it is the box that is full, not the scorer that is wrong.
                if not self.imported and not any(c.board.header()[2] != b.IMPORTING for c in self.children.values()):
                    self.fatal = json.loads(body)
                continue
            if item >= len(self.done) or self.done[item]:
                continue
            if kind == b.RESPONSE:
                self.answers[item] = body
                self.out.append(body)
                if child.plan.mode == "solve":
                    self.owner.pop(item, None)
            elif kind == b.RESULT:
                self._settle(item, body)
            elif kind == b.FAILED:
                self.attempts[item] = attempt + 1
                self.out.append(body)
            elif kind == b.CROWDED:
                self._try_alone(item, attempt, self.crowded)
                if not child.draining:
                    self.concurrency = max(1, child.plan.concurrency // 2)
                    for other in self.children.values():
                        other.drain()
            elif self.doubts >= MAX_DOUBTS:
                self._settle(item, body)
            else:
                self.doubts += 1
                self._try_alone(item, attempt, self.apart)
        return bool(records)

    def _settle(self, item: int, line: bytes) -> None:
        if not self.done[item]:
            self.done[item] = 1
            self.left -= 1
            self.idle_deaths = 0
            self.owner.pop(item, None)
            self.answers.pop(item, None)
            self.out.append(line)

    def _try_alone(self, item: int, attempt: int, queue: list[int]) -> None:
        if item not in self.answers:
            self.attempts[item] = attempt + 1
        self.owner.pop(item, None)
        if item not in queue:
            queue.append(item)

    # After a death.

    def _bury(self, child: Child) -> None:
        """A runner ended: settle what it was doing, and let the rest go on."""
        self._take(child)
        _, _, state = child.board.header()
        flights = [f for f in child.board.in_flight() if 0 <= f.item < len(self.done) and not self.done[f.item]]
        del self.children[child.pid]
        for item in child.plan.items:
            if self.owner.get(item) == child.pid:
                del self.owner[item]
        kill_orphans(set(self.children))
        if not self.stopping and not self.fatal:
            self._settle_death(child, flights, state)
        child.close()

    def _settle_death(self, child: Child, flights: list[InFlight], state: int) -> None:
        self.imported = self.imported or state != b.IMPORTING
        if not self.imported:
            self.fatal = {
                "kind": "crash",
                "type": "ImportCrash",
                "message": f"the scorer cannot be imported: {child.death()}",
                "trace": child.trace(),
            }
            return
        if child.status == 0 and state in (b.ENDED, b.RECYCLE) and not child.why_killed:
            if not child.plan.alone:
                self._interrupt(flights, set(), "its process was replaced")
        else:
            self._blame(child, flights)
        left = [i for i in child.plan.items if not self.done[i]]
        if child.plan.alone:
            for item in left:
                self._settle_alone(item, child, began=bool(flights))
        elif not flights and state != b.RECYCLE and not child.draining:
            if child.plan.mode == "solve":
                left = [i for i in left if i not in self.answers]
            left = [i for i in left if i not in self.apart and i not in self.crowded and i not in self.owner]
            self._count_idle_death(child, left)

    def _settle_alone(self, item: int, child: Child, *, began: bool) -> None:
        """Nobody else was there, so it is guilty; unless its process never came to it, in a box that is full."""
        starts = self.false_starts[item] = self.false_starts.get(item, 0) + 1
        if began or starts > MAX_IDLE_DEATHS:
            self._convict(item, self.attempts.get(item, 1), crash_error(child, ""))
        else:
            time.sleep(0.1 * starts)
            self.apart.append(item)

    def _count_idle_death(self, child: Child, left: list[int]) -> None:
        """A runner that ended with work left and nobody to blame: not for ever."""
        self.idle_deaths += bool(left)
        time.sleep(0.1 * bool(left))
        if self.idle_deaths >= MAX_IDLE_DEATHS:
            for item in left:
                self._convict(item, self.attempts.get(item, 1), crash_error(child, "; no task was in flight"))

    def _blame(self, child: Child, flights: list[InFlight]) -> None:
        guilty = child.guilty(flights)
        words = child.death()
        suspects: set[int] = set()
        if guilty is not None:
            self.score_deaths += guilty.phase == b.SCORE
            where = ", in score" if guilty.phase == b.SCORE else ", in solve"
            self._convict(guilty.item, guilty.attempt, crash_error(child, where))
        else:
            suspects = {f.item for f in flights if f.phase in (b.THINK, b.SCORE)}
            self.score_deaths += any(f.phase == b.SCORE for f in flights)
            suspects = suspects or {f.item for f in flights}
        if child.plan.alone:
            return
        self._interrupt([f for f in flights if not self.done[f.item]], suspects, words)

    def _convict(self, item: int, attempt: int, error: dict[str, Any]) -> None:
        task = self.tasks[item]
        self._settle(item, result_line(task["index"], task.get("trial", 0), attempt, error=error))

    def _interrupt(self, flights: list[InFlight], suspects: set[int], words: str) -> None:
        """Innocent, or not proven guilty: run again, alone where one more death would say nothing."""
        for flight in flights:
            item = flight.item
            count = self.interruptions[item] = self.interruptions.get(item, 0) + 1
            if item not in self.answers and flight.phase != b.SCORE:
                task = self.tasks[item]
                error = {
                    "kind": "crash",
                    "type": "Interrupted",
                    "message": f"{words} while this task was in flight; it runs again",
                    "trace": None,
                }
                self.out.append(failed_line(task["index"], task.get("trial", 0), flight.attempt, error))
                self.attempts[item] = flight.attempt + 1
            if (item in suspects or count >= MAX_INTERRUPTIONS) and item not in self.apart:
                self.apart.append(item)

    def _report_fatal(self, error: dict[str, Any]) -> None:
        """The scorer is no use at all: every task says so, the trace is told once."""
        if error.get("trace"):
            self.frame({"t": "log", "text": str(error["trace"])[:4000]})
        short = {**error, "trace": None}
        for item in range(len(self.tasks)):
            if not self.done[item]:
                self._convict(item, self.attempts.get(item, 1), short)

    # Words in and out.

    def _read_log(self) -> None:
        """Pass the scorer's prints on up to the limit; what is over it is read and dropped."""
        for _ in range(16):
            try:
                data = os.read(self.log_read, 65536)
            except BlockingIOError:
                return
            if not data:
                return
            if self.log_left > 0:
                text = data[: self.log_left].decode("utf-8", "replace")
                self.log_left -= len(data)
                if self.log_left <= 0:
                    text += "\n… more was printed; the log ends here"
                self.frame({"t": "log", "text": text})

    def _command(self) -> bool:
        """One chunk of standard input; False at its end."""
        try:
            data = os.read(0, 65536)
        except OSError:
            return False
        for line in data.splitlines():
            try:
                command = json.loads(line)
            except ValueError:
                continue
            if isinstance(command, dict) and command.get("op") == "stop" and not self.stopping:
                self.stop()
        return bool(data)

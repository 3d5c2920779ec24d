"""The process that holds the scorer: workers that solve and score, and a monitor that watches their clocks.

It may die at any moment, by the scorer's hand or the supervisor's. Whatever must outlive it goes through the board.
"""

from __future__ import annotations

import collections
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import NamedTuple

from . import board as b
from .attempt import Attempts, Slot
from .board import Board
from .impl import is_async, limit_memory, load_impl, prefer_oom_victim
from .job import Job, Tasks
from .monitor import Monitor, slot_on_stack
from .output import flush_output, redirect_output
from .verdict import TaskTimeout, error_dict

# A deep recursion needs stack, and all stacks together count against the memory limit.
ALL_STACKS = 256 << 20

_real_exit = os._exit


class Plan(NamedTuple):
    """What one runner process is to do: `mode` is "both", "solve" or "score"; `alone`: a suspect by itself."""

    items: Sequence[int]
    attempts: dict[int, int]
    answers: dict[int, bytes]
    mode: str
    concurrency: int
    alone: bool

    @property
    def slots(self) -> int:
        """Workers and the spare ones that replace those lost to a hang."""
        return self.concurrency + max(4, min(32, self.concurrency))


class Runner:
    """Everything of one runner process."""

    def __init__(self, job: Job, board: Board, tasks: Tasks, plan: Plan) -> None:
        self.job = job
        self.board = board
        self.tasks = tasks
        self.plan = plan
        self.todo: collections.deque[int] = collections.deque(plan.items)
        self.slots: list[Slot] = []
        self.lost = 0
        self.working = 0
        self.draining = False
        self.forked = False
        self.forks = 0
        self.loop_ident = 0
        self.finished = threading.Event()
        self.lock = threading.Lock()
        self.attempts: Attempts

    def start_slot(self) -> Slot | None:
        """A slot for one more worker, or None when there is no room."""
        with self.lock:
            if len(self.slots) >= self.board.slots:
                return None
            slot = Slot(len(self.slots))
            self.slots.append(slot)
            self.working += 1
            return slot

    def leave(self, slot: Slot) -> None:
        """A worker ends. One that was given up is not counted: its replacement is."""
        if self.forked:
            _real_exit(0)
        with self.lock:
            if slot.abandoned:
                return
            slot.abandoned = True
            self.working -= 1
            if self.working == 0:
                self.finished.set()

    def next_item(self, slot: Slot) -> int | None:
        """The next task for a worker, or None."""
        if self.forked:
            # A scorer forked and came back: this copy must not go on as if it were us.
            _real_exit(0)
        if slot.abandoned or self.draining or self.board.stopping():
            return None
        try:
            return self.todo.popleft()
        except IndexError:
            return None

    def work(self, slot: Slot) -> None:
        """One thread: tasks until there are none."""
        try:
            self.board.thread(slot.number, threading.get_ident(), threading.get_native_id())
            slot.ident = threading.get_ident()
            while True:
                item = self.next_item(slot)
                if item is None:
                    break
                self.attempts.run_safely(slot, item)
        except TaskTimeout:
            pass
        finally:
            self.leave(slot)

    def spawn(self) -> bool:
        """One more worker thread; False when the system or the board has no room."""
        slot = self.start_slot()
        if slot is None:
            return False
        try:
            threading.Thread(target=self.work, args=(slot,), daemon=True).start()
        except RuntimeError:
            self.leave(slot)
            return False
        return True

    def run_threads(self) -> None:
        """All workers as threads; a runner with one worker uses the main thread, where signals work."""
        threading.Thread(target=Monitor(self, self.spawn).run, daemon=True).start()
        if self.plan.concurrency == 1:
            slot = self.start_slot()
            assert slot is not None
            self.work(slot)
        else:
            for _ in range(min(self.plan.concurrency, len(self.todo))):
                self.spawn()
        if self.working:
            self.finished.wait()


def child_main(job: Job, board: Board, tasks: Tasks, plan: Plan, log_fd: int, fault_fd: int) -> None:
    """The whole life of a runner process, after the fork. Never returns."""
    try:
        _settle_in(board, plan, job, log_fd, fault_fd)
        runner = Runner(job, board, tasks, plan)
        _guard_exits(runner)
        try:
            impl = load_impl(job.impl, job.path)
        except BaseException as error:
            fatal = error_dict(error, "memory" if isinstance(error, MemoryError) else "scorer")
            fatal["message"] = f"the scorer cannot be imported: {fatal['message']}"[:2000]
            import json

            board.publish(b.FATAL, 0, 0, json.dumps(fatal).encode("ascii") + b"\n")
            _real_exit(3)
        board.set_state(b.RUNNING)
        runner.attempts = Attempts(runner, impl)
        if is_async(impl.solve):
            from .async_work import run_async

            run_async(runner)
        else:
            runner.run_threads()
        flush_output()
        board.set_state(b.ENDED)
        _real_exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        _real_exit(4)


def _settle_in(board: Board, plan: Plan, job: Job, log_fd: int, fault_fd: int) -> None:
    redirect_output(log_fd)
    faulthandler.enable(file=fault_fd, all_threads=False)
    # Answered even while a scorer holds the interpreter lock: where it hangs can be told before it is killed.
    faulthandler.register(signal.SIGUSR2, file=fault_fd, all_threads=True)
    stack = min(8 << 20, max(1 << 20, ALL_STACKS // plan.slots)) & ~0xFFFF
    threading.stack_size(stack)
    prefer_oom_victim()
    limit_memory(job.memory_mb, plan.slots + 8, stack)
    board.beat()


def _guard_exits(runner: Runner) -> None:
    pid = os.getpid()

    def in_child() -> None:
        runner.forked = True

    def in_parent() -> None:
        runner.forks += 1

    def guarded(status: int) -> None:
        """os._exit, which first says which task asked for it."""
        if os.getpid() == pid:
            ident = threading.get_ident()
            on_loop = slot_on_stack(sys._getframe()) if ident == runner.loop_ident else None
            for slot in runner.slots:
                if (slot is on_loop or slot.ident == ident) and slot.item >= 0 and not slot.abandoned:
                    runner.board.note_exit(slot.number)
        _real_exit(status)

    os.register_at_fork(after_in_child=in_child, after_in_parent=in_parent)
    os._exit = guarded  # type: ignore[assignment]

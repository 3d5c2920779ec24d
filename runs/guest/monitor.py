"""Ends what is over its time, from inside the runner, without hurting its siblings where that is possible.

A Python loop is broken by an exception thrown into its thread; a sleeping thread is given up and replaced. Only what
holds the interpreter lock is left to the supervisor, which must kill the whole process.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import board as b
from .attempt import Slot
from .verdict import TaskTimeout, shown_frames

if TYPE_CHECKING:
    from .runner import Runner

BEAT_SECONDS = 0.1
STUCK_SECONDS = 1.0
UNKNOWN_BLOCKER = 71

_real_exit = os._exit


def slot_on_stack(frame: Any) -> Slot | None:
    """The slot whose coroutine runs in this stack."""
    while frame is not None:
        if frame.f_code.co_name == "work_async":
            slot = frame.f_locals.get("slot")
            if isinstance(slot, Slot):
                return slot
        frame = frame.f_back
    return None


def throw(ident: int) -> None:
    """Raise TaskTimeout in a thread: ends a loop of Python code; a sleep or a read goes on as a lost thread."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(TaskTimeout))


class Monitor:
    """One thread that watches every slot's clock. `replace` starts one more worker."""

    def __init__(self, runner: Runner, replace: Callable[[], bool]) -> None:
        self.runner = runner
        self.replace = replace
        self.loop_beat = time.monotonic()
        self._thrown_at = 0.0
        self._over = 0

    def run(self) -> None:
        """Until the process ends."""
        runner = self.runner
        last = time.monotonic()
        while True:
            runner.board.beat()
            now = time.monotonic()
            stalled, last = now - last - 3 * BEAT_SECONDS, now
            blocked = bool(runner.loop_ident) and self._loop_is_blocked(now)
            for flight in runner.board.in_flight():
                slot = runner.slots[flight.slot]
                limit = runner.job.score_seconds if flight.phase == b.SCORE else slot.seconds
                # A call in flight ends by its own socket; only a stuck one is ended here.
                grace = 0.5 if flight.phase == b.CALL and not runner.loop_ident else 0.0
                if stalled > 0:
                    # Nothing could run meanwhile: one task's work is not its siblings' time. Bounded, for the one.
                    slot.forgiven = min(limit, slot.forgiven + min(stalled, now - flight.since))
                if flight.phase != b.WAIT and now - flight.since > limit + grace + slot.forgiven:
                    self._over_time(slot, flight, now, blocked)
            if runner.draining and all(s.abandoned or s.item < 0 for s in runner.slots):
                self._end(b.RECYCLE)
            if runner.finished.is_set():
                # The main thread may be the one that hangs.
                self._over += 1
                if self._over > 5:
                    self._end(b.ENDED)
            time.sleep(BEAT_SECONDS)

    def _loop_is_blocked(self, now: float) -> bool:
        """Whether some coroutine keeps the loop from turning; then only that one may be blamed for the time."""
        if now - self.loop_beat < 3 * BEAT_SECONDS:
            self._thrown_at = 0.0
            return False
        if self._thrown_at and now - self._thrown_at > STUCK_SECONDS:
            # The exception did not free the loop. Its task is reported already; its siblings run again.
            self._end(b.RECYCLE)
        running = slot_on_stack(sys._current_frames().get(self.runner.loop_ident))
        if running is not None and running.abandoned and not self._thrown_at:
            self._thrown_at = now
            throw(self.runner.loop_ident)
        return True

    def _over_time(self, slot: Slot, flight: b.InFlight, now: float, blocked: bool) -> None:
        if slot.item != flight.item:
            return
        if blocked and flight.phase != b.SCORE:
            running = slot_on_stack(sys._current_frames().get(self.runner.loop_ident))
            if running is None and not self._thrown_at and now - self.loop_beat > STUCK_SECONDS:
                # A task of the scorer's own blocks the loop: nobody here can tell whose it is.
                _real_exit(UNKNOWN_BLOCKER)
            if running is not slot:
                return
            self._thrown_at = self._thrown_at or now
        if slot.take_claim():
            self._expire(slot, flight, now - flight.since, blocked)

    def _expire(self, slot: Slot, flight: b.InFlight, seconds: float, blocked: bool) -> None:
        """Report the task and give its worker up; from here on nothing it says is heard."""
        runner = self.runner
        error = {
            "kind": "timeout",
            "type": "Timeout",
            "message": f"{'score' if flight.phase == b.SCORE else 'solve'} was not done after {seconds:.1f} s",
            "trace": self._trace(slot, flight, blocked),
        }
        with runner.lock:
            was_working, slot.abandoned = not slot.abandoned, True
        if slot.trial is not None:
            scoring = flight.phase == b.SCORE
            # A sibling's os.fork copies the pipes of a subprocess, which then never end for the one who reads them.
            doubtful = scoring and runner.forks != slot.forks
            runner.attempts.expired(slot.trial, error, retry=not scoring, doubtful=doubtful)
        runner.board.phase(slot.number, b.IDLE)
        if slot.task is not None and flight.phase != b.SCORE and not blocked:
            slot.task.get_loop().call_soon_threadsafe(slot.task.cancel)
        else:
            ident = runner.loop_ident if slot.task is not None and flight.phase != b.SCORE else slot.ident
            throw(ident)
        if was_working:
            self._replace_worker()

    def _replace_worker(self) -> None:
        runner = self.runner
        replaced = self.replace()
        with runner.lock:
            runner.working -= 1
            if not replaced:
                runner.draining = True
            if runner.working == 0 and not runner.todo:
                runner.finished.set()

    def _trace(self, slot: Slot, flight: b.InFlight, blocked: bool) -> str | None:
        try:
            if slot.task is not None and flight.phase != b.SCORE and not blocked:
                return shown_frames(traceback.StackSummary.extract((f, f.f_lineno) for f in slot.task.get_stack()))
            ident = self.runner.loop_ident if blocked and flight.phase != b.SCORE else slot.ident
            return shown_frames(traceback.extract_stack(sys._current_frames()[ident], limit=12))
        except Exception:
            return None

    def _end(self, state: int) -> None:
        """End this process; after RECYCLE the supervisor starts another with what is left."""
        self.runner.board.set_state(state)
        _real_exit(0)

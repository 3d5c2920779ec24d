"""Workers as coroutines on one loop, for scorers with `async def solve`; scoring goes to threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import time
from typing import TYPE_CHECKING

from . import board as b
from .attempt import Slot, Trial
from .monitor import BEAT_SECONDS, Monitor
from .output import flush_output
from .sut import Loop
from .verdict import TaskTimeout

if TYPE_CHECKING:
    from .runner import Runner

_real_exit = os._exit


def run_async(runner: Runner) -> None:
    """All workers until there is nothing left."""
    try:
        asyncio.run(_main(runner))
    except BaseException:
        # An exception meant for one task hit the loop itself: what is left goes on in a new process.
        runner.board.set_state(b.RECYCLE)
        _real_exit(0)


async def _main(runner: Runner) -> None:
    loop = asyncio.get_running_loop()
    runner.attempts.loop = Loop(runner.attempts.endpoint, loop)
    runner.loop_ident = threading.get_ident()
    ended = asyncio.Event()
    workers: list[asyncio.Task[None]] = []
    # Spare threads, because one that hangs in score is lost.
    pool = concurrent.futures.ThreadPoolExecutor(runner.plan.slots)

    def in_thread(slot: Slot, trial: Trial) -> None:
        runner.board.thread(slot.number, threading.get_ident(), threading.get_native_id())
        try:
            runner.attempts.score(slot, trial)
        except TaskTimeout:
            pass
        finally:
            slot.ident = 0

    async def score(slot: Slot, trial: Trial) -> None:
        runner.board.phase(slot.number, b.WAIT)
        await loop.run_in_executor(pool, in_thread, slot, trial)

    async def work_async(slot: Slot) -> None:
        slot.task = asyncio.current_task()
        runner.board.thread(slot.number, runner.loop_ident, threading.get_native_id())
        try:
            while True:
                item = runner.next_item(slot)
                if item is None:
                    break
                await runner.attempts.run_async(slot, item, score)
        except (TaskTimeout, asyncio.CancelledError):
            pass
        finally:
            runner.leave(slot)
            if runner.finished.is_set():
                ended.set()

    def start(slot: Slot) -> None:
        workers.append(loop.create_task(work_async(slot)))

    def replace() -> bool:
        slot = runner.start_slot()
        if slot is None:
            return False
        loop.call_soon_threadsafe(start, slot)
        return True

    monitor = Monitor(runner, replace)

    async def tick() -> None:
        while True:
            monitor.loop_beat = time.monotonic()
            if runner.finished.is_set():
                ended.set()
            await asyncio.sleep(BEAT_SECONDS)

    ticking = loop.create_task(tick())
    for _ in range(min(runner.plan.concurrency, len(runner.todo))):
        slot = runner.start_slot()
        if slot is not None:
            start(slot)
    if not workers:
        return
    threading.Thread(target=monitor.run, daemon=True).start()
    await ended.wait()
    ticking.cancel()
    flush_output()
    runner.board.set_state(b.ENDED)
    _real_exit(0)

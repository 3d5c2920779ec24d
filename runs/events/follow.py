"""Events of a run as they land: read what is there, wait for the database's wake-up, read again.

One LISTEN connection serves all streams of a web process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import psycopg
from asgiref.sync import sync_to_async
from django.db import connection

from runs.events.log import LogRow, read
from runs.models import Run
from runs.vocabulary import RunStatus

log = logging.getLogger(__name__)
PAGE = 500
HEARTBEAT_SECONDS = 15.0
CHANNEL = "trace_events"


class _Wakes:
    """Listens once for this event loop and wakes whoever waits for a run."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def of(self, run_id: UUID) -> AsyncIterator[asyncio.Event]:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        woken, key = asyncio.Event(), str(run_id)
        self._waiting.setdefault(key, set()).add(woken)
        try:
            yield woken
        finally:
            self._waiting[key].discard(woken)
            if not self._waiting[key]:
                del self._waiting[key]
            if not self._waiting and self._task is not None:
                self._task.cancel()  # nobody waits: the connection goes back
                self._task = None

    async def _listen(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(**_parameters(), autocommit=True) as conn:
                    await conn.execute(f"LISTEN {CHANNEL}")
                    self._wake_all()  # whatever came while nobody listened
                    async for note in conn.notifies():
                        for woken in self._waiting.get(note.payload.partition(":")[0], ()):
                            woken.set()
            except psycopg.Error as e:
                log.warning("the database is away, streams wait: %s", e)
                await asyncio.sleep(1)

    def _wake_all(self) -> None:
        for waiting in self._waiting.values():
            for woken in waiting:
                woken.set()


def _parameters() -> dict[str, Any]:
    params = connection.get_connection_params()
    return {
        k: v for k, v in params.items() if k in {"dbname", "host", "port", "user", "password", "sslmode", "sslrootcert"}
    }


_BY_LOOP: dict[int, _Wakes] = {}


def _wakes() -> _Wakes:
    return _BY_LOOP.setdefault(id(asyncio.get_running_loop()), _Wakes())


async def follow(run_id: UUID, after: int) -> AsyncIterator[list[LogRow] | None]:
    """Batches of events with seq > after, for ever; None is a heartbeat. Ends after the events of an ended run."""
    async with _wakes().of(run_id) as woken:
        while True:
            woken.clear()
            rows, over = await _next(run_id, after)
            if rows:
                after = rows[-1].seq
                yield rows
                continue
            if over:
                return
            try:
                await asyncio.wait_for(woken.wait(), HEARTBEAT_SECONDS)
            except TimeoutError:
                yield None


@sync_to_async
def _next(run_id: UUID, after: int) -> tuple[list[LogRow], bool]:
    # The status first: an event that lands in between is then read by the next turn, never lost.
    status, head = Run.objects.values_list("status", "next_seq").get(pk=run_id)
    rows = list(read(run_id, after=after, limit=PAGE))
    last = rows[-1].seq if rows else after
    return rows, status != RunStatus.RUNNING and last >= head - 1

"""The only code that writes the log. Writers take turns on the run's row, which hands out `seq`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from django.db import connection, transaction

from benchwright.lib.canonical import canonical, jsonb_text
from benchwright.lib.clock import now, stamp
from runs.errors import StaleWorker
from runs.events.chain import canonical_body, link
from runs.events.types.base import Event
from runs.events.types.union import EVENT_TYPES
from runs.projections import apply


@dataclass(frozen=True)
class LogRow:
    """One event as read: `data` is exact (parsed from the text), `event` is None for a type this version doesn't
    know.
    """

    seq: int
    type: str
    data: dict[str, Any]
    at: datetime
    digest: str

    @property
    def event(self) -> Event | None:
        cls = EVENT_TYPES.get(self.type)
        return msgspec.convert({"type": self.type, **self.data}, cls) if cls else None


def append(run_id: UUID, events: Sequence[Event], *, epoch: int | None = None) -> int:
    """Adds events in one transaction and projects them; returns the seq of the last.

    `epoch`: the worker's lease; an append under an older lease raises StaleWorker and writes nothing. Verbs of the web
    pass None: they may append whoever works.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT next_seq, head_digest, lease_epoch FROM traces WHERE id = %s FOR UPDATE", [run_id])
        row = cursor.fetchone()
        if row is None:
            raise StaleWorker("The run is gone.")
        seq, head, current = row
        if epoch is not None and epoch != current:
            raise StaleWorker(f"Lease {epoch} has ended; the run is under lease {current}.")
        first = seq
        at = now()
        text_at = stamp(at)
        datas: list[tuple[int, str, dict[str, Any]]] = []
        with cursor.copy("COPY trace_events (run_id, seq, type, body, data, digest, created_at) FROM STDIN") as copy:
            for event in events:
                kind = type(event).__name__
                data = msgspec.to_builtins(event)
                del data["type"]  # the row has it
                data_text = canonical(data)
                body = canonical_body(seq, kind, text_at, data_text)
                head = link(head, body)
                copy.write_row((run_id, seq, kind, body, jsonb_text(data_text), head, at))
                datas.append((seq, kind, data))
                seq += 1
        cursor.execute("UPDATE traces SET next_seq = %s, head_digest = %s WHERE id = %s", [seq, head, run_id])
        if seq > first:
            apply.project(cursor, run_id, datas, at)
        return seq - 1


def read(
    run_id: UUID,
    *,
    after: int = -1,
    before: int | None = None,
    types: Iterable[str] | None = None,
    without: Iterable[str] | None = None,
    limit: int | None = None,
    newest_first: bool = False,
) -> Iterator[LogRow]:
    """Events with seq > after (and < before), in order. `types` keeps only these; `without` leaves these out."""
    where = "run_id = %s AND seq > %s"
    values: list[Any] = [run_id, after]
    if before is not None:
        where, values = where + " AND seq < %s", [*values, before]
    if types is not None:
        where, values = where + " AND type = ANY(%s)", [*values, list(types)]
    if without is not None:
        where, values = where + " AND NOT type = ANY(%s)", [*values, list(without)]
    order = "DESC" if newest_first else "ASC"
    tail = f" LIMIT {int(limit)}" if limit is not None else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT seq, type, body, created_at, digest FROM trace_events WHERE {where} ORDER BY seq {order}{tail}",
            values,
        )
        for seq, kind, body, at, digest in cursor.fetchall():
            yield LogRow(seq, kind, json.loads(body)["data"], at, digest)


def read_one(run_id: UUID, seq: int) -> LogRow | None:
    """The event at `seq`, or None."""
    return next(iter(read(run_id, after=seq - 1, limit=1)), None)


def read_at(run_id: UUID, seqs: Sequence[int]) -> list[LogRow]:
    """The events at these places."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq, type, body, created_at, digest FROM trace_events"
            " WHERE run_id = %s AND seq = ANY(%s) ORDER BY seq",
            [run_id, list(seqs)],
        )
        return [LogRow(s, k, json.loads(b)["data"], at, d) for s, k, b, at, d in cursor.fetchall()]


def cost_of(run_id: UUID, *, before: int) -> Decimal:
    """Dollars of known cost that the events with seq < before brought."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum((data->'usage'->>'cost_usd')::numeric), 0) FROM trace_events"
            " WHERE run_id = %s AND seq < %s AND jsonb_typeof(data->'usage') = 'object'",
            [run_id, before],
        )
        return Decimal(cursor.fetchone()[0])


def raw(run_id: UUID, *, page: int = 5000) -> Iterator[tuple[int, str, str]]:
    """(seq, text, digest) of the whole log, in pages: for export and for checking the chain."""
    after = -1
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT seq, body, digest FROM trace_events WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s",
                [run_id, after, page],
            )
            rows = cursor.fetchall()
        yield from rows
        if len(rows) < page:
            return
        after = rows[-1][0]

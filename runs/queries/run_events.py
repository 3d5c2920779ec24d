"""Pages of a run's log, with each event in a line of words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from billing.models import Account
from runs.events.log import LogRow, read
from runs.events.words import in_words
from runs.queries.access import visible_run


@dataclass(frozen=True)
class EventView:
    """One event as the page shows it. `inherited`: it belongs to the parent of a fork."""

    seq: int
    type: str
    at: datetime
    summary: str
    data_json: str
    inherited: bool = False


def event_page(
    account: Account | None,
    user: Any,
    run_id: UUID | str,
    *,
    after: int | None = None,
    before: int | None = None,
    types: Iterable[str] | None = None,
    limit: int = 200,
) -> list[EventView]:
    """In order of seq. With `after` the next ones; else the newest, or the newest below `before`. Raises NotFound."""
    run = visible_run(account, run_id)
    if after is not None:
        rows = list(read(run.pk, after=after, types=types, limit=limit))
    else:
        rows = list(read(run.pk, before=before, types=types, limit=limit, newest_first=True))[::-1]
    return [view(row) for row in rows]


def view(row: LogRow) -> EventView:
    """The event in words, with its data as readable JSON."""
    return EventView(
        row.seq,
        row.type,
        row.at,
        in_words(row.type, row.data),
        json.dumps(row.data, indent=2, ensure_ascii=True, sort_keys=True),
    )

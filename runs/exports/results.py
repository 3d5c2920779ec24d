"""The results of a run's latest sweep, from its log: one for each trial, in the order in which they were settled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from runs.events.bodies import unfold_body
from runs.events.log import LogRow, read
from runs.models import Run

PAGE = 500
FIELDS = (
    "index",
    "trial",
    "invocation",
    "outcome",
    "score",
    "attempts",
    "extracted",
    "rule",
    "no_answer",
    "target",
    "prompt",
    "response",
    "finish_reason",
    "latency_ms",
    "score_ms",
    "score_meta",
    "error",
)
BODIES = ("prompt", "response", "target", "extracted", "score_meta", "error")


def results(run: Run) -> Iterator[dict[str, Any]]:
    """Each trial with `FIELDS`, `seq`, `at` and `usage` (dollars as text; null is unknown). Long texts are whole again,
    or {"blob": …} where they are no longer stored.
    """
    waiting: dict[tuple[int, int], Any] = {}
    for row in _pages(run.pk, ("MaterializeResponse", "MaterializeTaskResult")):
        data = row.data
        if data["invocation"] != run.invocation:
            continue
        place = (data["index"], data["trial"])
        if row.type == "MaterializeResponse":
            waiting[place] = data["usage"]  # a response that is kept before it is scored carries the usage
            continue
        out = {name: finite(unfold_body(data[name])) if name in BODIES else data[name] for name in FIELDS}
        out.update(seq=row.seq, at=row.at, usage=data["usage"] or waiting.pop(place, None))
        yield out


def finite(value: Any) -> Any:
    """The same JSON value with NaN and infinities as text: JSON has no word for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [finite(v) for v in value]
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    return value


def verdicts(run: Run) -> dict[int, dict[str, Any]]:
    """What became of each task, by index."""
    return {
        row.data["index"]: row.data
        for row in _pages(run.pk, ("MaterializeTaskAggregated",))
        if row.data["invocation"] == run.invocation
    }


def _pages(run_id: UUID, types: tuple[str, ...]) -> Iterator[LogRow]:
    """Events of these types, never more than a page of them in memory."""
    after = -1
    while page := list(read(run_id, after=after, types=types, limit=PAGE)):
        yield from page
        after = page[-1].seq

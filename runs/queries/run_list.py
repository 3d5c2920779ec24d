"""My runs: filtered, newest first, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from benchwright.lib.errors import BenchwrightError
from billing.models import Account
from registry.models import Benchmark
from runs.models import Run
from runs.queries.run_detail import cost_view, model_view, score_of
from runs.vocabulary import KILL_REASONS, PAUSE_REASON, WAIT_REASONS, DisplayStatus, RunStatus

PAGE = 50


@dataclass(frozen=True)
class RunRow:
    """One run in a list."""

    id: UUID
    title: str
    display_status: str
    model_label: str
    control: bool
    benchmark_name: str
    accuracy: float | None
    low: float | None
    high: float | None
    n: int
    settled: int
    total: int
    cost_usd: Decimal | None
    created_at: datetime
    duration_ms: float | None


@dataclass(frozen=True)
class RunListPage:
    """`next_cursor`: hand it back for the next page; None on the last."""

    rows: list[RunRow]
    runs: list[Run]
    next_cursor: str | None


def run_list(account: Account | None, filters: Mapping[str, Any] | None = None, *, limit: int = PAGE) -> RunListPage:
    """`filters`: q, status, benchmark, subset, impl, model, group, visibility, cursor; empty ones are ignored."""
    given = {k: v for k, v in (filters or {}).items() if v}
    query = Run.objects.filter(account=account).select_related("account") if account else Run.objects.none()
    query = _filtered(query, given)
    if cursor := given.get("cursor"):
        try:
            query = query.filter(pk__lt=UUID(str(cursor)))
        except ValueError:
            raise BenchwrightError(
                "That cursor is not one of ours.", code="bad_cursor", field="cursor", hint="Start again without it."
            ) from None
    runs = list(query.order_by("-pk")[: limit + 1])
    more, runs = len(runs) > limit, runs[:limit]
    names = dict(
        Benchmark.objects.filter(pk__in={r.benchmark_id for r in runs if r.benchmark_id}).values_list("id", "name")
    )
    return RunListPage([_row(r, names) for r in runs], runs, str(runs[-1].pk) if more else None)


def _filtered(query: QuerySet[Run], given: dict[str, Any]) -> QuerySet[Run]:
    for name, column in (
        ("benchmark", "benchmark_id"),
        ("subset", "subset_id"),
        ("impl", "impl_id"),
        ("group", "run_group"),
        ("visibility", "visibility"),
        ("model", "model__identifier"),
    ):
        if name in given:
            query = query.filter(**{column: given[name]})
    if text := given.get("q"):
        query = query.filter(
            Q(title__icontains=text) | Q(model__identifier__icontains=text) | Q(benchmark_id__icontains=text)
        )
    if status := given.get("status"):
        query = query.filter(_status(str(status)))
    return query


def _status(status: str) -> Q:
    if status not in set(DisplayStatus):
        raise BenchwrightError(
            f"There is no status {status!r}.", field="status", hint=f"Known: {', '.join(DisplayStatus)}."
        )

    def reasons(*prefixes: str) -> Q:
        out = Q()
        for prefix in prefixes:
            out |= Q(halt_reason__startswith=prefix)
        return Q(halted=True) & out

    if status in set(RunStatus):
        return Q(halted=False, status=status)
    known = {"killed": reasons(*KILL_REASONS), "paused": reasons(PAUSE_REASON), "waiting": reasons(*WAIT_REASONS)}
    return known.get(status) or (Q(halted=True) & ~known["killed"] & ~known["paused"] & ~known["waiting"])


def _row(run: Run, names: dict[str, str]) -> RunRow:
    score, model = score_of(run), model_view(run)
    settled = run.tasks_passed + run.tasks_failed + run.tasks_errored
    return RunRow(
        id=run.pk,
        title=run.title,
        display_status=run.display_status.value,
        model_label=model.label,
        control=model.control,
        benchmark_name=names.get(run.benchmark_id or "", ""),
        accuracy=score.accuracy if score else None,
        low=score.low if score else None,
        high=score.high if score else None,
        n=score.n if score else 0,
        settled=settled,
        total=run.tasks_selected or 0,
        cost_usd=cost_view(run).incurred,
        created_at=run.created_at,
        duration_ms=(run.finished_at - run.created_at).total_seconds() * 1000 if run.finished_at else None,
    )

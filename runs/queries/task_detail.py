"""One task of a run: its trials, with prompt, response, target and what the proxy measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from benchwright.lib.errors import NotFound
from billing.models import Account
from runs.events.bodies import unfold_body
from runs.events.log import read_at
from runs.models import Run, TaskRow
from runs.queries.access import visible_run


@dataclass(frozen=True)
class TrialView:
    """One trial as the log has it."""

    trial: int
    seq: int
    attempts: int
    score: float | None
    outcome: str
    extracted: Any
    rule: str | None
    no_answer: str | None
    finish_reason: str | None
    prompt: Any
    response: Any
    target: Any
    meta: Any
    usage: dict[str, Any] | None
    latency_ms: float | None
    score_ms: float | None
    error: dict[str, Any] | None
    calls: int | None


@dataclass(frozen=True)
class TaskDetail:
    """One task of the latest invocation. `previous`, `next`: the neighbours that have a result."""

    index: int
    invocation: int
    outcome: str
    score: float | None
    aggregator: str
    trials: list[TrialView]
    previous: int | None
    next: int | None


def task_detail(account: Account | None, user: Any, run_id: UUID | str, index: int) -> TaskDetail:
    """Raises NotFound when the run can't be seen or the task has no result yet."""
    run = visible_run(account, run_id)
    row = TaskRow.objects.filter(run_id=run.pk, invocation=run.invocation, index=index).first()
    if row is None:
        raise NotFound(
            f"Task {index} of this run has no result yet.",
            code="unknown_task",
            hint="It may not be selected, or not have begun.",
        )
    return TaskDetail(
        index=index,
        invocation=row.invocation,
        outcome=row.outcome,
        score=row.score,
        aggregator=run.trials_config["aggregator"]["name"],
        trials=trials_of(run, row),
        previous=_neighbour(run, index, before=True),
        next=_neighbour(run, index, before=False),
    )


def trials_of(run: Run, row: TaskRow) -> list[TrialView]:
    """The trials of one task, read from the log in order of trial."""
    seqs = {t["seq"]: t for t in row.trials}
    out = []
    for event in read_at(run.pk, list(seqs)):
        d = event.data
        out.append(
            TrialView(
                trial=d["trial"],
                seq=event.seq,
                attempts=d["attempts"],
                score=d["score"],
                outcome=d["outcome"],
                extracted=unfold_body(d["extracted"]),
                rule=d["rule"],
                no_answer=d["no_answer"],
                finish_reason=d["finish_reason"],
                prompt=unfold_body(d["prompt"]),
                response=unfold_body(d["response"]),
                target=unfold_body(d["target"]),
                meta=unfold_body(d["score_meta"]),
                usage=d["usage"],
                latency_ms=d["latency_ms"],
                score_ms=d["score_ms"],
                error=d["error"],
                calls=d["calls"],
            )
        )
    return sorted(out, key=lambda t: t.trial)


def _neighbour(run: Run, index: int, *, before: bool) -> int | None:
    rows = TaskRow.objects.filter(run_id=run.pk, invocation=run.invocation)
    rows = rows.filter(index__lt=index).order_by("-index") if before else rows.filter(index__gt=index).order_by("index")
    return rows.values_list("index", flat=True).first()

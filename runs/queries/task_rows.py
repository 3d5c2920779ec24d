"""The tasks of a run as a table, page by page: for people without the map and for those who want the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from billing.models import Account
from runs.events.log import read
from runs.models import TaskRow
from runs.queries.access import visible_run
from runs.queries.run_detail import task_summary

PAGE = 200
OUTCOMES = {"p": "pass", "f": "fail", "e": "err", "r": "running"}


@dataclass(frozen=True)
class TaskLine:
    """One task. `outcome`: its sign, `.` when it has not begun. `trial_scores`: None where there was no score."""

    index: int
    outcome: str
    score: float | None
    trial_scores: list[float | None]
    latency_ms: float | None


@dataclass(frozen=True)
class TaskTable:
    """One page of the table, with the counts of the whole."""

    title: str
    rows: list[TaskLine]
    page: int
    pages: int
    counts: dict[str, int]
    selected: int


def task_table(account: Account | None, user: Any, run_id: UUID | str, outcome: str = "", page: int = 1) -> TaskTable:
    """`outcome`: p, f, e, r, or empty for all selected tasks. Raises NotFound for a stranger."""
    run = visible_run(account, run_id)
    summary = task_summary(run, {row.type: row.data for row in read(run.pk, types=("DatasetTasksArtifact",))})
    signs = summary.outcomes
    wanted = [i for i, sign in enumerate(signs) if (sign == outcome if outcome else sign != "-")]
    pages = max(1, -(-len(wanted) // PAGE))
    page = min(max(page, 1), pages)
    here = wanted[(page - 1) * PAGE : page * PAGE]
    found = TaskRow.objects.filter(run_id=run.pk, invocation=run.invocation, index__in=here)
    rows = {row.index: row for row in found}
    return TaskTable(
        title=run.title,
        rows=[_line(i, signs[i], rows.get(i)) for i in here],
        page=page,
        pages=pages,
        counts={sign: signs.count(sign) for sign in OUTCOMES},
        selected=summary.selected,
    )


def _line(index: int, sign: str, row: TaskRow | None) -> TaskLine:
    if row is None:
        return TaskLine(index, sign, None, [], None)
    scores = [trial.get("score") for trial in sorted(row.trials, key=lambda trial: trial.get("trial", 0))]
    return TaskLine(index, sign, row.score, scores, row.latency_ms)

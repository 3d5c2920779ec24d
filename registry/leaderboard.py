"""The leaderboard of a subset: one row for each model, from the summaries of finished runs.

One statement, and the work grows with the number of models, not of runs: it hops from model to model along an index and
takes one run of each. Only the mean reads every run of its ruler.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from benchwright.lib.errors import BenchwrightError
from registry.directory import wilson
from registry.models import Subset
from registry.ranking import Measured, Place, places
from registry.vocabulary import BoardBy, BoardRuns

# A run is ranked when it took every task and could score this share of them. Errors are outside the accuracy, so a run
# that errs on the hard tasks would otherwise lead.
SCORED_SHARE = 0.99
MOST_MODELS = 2000
COUNTED_RUNS = 50  # from there on the number of runs is "50 or more"


@dataclass(frozen=True)
class BoardRow:
    """One model's run (or mean of runs). `n` tasks have a score; `coverage` = n / tasks of the subset, at most 1.

    `runs`: how many runs the model has here, counted up to COUNTED_RUNS. `cost_usd` None is unknown; for a mean it is
    the mean cost of a run. `whole`: it took every task and scored enough of them. `place` None: not ranked.
    """

    model_key: str
    model_label: str
    control: bool
    run_id: UUID
    account_id: int
    impl_id: str | None
    comparability_key: str
    accuracy: float
    low: float | None
    high: float | None
    n: int
    errored: int
    coverage: float
    cost_usd: Decimal | None
    finished_at: dt.datetime
    runs: int
    whole: bool
    place: Place | None = None

    @property
    def measured(self) -> Measured:
        return Measured(self.accuracy, self.low, self.high)


@dataclass(frozen=True)
class Board:
    """`rows` ranked, best first; `partial`: too few tasks scored to be ranked, the widest first; `controls`: reference
    lines. `rulers`: comparability keys of the ranked rows, most used first; more than one is a mixed board.
    """

    subset_id: str
    tasks: int
    of: BoardRuns
    by: BoardBy
    impl: str | None
    ruler: str | None
    rows: list[BoardRow]
    partial: list[BoardRow]
    controls: list[BoardRow]
    rulers: list[tuple[str, int]]

    @property
    def mixed(self) -> bool:
        return len(self.rulers) > 1


def leaderboard(
    subset: Subset,
    *,
    of: BoardRuns = BoardRuns.PUBLIC,
    account_id: int | None = None,
    by: BoardBy = BoardBy.BEST,
    impl: str | None = None,
    ruler: str | None = None,
) -> Board:
    """The board of a subset that the caller may see. `of=own` needs the account.

    A mean without a ruler takes the one that most models' best runs share. Raises BenchwrightError for a mean over one
    impl alone: two runs of one impl may still differ in tasks and trials.
    """
    if of is BoardRuns.OWN and account_id is None:
        raise BenchwrightError("Sign in to see your own runs.", code="not_signed_in", status=401)
    if by is BoardBy.MEAN and impl:
        raise BenchwrightError(
            "A mean is taken over one comparability key, not over an impl.",
            code="invalid_request",
            field="impl",
            hint="Leave impl out; key says which ruler.",
        )
    tasks = subset.snapshot.count if subset.snapshot else 0
    where: dict[str, Any] = {"subset_id": subset.id}
    where |= {"visibility": "public"} if of is BoardRuns.PUBLIC else {"account_id": account_id}
    if by is BoardBy.MEAN and not ruler:
        best = _ranked(_rows(where, tasks)) if tasks else []
        ruler = _rulers(best)[0][0] if best else ""
    where |= {"impl_id": impl} if impl else {}
    where |= {"comparability_key": ruler} if ruler or by is BoardBy.MEAN else {}
    found = list(_means(where, tasks) if by is BoardBy.MEAN else _rows(where, tasks)) if tasks else []
    ranked = _ranked(found)
    partial = [row for row in found if not row.control and not row.whole]
    return Board(
        subset_id=subset.id,
        tasks=tasks,
        of=of,
        by=by,
        impl=impl,
        ruler=ruler,
        rows=ranked,
        partial=sorted(partial, key=lambda row: (-row.coverage, -row.accuracy, row.model_key)),
        controls=sorted((r for r in found if r.control and r.whole), key=lambda r: -r.accuracy),
        rulers=_rulers(ranked),
    )


def _ranked(found: Iterable[BoardRow]) -> list[BoardRow]:
    rows = [row for row in found if not row.control and row.whole]
    rows.sort(key=lambda row: (-row.accuracy, row.model_key))
    return [replace(row, place=p) for row, p in zip(rows, places([r.measured for r in rows]), strict=True)]


def _rulers(rows: list[BoardRow]) -> list[tuple[str, int]]:
    return Counter(row.comparability_key for row in rows).most_common()


def _needed(tasks: int) -> int:
    return max(1, math.ceil(SCORED_SHARE * tasks))


COLUMNS = """s.run_id, s.account_id, s.model_key, s.model->>'label' AS label, s.model->>'identifier' AS identifier,
    s.model->>'source' AS source, s.impl_id, s.comparability_key, s.accuracy, s.passed, s.failed, s.errored,
    s.cost_model, s.finished_at"""

# {where} holds equalities of columns alone; the values are parameters.
BEST = """
WITH RECURSIVE models(model_key) AS (
  (SELECT s.model_key FROM benchmark_run_summaries s WHERE {where} ORDER BY s.model_key LIMIT 1)
  UNION ALL
  SELECT (SELECT s.model_key FROM benchmark_run_summaries s
          WHERE {where} AND s.model_key > models.model_key ORDER BY s.model_key LIMIT 1)
  FROM models WHERE models.model_key IS NOT NULL
)
SELECT best.*, counted.runs
FROM (SELECT model_key FROM models WHERE model_key IS NOT NULL LIMIT %(most)s) models
CROSS JOIN LATERAL (
  SELECT count(*) AS runs FROM (SELECT FROM benchmark_run_summaries s
    WHERE {where} AND s.model_key = models.model_key LIMIT %(counted)s) capped
) counted
CROSS JOIN LATERAL (
  (SELECT {columns}, true AS whole FROM benchmark_run_summaries s
   WHERE {where} AND s.model_key = models.model_key
     AND s.passed + s.failed >= %(needed)s AND s.selected >= %(tasks)s
   ORDER BY s.accuracy DESC, s.finished_at LIMIT 1)
  UNION ALL
  (SELECT {columns}, false FROM benchmark_run_summaries s
   WHERE {where} AND s.model_key = models.model_key
     AND (s.passed + s.failed) < %(tasks)s AND (s.passed + s.failed < %(needed)s OR s.selected < %(tasks)s)
   ORDER BY (s.passed + s.failed) DESC LIMIT 1)
) best
"""

MEAN = """
SELECT {columns}, true AS whole, means.runs, means.mean, means.n, means.cost
FROM (
  SELECT s.model_key, count(*) AS runs, avg(s.accuracy) AS mean, min(s.passed + s.failed) AS n,
    CASE WHEN count(s.cost_model) = count(*) THEN avg(s.cost_model) END AS cost
  FROM benchmark_run_summaries s
  WHERE {where} AND s.passed + s.failed >= %(needed)s AND s.selected >= %(tasks)s
  GROUP BY s.model_key LIMIT %(most)s
) means
CROSS JOIN LATERAL (
  SELECT * FROM benchmark_run_summaries s WHERE {where} AND s.model_key = means.model_key
    AND s.passed + s.failed >= %(needed)s AND s.selected >= %(tasks)s
  ORDER BY s.accuracy DESC, s.finished_at LIMIT 1
) s
"""


def statement(form: str, columns: list[str]) -> str:
    """The SQL of BEST or MEAN for these columns of equality; its parameters are named after them."""
    where = " AND ".join(f"s.{name} = %({name})s" for name in columns)
    return form.format(where=f"{where} AND s.status = 'ok' AND s.accuracy IS NOT NULL", columns=COLUMNS)


def parameters(where: dict[str, Any], tasks: int) -> dict[str, Any]:
    """What the statement takes."""
    return {**where, "tasks": tasks, "needed": _needed(tasks), "most": MOST_MODELS, "counted": COUNTED_RUNS}


def _fetch(form: str, where: dict[str, Any], tasks: int) -> Iterator[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement(form, list(where)), parameters(where, tasks))
        names = [column.name for column in cursor.description or ()]
        for values in cursor.fetchall():
            yield dict(zip(names, values, strict=True))


def _rows(where: dict[str, Any], tasks: int) -> Iterator[BoardRow]:
    for found in _fetch(BEST, where, tasks):
        n = found["passed"] + found["failed"]
        low, high = wilson(found["passed"], n) if n > 1 else (None, None)
        yield _row(found, tasks, accuracy=found["accuracy"], low=low, high=high, n=n, cost=found["cost_model"])


def _means(where: dict[str, Any], tasks: int) -> Iterator[BoardRow]:
    for found in _fetch(MEAN, where, tasks):
        # The runs asked the same tasks: n stays the number of tasks, more runs make no narrower interval.
        n, mean = found["n"], found["mean"]
        low, high = wilson(mean * n, n) if n > 1 else (None, None)
        cost = None if found["cost"] is None else Decimal(found["cost"])
        yield _row(found, tasks, accuracy=mean, low=low, high=high, n=n, cost=cost)


def _row(
    found: dict[str, Any],
    tasks: int,
    *,
    accuracy: float,
    low: float | None,
    high: float | None,
    n: int,
    cost: Decimal | None,
) -> BoardRow:
    return BoardRow(
        model_key=found["model_key"],
        model_label=found["label"] or found["identifier"] or found["model_key"],
        control=found["source"] == "control",
        run_id=found["run_id"],
        account_id=found["account_id"],
        impl_id=found["impl_id"],
        comparability_key=found["comparability_key"],
        accuracy=accuracy,
        low=low,
        high=high,
        n=n,
        errored=found["errored"],
        coverage=min(1.0, n / tasks),
        cost_usd=cost,
        finished_at=found["finished_at"],
        runs=found["runs"],
        whole=found["whole"],
    )

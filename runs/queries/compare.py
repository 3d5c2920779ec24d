"""Two to eight runs side by side: always task by task, and never more than the interval carries."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from benchwright.lib.canonical import canonical, sha256
from benchwright.lib.errors import BenchwrightError
from billing.models import Account
from registry.errors import UnknownSubset
from registry.models import SubsetSnapshot
from registry.queries import snapshot_rows
from runs.models import Run, TaskRow
from runs.projections.score import ScoreView
from runs.queries.access import visible_run
from runs.queries.comparability import Difference, Ruler, differences, ruler_of
from runs.queries.run_detail import cost_view, model_view, score_of
from runs.statistics.paired import Comparison, compare, holm

FEWEST, MOST = 2, 8
LEVEL = 0.05
MOST_FLIPS = 200


@dataclass(frozen=True)
class Side:
    """One of the runs. `letter`: A, B, … in the order asked for."""

    letter: str
    run: Run
    label: str
    control: bool
    score: ScoreView | None
    cost_usd: Any
    ruler: Ruler


@dataclass(frozen=True)
class Flip:
    """A task that one run passed and the other did not. Its index in each run, for a changed list renumbers tasks."""

    index_a: int
    index_b: int
    winner: str


@dataclass(frozen=True)
class Pair:
    """B minus A. `p_adjusted`: Holm over all pairs shown. `better`: "a", "b", or "" when the data do not tell.

    `matched`: how tasks were paired, by `index` or by `content`. `flips`: at most MOST_FLIPS; `flipped` counts all.
    """

    a: Side
    b: Side
    result: Comparison[Any]
    p_adjusted: float | None
    better: str
    matched: str
    flips: list[Flip]
    flipped: int


@dataclass(frozen=True)
class Compared:
    """`differs` empty: all runs stand on one ruler."""

    sides: list[Side]
    differs: list[Difference]
    pairs: list[Pair]


def compare_runs(account: Account | None, run_ids: Sequence[str | UUID]) -> Compared:
    """Raises BenchwrightError for a number of runs other than two to eight, NotFound for one that may not be seen."""
    asked = list(dict.fromkeys(str(run_id).strip() for run_id in run_ids if str(run_id).strip()))
    if not FEWEST <= len(asked) <= MOST:
        raise BenchwrightError(
            f"Give {FEWEST} to {MOST} different runs; these are {len(asked)}.",
            code="invalid_request",
            field="runs",
            hint="runs=ID,ID",
        )
    sides = [_side("ABCDEFGH"[i], visible_run(account, run_id)) for i, run_id in enumerate(asked)]
    by_content = len({side.ruler.snapshot for side in sides}) > 1
    tables = [_scores(side, by_content) for side in sides]
    drafts = []
    for (a, table_a), (b, table_b) in itertools.combinations(zip(sides, tables, strict=True), 2):
        result = compare({k: s for k, (_, s) in table_a.items()}, {k: s for k, (_, s) in table_b.items()})
        drafts.append((a, table_a, b, table_b, result))
    adjusted = holm([draft[4].p_value for draft in drafts])
    pairs = []
    for (a, table_a, b, table_b, result), p in zip(drafts, adjusted, strict=True):
        flips = [Flip(table_a[k][0], table_b[k][0], "a") for k in result.only_a]
        flips += [Flip(table_a[k][0], table_b[k][0], "b") for k in result.only_b]
        flips.sort(key=lambda flip: flip.index_a)
        pairs.append(
            Pair(
                a=a,
                b=b,
                result=result,
                p_adjusted=p,
                better=_better(result, p),
                matched="content" if by_content else "index",
                flips=flips[:MOST_FLIPS],
                flipped=len(flips),
            )
        )
    return Compared(sides, differences([side.ruler for side in sides]), pairs)


def _better(result: Comparison[Any], p: float | None) -> str:
    """A difference is claimed only when the test, after Holm, and the interval both carry it."""
    if p is None or p >= LEVEL or result.difference is None or result.interval is None:
        return ""
    if result.interval.low > 0:
        return "b"
    return "a" if result.interval.high < 0 else ""


def _side(letter: str, run: Run) -> Side:
    model = model_view(run)
    return Side(letter, run, model.label, model.control, score_of(run), cost_view(run).incurred, ruler_of(run))


def _scores(side: Side, by_content: bool) -> dict[Hashable, tuple[int, float | None]]:
    """By task: its index in the run and its score, None where it errored. Unsettled tasks are left out."""
    found = TaskRow.objects.filter(run_id=side.run.pk, invocation=side.run.invocation).exclude(outcome="running")
    rows = found.order_by("index").values_list("index", "outcome", "score")
    scores = {index: None if outcome == "err" else score for index, outcome, score in rows}
    if not by_content:
        return {index: (index, score) for index, score in scores.items()}
    names = _contents(side.ruler)
    return {names[index]: (index, score) for index, score in scores.items() if index in names}


def _contents(ruler: Ruler) -> dict[int, str]:
    """Each task of a list by what it says; of equal tasks the first. Empty when the rows are no longer stored."""
    snapshot = SubsetSnapshot.objects.filter(subset_id=ruler.subset_id, digest=ruler.snapshot).first()
    if snapshot is None:
        return {}
    seen: dict[str, int] = {}
    try:
        for index, task in enumerate(snapshot_rows(snapshot)):
            seen.setdefault(sha256(canonical(task["row"])), index)
    except UnknownSubset:
        return {}
    return {index: name for name, index in seen.items()}

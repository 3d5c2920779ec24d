"""A leaderboard with what only the runs' tasks can say: which models can't be told from the leader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from registry.leaderboard import Board, BoardRow
from registry.ranking import overlaps
from registry.vocabulary import BoardBy
from runs.statistics.paired import holm, mcnemar_p

LEVEL = 0.05
# Pairs of tasks that one page reads at most: beyond it the rest is judged by intervals, and says so.
MOST_PAIRS = 200_000
PAIRED, OVERLAP = "paired", "overlap"


@dataclass(frozen=True)
class Mark:
    """Whether a row can't be told from the leader, and how that was found: `paired` (McNemar on shared tasks, `p` after
    Holm) or `overlap` (their intervals share a point).
    """

    same: bool
    how: str
    p: float | None = None
    shared: int | None = None


@dataclass(frozen=True)
class MarkedBoard:
    """`marks` by run; the leader has none."""

    board: Board
    marks: dict[UUID, Mark]


def marked(board: Board) -> MarkedBoard:
    """Rows whose interval reaches the leader's are tested on the tasks of both, if both stand on one ruler.

    Intervals that do not touch settle it: a paired test is only sharper. A mean is of many runs, so there is no pair.
    """
    if not board.rows:
        return MarkedBoard(board, {})
    leader, rest = board.rows[0], board.rows[1:]
    near = [row for row in rest if overlaps(leader.measured, row.measured)]
    testable: list[BoardRow] = []
    if board.by is BoardBy.BEST and leader.comparability_key:
        testable = [row for row in near if row.comparability_key == leader.comparability_key]
        testable = testable[: max(1, MOST_PAIRS // max(1, board.tasks))]
    found = _tables(leader.run_id, [row.run_id for row in testable])
    tested = [row.run_id for row in testable if row.run_id in found]
    adjusted = holm([mcnemar_p(found[run][0], found[run][1]) for run in tested])
    marks = {row.run_id: Mark(same=False, how=OVERLAP) for row in rest}
    marks |= {row.run_id: Mark(same=True, how=OVERLAP) for row in near}
    for run, p in zip(tested, adjusted, strict=True):
        marks[run] = Mark(same=p is None or p >= LEVEL, how=PAIRED, p=p, shared=found[run][2])
    return MarkedBoard(board, marks)


SHARED = """
SELECT t.run_id, count(*) FILTER (WHERE l.outcome = 'pass' AND t.outcome = 'fail'),
  count(*) FILTER (WHERE l.outcome = 'fail' AND t.outcome = 'pass'), count(*)
FROM traces lr
JOIN trace_tasks l ON l.run_id = lr.id AND l.invocation = lr.invocation AND l.outcome IN ('pass', 'fail')
JOIN traces tr ON tr.id = ANY(%(others)s)
JOIN trace_tasks t ON t.run_id = tr.id AND t.invocation = tr.invocation AND t.index = l.index
  AND t.outcome IN ('pass', 'fail')
WHERE lr.id = %(leader)s
GROUP BY t.run_id
"""


def _tables(leader: UUID, others: Sequence[UUID]) -> dict[UUID, tuple[int, int, int]]:
    """By run: tasks that the leader alone passed, that it alone passed, and that both scored; none without shared
    tasks.
    """
    if not others:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(SHARED, {"leader": leader, "others": list(others)})
        return {run: (only_leader, only_it, n) for run, only_leader, only_it, n in cursor.fetchall()}

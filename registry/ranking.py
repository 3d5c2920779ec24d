"""Places on a leaderboard: shared by ties, with the places that the intervals leave open. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A pass rate in [0, 1] with its interval; `low` and `high` None: one task has no interval, all is open."""

    accuracy: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Place:
    """`rank`: 1 is best, equal rates share one and the next is skipped. `first`..`last`: the places that the intervals
    allow. `tied`: how many share the rank, itself included.
    """

    rank: int
    first: int
    last: int
    tied: int


def places(rows: Sequence[Measured]) -> list[Place]:
    """One for each row, in the given order.

    A row is surely below another only when its whole interval lies below the other's: `first` counts those surely
    above, `last` leaves out those surely below.
    """
    down = sorted(-row.accuracy for row in rows)
    lows = sorted(0.0 if row.low is None else row.low for row in rows)
    highs = sorted(1.0 if row.high is None else row.high for row in rows)
    out = []
    for row in rows:
        low, high = 0.0 if row.low is None else row.low, 1.0 if row.high is None else row.high
        above = len(rows) - bisect_right(lows, high)
        below = bisect_left(highs, low)
        start, end = bisect_left(down, -row.accuracy), bisect_right(down, -row.accuracy)
        out.append(Place(rank=start + 1, first=above + 1, last=len(rows) - below, tied=end - start))
    return out


def overlaps(one: Measured, other: Measured) -> bool:
    """Whether the two intervals share a point; an unknown interval shares all."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return True
    return one.low <= other.high and other.low <= one.high

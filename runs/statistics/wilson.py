"""The interval of a pass rate. Wilson's, at any n: the normal formula covers far too little near 0 and 1."""

from __future__ import annotations

import math
from typing import NamedTuple

from runs.statistics.quantiles import normal_quantile


class Interval(NamedTuple):
    """Both ends."""

    low: float
    high: float


def wilson_interval(passed: int, n: int, level: float = 0.95) -> Interval | None:
    """The score interval of passed / n; None for n < 2: one try says nothing about a spread."""
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n} is no rate")
    if n < 2:
        return None
    z = normal_quantile(0.5 + level / 2)
    rate, z2 = passed / n, z * z
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    # At the ends the formula gives 0 and 1 up to rounding.
    low = 0.0 if passed == 0 else max(0.0, centre - half)
    high = 1.0 if passed == n else min(1.0, centre + half)
    return Interval(low, high)

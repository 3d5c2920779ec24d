"""A score with everything that has to stand beside it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from runs.statistics.wilson import wilson_interval


@dataclass(frozen=True)
class ScoreView:
    """`accuracy` = passed / (passed + failed), None while nothing could be scored.

    `low`, `high`: the 95 % interval (Wilson). `mean`: of the task scores, `stderr` over tasks; None where undefined.
    `coverage` = settled / selected. `band_*`: the rate if every error were a fail, and if every error were a pass.
    """

    accuracy: float | None
    low: float | None
    high: float | None
    n: int
    passed: int
    failed: int
    errored: int
    mean: float | None
    stderr: float | None
    coverage: float | None
    band_low: float | None
    band_high: float | None
    policy: str
    method: str


def score_view(
    *, passed: int, failed: int, errored: int, selected: int, total: float, squares: float
) -> ScoreView | None:
    """None before any task is settled. `total`, `squares`: sums of the task scores and of their squares."""
    n, settled = passed + failed, passed + failed + errored
    if not settled:
        return None
    low = high = mean = stderr = accuracy = None
    if n:
        accuracy, mean = passed / n, total / n
        if n > 1:
            interval = wilson_interval(passed, n)
            low, high = interval if interval else (None, None)
            variance = max(0.0, (squares - n * mean * mean) / (n - 1))
            stderr = math.sqrt(variance / n)
    return ScoreView(
        accuracy=accuracy,
        low=low,
        high=high,
        n=n,
        passed=passed,
        failed=failed,
        errored=errored,
        mean=mean,
        stderr=stderr,
        coverage=settled / selected if selected else None,
        band_low=passed / settled,
        band_high=(passed + errored) / settled,
        policy="errors are outside the denominator",
        method="Wilson 95 %",
    )

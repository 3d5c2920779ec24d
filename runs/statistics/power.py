"""How small a difference a plan can see, before it is paid for."""

from __future__ import annotations

import math

from runs.statistics.quantiles import normal_quantile

# Two coin tosses per task: nothing that scores in [0, 1] can differ more from task to task.
WORST_CASE = 0.25


def detectable_difference(
    n: int,
    trials: int = 1,
    *,
    between: float = 0.0,
    within_a: float = WORST_CASE,
    within_b: float = WORST_CASE,
    level: float = 0.95,
    power: float = 0.8,
) -> float | None:
    """The smallest true difference between two runs on the same n tasks that is found with `power`.

    `between`: variance over tasks of the true difference. `within_*`: mean variance within a task, which K trials
    divide. Known from earlier runs; else the worst case. None for n < 2; never above 1.
    """
    if n < 2 or trials < 1:
        return None
    variance = between + (within_a + within_b) / trials
    return min(1.0, _reach(level, power) * math.sqrt(variance / n))


def tasks_needed(
    difference: float,
    trials: int = 1,
    *,
    between: float = 0.0,
    within_a: float = WORST_CASE,
    within_b: float = WORST_CASE,
    level: float = 0.95,
    power: float = 0.8,
) -> int:
    """How many tasks it takes to find a true difference of that size with `power`."""
    if difference <= 0 or trials < 1:
        raise ValueError("the difference must be above 0 and there must be a trial")
    variance = between + (within_a + within_b) / trials
    return max(2, math.ceil((_reach(level, power) / difference) ** 2 * variance))


def _reach(level: float, power: float) -> float:
    return normal_quantile(0.5 + level / 2) + normal_quantile(power)

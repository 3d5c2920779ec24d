"""pass@k (any of k tries) and pass^k (all of k tries), unbiased. Fewer than k tries observed: undefined, never 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from runs.statistics.means import standard_error


def pass_at_k(n: int, passed: int, k: int) -> float | None:
    """P(at least one of k tries passes), from n observed tries; None for n < k."""
    _check(n, passed, k)
    if n < k:
        return None
    return 1 - math.comb(n - passed, k) / math.comb(n, k)


def pass_hat_k(n: int, passed: int, k: int) -> float | None:
    """pass^k: P(all of k tries pass), from n observed tries; None for n < k."""
    _check(n, passed, k)
    if n < k:
        return None
    return math.comb(passed, k) / math.comb(n, k)


def _check(n: int, passed: int, k: int) -> None:
    if k < 1 or not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n} tries with k = {k} makes no sense")


@dataclass(frozen=True)
class PassK:
    """Mean over the tasks where it is defined; `value` is None when it is defined for none.

    `undefined`: tasks with fewer than k tries, which are left out.
    """

    k: int
    value: float | None
    stderr: float | None
    tasks: int
    undefined: int


def mean_pass_at_k(counts: Iterable[tuple[int, int]], k: int) -> PassK:
    """pass@k over tasks given as (tries observed, tries passed)."""
    return _over_tasks(counts, k, pass_at_k)


def mean_pass_hat_k(counts: Iterable[tuple[int, int]], k: int) -> PassK:
    """pass^k over tasks given as (tries observed, tries passed)."""
    return _over_tasks(counts, k, pass_hat_k)


def _over_tasks(counts: Iterable[tuple[int, int]], k: int, estimate: Callable[[int, int, int], float | None]) -> PassK:
    all_values = [estimate(n, passed, k) for n, passed in counts]
    values = [v for v in all_values if v is not None]
    mean = math.fsum(values) / len(values) if values else None
    return PassK(k, mean, standard_error(values), len(values), len(all_values) - len(values))

"""Two runs on the same tasks: always paired. The spread of the differences counts, not two overlapping intervals."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from runs.statistics.means import MeanScore, mean_score
from runs.statistics.wilson import Interval

Key = TypeVar("Key", bound=Hashable)

EXACT_PAIRS = 14
DRAWS = 10_000
MANY = 400  # differences from which their sum is normal for all that a p value shows


@dataclass(frozen=True)
class Comparison(Generic[Key]):
    """B minus A over the tasks that both scored.

    `p_value`: McNemar's exact test for 0/1 scores, else the paired permutation test; None without a pair.
    `wins`, `losses`: tasks where B, and where A, is better. `only_a`, `only_b`: passed by one alone (the tasks that
    flipped). `dropped`: tasks that one side lacks or could not score, with the pass rate of the side that has them.
    """

    n: int
    difference: float | None
    stderr: float | None
    interval: Interval | None
    p_value: float | None
    test: str
    wins: int
    losses: int
    ties: int
    both_pass: int
    neither: int
    only_a: list[Key] = field(default_factory=list)
    only_b: list[Key] = field(default_factory=list)
    dropped: list[Key] = field(default_factory=list)
    dropped_rate_a: float | None = None
    dropped_rate_b: float | None = None


def compare(
    a: Mapping[Key, float | None],
    b: Mapping[Key, float | None],
    clusters: Mapping[Key, Hashable] | None = None,
    *,
    level: float = 0.95,
) -> Comparison[Key]:
    """Two runs' task scores by task; None is an errored task."""
    keys = [k for k in a if a[k] is not None and b.get(k) is not None]
    dropped = [k for k in dict.fromkeys([*a, *b]) if a.get(k) is None or b.get(k) is None]
    left = [float(a[k] or 0) for k in keys]
    right = [float(b[k] or 0) for k in keys]
    differences = [y - x for x, y in zip(left, right, strict=True)]
    mean = paired_difference(differences, [clusters.get(k) for k in keys] if clusters else None, level=level)
    only_a = [k for k, x, y in zip(keys, left, right, strict=True) if x >= 1 > y]
    only_b = [k for k, x, y in zip(keys, left, right, strict=True) if y >= 1 > x]
    both = sum(1 for x, y in zip(left, right, strict=True) if x >= 1 and y >= 1)
    binary = all(v in (0, 1) for v in (*left, *right))
    p_value = None
    if keys:
        p_value = mcnemar_p(len(only_a), len(only_b)) if binary else permutation_p(differences)
    return Comparison(
        n=len(keys),
        difference=mean.mean,
        stderr=mean.stderr,
        interval=mean.interval,
        p_value=p_value,
        test=("McNemar, exact" if binary else "paired permutation") if keys else "none",
        wins=sum(1 for d in differences if d > 0),
        losses=sum(1 for d in differences if d < 0),
        ties=sum(1 for d in differences if d == 0),
        both_pass=both,
        neither=len(keys) - both - len(only_a) - len(only_b),
        only_a=only_a,
        only_b=only_b,
        dropped=dropped,
        dropped_rate_a=_rate(a, dropped),
        dropped_rate_b=_rate(b, dropped),
    )


def _rate(scores: Mapping[Key, float | None], keys: Sequence[Key]) -> float | None:
    known = [s for k in keys if (s := scores.get(k)) is not None]
    return sum(1 for s in known if s >= 1) / len(known) if known else None


def paired_difference(
    differences: Sequence[float], clusters: Sequence[Hashable] | None = None, *, level: float = 0.95
) -> MeanScore:
    """Mean difference with its error and Student's interval (clustered when clusters are given)."""
    return mean_score(differences, clusters, level=level, bounds=(-1.0, 1.0))


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Exact two-sided p of the tasks that only one side passed; 1 when there is none."""
    n = only_a + only_b
    tail = sum(math.comb(n, j) for j in range(min(only_a, only_b) + 1))
    # Whole numbers up to the division: 2**n is beyond a float for large n.
    return min(1.0, 2 * tail / 2**n) if n < 1000 else min(1.0, _ratio(2 * tail, n))


def _ratio(numerator: int, power: int) -> float:
    """numerator / 2**power for numbers too large for a float."""
    shift = max(0, numerator.bit_length() - 64)
    return math.ldexp(float(numerator >> shift), shift - power)


def permutation_p(differences: Sequence[float], *, draws: int = DRAWS, seed: int = 0) -> float:
    """Two-sided p of the mean difference when each sign is a coin toss. Exact for few or equal differences.

    Otherwise by `draws` random tosses, counted so that it is never 0; the same differences give the same p. From MANY
    on by the normal limit of the same tosses: the time of a page must not grow with draws × tasks.
    """
    moved = [d for d in differences if d != 0]
    if not moved:
        return 1.0
    size = abs(moved[0])
    if all(abs(abs(d) - size) < 1e-12 for d in moved):
        return mcnemar_p(sum(1 for d in moved if d < 0), sum(1 for d in moved if d > 0))
    # What is as extreme up to rounding counts as extreme.
    observed = abs(math.fsum(moved)) - 1e-9
    if len(moved) <= EXACT_PAIRS:
        hits = sum(
            1
            for signs in itertools.product((1, -1), repeat=len(moved))
            if abs(sum(s * d for s, d in zip(signs, moved, strict=True))) >= observed
        )
        return hits / 2 ** len(moved)
    if len(moved) >= MANY:
        return math.erfc(abs(math.fsum(moved)) / math.sqrt(2 * math.fsum(d * d for d in moved)))
    rng = random.Random(seed)  # reproducible on purpose, no secret hangs on it
    total = math.fsum(moved)
    hits = 0
    for _ in range(draws):
        bits = rng.getrandbits(len(moved))
        flipped = sum(d for i, d in enumerate(moved) if bits >> i & 1)
        hits += abs(total - 2 * flipped) >= observed
    return (hits + 1) / (draws + 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted for the number of tests, in the given order; None stays None and is no test."""
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        out[place] = largest
    return out

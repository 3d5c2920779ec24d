"""The mean of task scores, its standard error and its interval.

Trials are averaged within their task first: n is the number of tasks, never of trials. Tasks that share a passage, a
repository or a template are not independent; with their clusters the error is honest about it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from runs.statistics.quantiles import t_quantile
from runs.statistics.wilson import Interval, wilson_interval


@dataclass(frozen=True)
class MeanScore:
    """`stderr` and `interval` are None where they are undefined (n < 2, or fewer than two clusters).

    `method` names the interval: "wilson", "t", "clustered t", "bootstrap" or "none".
    """

    n: int
    mean: float | None
    stderr: float | None
    interval: Interval | None
    clusters: int | None
    method: str


def task_mean(trial_scores: Iterable[float | None]) -> float | None:
    """One task's mean over the trials that have a score; None when none has."""
    scored = [s for s in trial_scores if s is not None]
    return math.fsum(scored) / len(scored) if scored else None


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean: sample deviation / √n. None for n < 2."""
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n * (n - 1)))


def clustered_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Of the mean when values of one cluster hang together, with the small-sample factor C / (C − 1).

    None for fewer than two clusters.
    """
    sums, n = _cluster_sums(values, clusters), len(values)
    if len(sums) < 2:
        return None
    count = len(sums)
    return math.sqrt(count / (count - 1) * math.fsum(s * s for s in sums)) / n


def _cluster_sums(values: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    if len(clusters) != len(values):
        raise ValueError(f"{len(values)} values but {len(clusters)} clusters")
    mean = math.fsum(values) / len(values) if values else 0.0
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value - mean)
    return [math.fsum(m) for m in members.values()]


def mean_score(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> MeanScore:
    """Mean, error and interval of task scores: Wilson for 0/1 scores without clusters, else Student's t.

    `bounds`: what the mean cannot leave; the interval is cut there.
    """
    n = len(values)
    if n == 0:
        return MeanScore(0, None, None, None, None, "none")
    mean = math.fsum(values) / n
    if clusters is not None:
        stderr, count = clustered_error(values, clusters), len(set(clusters))
        interval = None if stderr is None else _t_interval(mean, stderr, count - 1, level, bounds)
        return MeanScore(n, mean, stderr, interval, count, "clustered t" if interval else "none")
    stderr = standard_error(values)
    if stderr is None:
        return MeanScore(n, mean, None, None, None, "none")
    if bounds == (0.0, 1.0) and all(v in (0, 1) for v in values):
        passed = sum(1 for v in values if v == 1)
        return MeanScore(n, mean, stderr, wilson_interval(passed, n, level), None, "wilson")
    return MeanScore(n, mean, stderr, _t_interval(mean, stderr, n - 1, level, bounds), None, "t")


def _t_interval(mean: float, stderr: float, degrees: int, level: float, bounds: tuple[float, float]) -> Interval:
    half = t_quantile(0.5 + level / 2, degrees) * stderr
    return Interval(max(bounds[0], mean - half), min(bounds[1], mean + half))


def bootstrap_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Interval | None:
    """Percentile interval of the mean, corrected for bias and skew (BCa). Whole clusters are drawn when given.

    The same values give the same interval. None for fewer than two units.
    """
    units: list[tuple[float, int]]
    if clusters is None:
        units = [(v, 1) for v in values]
    else:
        grouped: dict[Hashable, list[float]] = {}
        for value, cluster in zip(values, clusters, strict=True):
            grouped.setdefault(cluster, []).append(value)
        units = [(math.fsum(g), len(g)) for g in grouped.values()]
    count = len(units)
    if count < 2:
        return None
    total, size = math.fsum(u[0] for u in units), sum(u[1] for u in units)
    mean = total / size
    rng = random.Random(seed)  # reproducible on purpose, no secret hangs on it
    means = []
    for _ in range(draws):
        drawn = rng.choices(units, k=count)
        means.append(sum(u[0] for u in drawn) / sum(u[1] for u in drawn))
    means.sort()
    if means[0] == means[-1]:
        return Interval(mean, mean)
    normal = NormalDist()
    below = sum(1 for m in means if m < mean) + sum(1 for m in means if m == mean) / 2
    bias = normal.inv_cdf(min(max(below / draws, 0.5 / draws), 1 - 0.5 / draws))
    left_out = [(total - u[0]) / (size - u[1]) for u in units]
    centre = math.fsum(left_out) / count
    spread = math.fsum((centre - m) ** 2 for m in left_out)
    skew = math.fsum((centre - m) ** 3 for m in left_out) / (6 * spread**1.5) if spread else 0.0

    def end(probability: float) -> float:
        z = bias + normal.inv_cdf(probability)
        place = normal.cdf(bias + z / (1 - skew * z)) * (draws - 1)
        return means[min(draws - 1, max(0, round(place)))]

    return Interval(end(0.5 - level / 2), end(0.5 + level / 2))


@dataclass(frozen=True)
class VarianceSplit:
    """Where the variance of a mean over n tasks with K trials comes from: buy tasks or buy trials."""

    between_tasks: float
    within_tasks: float

    @property
    def trial_share(self) -> float | None:
        """Share of the variance that more trials would shrink; None when there is no variance."""
        total = self.between_tasks + self.within_tasks
        return self.within_tasks / total if total else None


def variance_split(trials: Sequence[Sequence[float]]) -> VarianceSplit | None:
    """Both parts of Var(mean), each divided by n already; None for fewer than two tasks with two trials."""
    usable = [t for t in trials if len(t) > 1]
    n = len(usable)
    if n < 2:
        return None
    means = [math.fsum(t) / len(t) for t in usable]
    grand = math.fsum(means) / n
    total = math.fsum((m - grand) ** 2 for m in means) / (n - 1)
    within = math.fsum(
        math.fsum((s - m) ** 2 for s in t) / (len(t) - 1) / len(t) for t, m in zip(usable, means, strict=True)
    )
    return VarianceSplit(max(0.0, total - within / n) / n, within / n / n)

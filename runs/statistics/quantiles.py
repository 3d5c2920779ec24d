"""Quantiles that the standard library lacks."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()


def normal_quantile(probability: float) -> float:
    """Of the standard normal distribution."""
    return _NORMAL.inv_cdf(probability)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees: int) -> float:
    """Of Student's t with `degrees` of freedom (at least 1), to about 1e-10."""
    if degrees < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    if probability == 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < probability:
        low, high = high, high * 2
    for _ in range(100):
        middle = (low + high) / 2
        if t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
        if high - low < 1e-12 * high:
            break
    return (low + high) / 2


def t_cdf(value: float, degrees: int) -> float:
    """P(T <= value) for Student's t."""
    tail = 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + value * value))
    return 1 - tail if value >= 0 else tail


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny = 1e-300
    c, d = 1.0, 1 / max(tiny, 1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + term / c
            c = c if abs(c) > tiny else tiny
            step = c * d
            result *= step
        if abs(step - 1) < 1e-15:
            break
    return front * result / a

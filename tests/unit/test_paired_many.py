"""The permutation test for many differences."""

from __future__ import annotations

import random

import pytest

from runs.statistics import paired
from runs.statistics.paired import MANY, permutation_p


def test_the_normal_limit_agrees_with_the_tosses_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    differences = [rng.uniform(-1, 1) + 0.05 for _ in range(MANY)]
    limit = permutation_p(differences)
    monkeypatch.setattr(paired, "MANY", 10**9)
    assert limit == pytest.approx(permutation_p(differences, draws=4000), abs=0.03)


def test_ten_thousand_differences_take_no_noticeable_time_and_a_plain_one_is_seen() -> None:
    rng = random.Random(6)
    assert permutation_p([rng.uniform(-1, 1) for _ in range(10_000)]) > 0.001
    assert permutation_p([rng.uniform(-1, 1) + 0.2 for _ in range(10_000)]) < 1e-6

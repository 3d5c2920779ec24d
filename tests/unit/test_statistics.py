"""Intervals, errors and tests: against published numbers, closed forms and simulation."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections import defaultdict
from pathlib import Path

import pytest

from runs.statistics.means import (
    bootstrap_interval,
    clustered_error,
    mean_score,
    standard_error,
    task_mean,
    variance_split,
)
from runs.statistics.paired import compare, holm, mcnemar_p, paired_difference, permutation_p
from runs.statistics.passk import mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k
from runs.statistics.power import detectable_difference, tasks_needed
from runs.statistics.quantiles import t_cdf, t_quantile
from runs.statistics.wilson import wilson_interval


@pytest.mark.parametrize(("passed", "n"), [(1, 10), (742, 1319), (3, 4), (286, 1319)])
def test_wilson_ends_where_the_score_test_turns(passed: int, n: int) -> None:
    interval = wilson_interval(passed, n)
    assert interval is not None
    for end in interval:
        assert abs(passed / n - end) / math.sqrt(end * (1 - end) / n) == pytest.approx(1.959963984540054)
    assert interval.low < passed / n < interval.high


def test_wilson_ends_exactly_at_zero_and_one() -> None:
    nothing, everything = wilson_interval(0, 30), wilson_interval(30, 30)
    assert nothing is not None
    assert everything is not None
    assert nothing.low == 0.0 < nothing.high
    assert everything.high == 1.0 > everything.low


def test_one_task_has_no_interval_and_no_error() -> None:
    assert wilson_interval(1, 1) is None
    assert wilson_interval(0, 0) is None
    assert mean_score([1.0]).interval is None
    assert mean_score([1.0]).stderr is None
    assert mean_score([]).mean is None
    assert bootstrap_interval([0.5]) is None


def test_wilson_covers_where_the_normal_formula_does_not() -> None:
    rng = random.Random(1)
    hits = normal = 0
    for _ in range(2000):
        passed = sum(rng.random() < 0.9 for _ in range(30))
        interval = wilson_interval(passed, 30)
        assert interval is not None
        hits += interval.low <= 0.9 <= interval.high
        half = 1.96 * math.sqrt(passed / 30 * (1 - passed / 30) / 29)
        normal += abs(passed / 30 - 0.9) <= half
    assert hits / 2000 == pytest.approx(0.974, abs=0.015)
    assert normal / 2000 < 0.9


@pytest.mark.parametrize(
    ("probability", "degrees", "expected"),
    [
        (0.975, 1, 12.7062047),
        (0.975, 2, 4.30265273),
        (0.975, 10, 2.22813885),
        (0.95, 30, 1.69726089),
        (0.975, 1000, 1.96233908),
    ],
)
def test_t_quantiles_are_those_of_the_tables(probability: float, degrees: int, expected: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-8)
    assert t_quantile(1 - probability, degrees) == pytest.approx(-expected, rel=1e-8)
    assert t_cdf(expected, degrees) == pytest.approx(probability, abs=1e-9)


def test_the_error_of_a_pass_rate_is_the_binomial_one() -> None:
    values = [1.0] * 30 + [0.0] * 70
    assert standard_error(values) == pytest.approx(math.sqrt(0.3 * 0.7 / 99))
    assert mean_score(values).method == "wilson"
    assert mean_score([0.5, *values]).method == "t"


def test_trials_are_averaged_within_their_task() -> None:
    assert task_mean([1.0, None, 0.0]) == 0.5
    assert task_mean([None]) is None


def test_clusters_of_one_give_the_plain_error_and_copies_do_not_shrink_it() -> None:
    rng = random.Random(2)
    values = [rng.random() for _ in range(50)]
    assert clustered_error(values, range(50)) == pytest.approx(standard_error(values))
    tenfold = [v for v in values for _ in range(10)]
    clusters = [i for i in range(50) for _ in range(10)]
    assert clustered_error(tenfold, clusters) == pytest.approx(standard_error(values))
    assert (standard_error(tenfold) or 0) < (standard_error(values) or 0) / 3
    assert clustered_error(values, ["one"] * 50) is None


def test_clustered_intervals_cover_and_naive_ones_do_not() -> None:
    rng = random.Random(3)
    naive = clustered = 0
    for _ in range(300):
        values, clusters = [], []
        for cluster in range(60):
            centre = rng.gauss(0.5, 0.1)
            values += [rng.gauss(centre, 0.1) for _ in range(8)]
            clusters += [cluster] * 8
        for found in (mean_score(values, bounds=(-9, 9)), mean_score(values, clusters, bounds=(-9, 9))):
            assert found.interval is not None
            inside = found.interval.low <= 0.5 <= found.interval.high
            naive += inside and found.clusters is None
            clustered += inside and found.clusters == 60
    assert clustered / 300 > 0.91
    assert naive / 300 < 0.75


def test_the_bootstrap_repeats_itself_and_agrees_with_the_t_interval() -> None:
    rng = random.Random(4)
    values = [rng.random() for _ in range(200)]
    first = bootstrap_interval(values)
    assert first == bootstrap_interval(values)
    assert first == pytest.approx(mean_score(values).interval, abs=0.006)
    assert bootstrap_interval([0.5] * 10) == (0.5, 0.5)
    clustered = bootstrap_interval([v for v in values for _ in range(3)], [i for i in range(200) for _ in range(3)])
    assert clustered == pytest.approx(first, abs=0.006)


def test_the_variance_is_split_between_tasks_and_trials() -> None:
    rng = random.Random(5)
    same_tasks = [[float(rng.random() < 0.5) for _ in range(10)] for _ in range(200)]
    split = variance_split(same_tasks)
    assert split is not None
    assert (split.trial_share or 0) > 0.7
    settled = variance_split([[float(i % 2)] * 5 for i in range(20)])
    assert settled is not None
    assert settled.trial_share == 0
    assert variance_split([[1.0], [0.0]]) is None


def test_pass_at_k_is_undefined_below_k_tries_and_never_one() -> None:
    assert pass_at_k(3, 3, 4) is None
    assert pass_hat_k(3, 3, 4) is None
    assert pass_at_k(0, 0, 1) is None
    assert (pass_at_k(5, 5, 5), pass_at_k(5, 0, 5), pass_at_k(5, 1, 5)) == (1, 0, 1)
    mixed = mean_pass_at_k([(4, 4), (2, 2), (4, 0)], 4)
    assert (mixed.value, mixed.tasks, mixed.undefined) == (0.5, 2, 1)
    assert mean_pass_at_k([(1, 1)], 2).value is None
    with pytest.raises(ValueError, match="makes no sense"):
        pass_at_k(3, 4, 1)


def test_pass_at_k_is_unbiased_and_the_tempting_formula_is_not() -> None:
    # Every outcome of n tries at p = 0.3, weighted: the exact expectation.
    for n in (5, 20):
        weights = [math.comb(n, c) * 0.3**c * 0.7 ** (n - c) for c in range(n + 1)]
        expected = sum(w * (pass_at_k(n, c, 5) or 0) for c, w in enumerate(weights))
        tempting = sum(w * (1 - (1 - c / n) ** 5) for c, w in enumerate(weights))
        all_pass = sum(w * (pass_hat_k(n, c, 5) or 0) for c, w in enumerate(weights))
        assert expected == pytest.approx(1 - 0.7**5)
        assert all_pass == pytest.approx(0.3**5)
        assert tempting < 0.8


def test_mcnemar_is_the_exact_binomial() -> None:
    assert mcnemar_p(14, 5) == pytest.approx(0.0635681)
    assert mcnemar_p(5, 14) == mcnemar_p(14, 5)
    assert mcnemar_p(0, 0) == 1.0
    assert mcnemar_p(3, 3) == 1.0
    assert mcnemar_p(0, 5) == pytest.approx(2 / 32)
    assert mcnemar_p(900, 1100) == pytest.approx(8.6e-6, rel=0.02)
    assert 0 <= mcnemar_p(0, 5000) < 1e-300


def test_the_permutation_test_is_exact_where_it_can_be() -> None:
    assert permutation_p([]) == 1.0
    assert permutation_p([0.0, 0.0]) == 1.0
    assert permutation_p([0.5] * 5) == pytest.approx(2 / 32)
    assert permutation_p([0.1, 0.2, 0.3]) == pytest.approx(2 / 8)
    assert permutation_p([0.1, 0.2, -0.3]) == 1.0


def test_the_permutation_test_by_lot_repeats_itself_and_is_never_zero() -> None:
    rng = random.Random(6)
    differences = [rng.gauss(0.3, 0.1) for _ in range(60)]
    assert permutation_p(differences) == permutation_p(differences) == pytest.approx(1 / 10_001)
    assert permutation_p([rng.gauss(0, 0.1) for _ in range(60)]) > 0.01


def test_a_comparison_counts_flips_and_tells_what_it_dropped() -> None:
    a: dict[int, float | None] = {1: 1.0, 2: 0.0, 3: 1.0, 4: 0.0, 5: None, 6: 1.0}
    b: dict[int, float | None] = {1: 1.0, 2: 1.0, 3: 0.0, 4: 0.0, 5: 1.0, 7: 0.0}
    found = compare(a, b)
    assert (found.n, found.wins, found.losses, found.ties) == (4, 1, 1, 2)
    assert (found.only_a, found.only_b, found.both_pass, found.neither) == ([3], [2], 1, 1)
    assert found.difference == 0.0
    assert found.p_value == 1.0
    assert found.test == "McNemar, exact"
    assert found.dropped == [5, 6, 7]
    assert (found.dropped_rate_a, found.dropped_rate_b) == (1.0, 0.5)


def test_nothing_in_common_is_no_difference_at_all() -> None:
    found = compare({1: 1.0}, {2: 1.0})
    assert (found.n, found.difference, found.p_value, found.interval) == (0, None, None, None)


def test_fractional_scores_are_compared_by_permutation() -> None:
    a = dict.fromkeys(range(20), 0.5)
    b = {i: 0.5 + (0.1 if i % 4 else -0.05) for i in range(20)}
    found = compare(a, b)
    assert found.test == "paired permutation"
    assert found.difference == pytest.approx(0.0625)
    assert (found.p_value or 1) < 0.01
    assert found.interval is not None
    assert found.interval.low > 0


def test_the_paired_error_is_below_the_unpaired_one_for_correlated_runs() -> None:
    rng = random.Random(7)
    a = [rng.random() for _ in range(300)]
    b = [min(1.0, x + rng.gauss(0.02, 0.05)) for x in a]
    paired = paired_difference([y - x for x, y in zip(a, b, strict=True)])
    unpaired = math.hypot(standard_error(a) or 0, standard_error(b) or 0)
    assert (paired.stderr or 1) < unpaired / 3


def test_holm_keeps_the_order_and_leaves_the_unknown_alone() -> None:
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_detectable_difference_is_that_of_the_formula() -> None:
    for trials, points in ((1, 11.7), (5, 5.2), (10, 3.7)):
        found = detectable_difference(200, trials, within_a=0.1744, within_b=0.1744)
        assert found == pytest.approx(points / 100, abs=0.0005)
    assert detectable_difference(1) is None
    assert detectable_difference(2) == 1.0
    assert tasks_needed(0.05) == 1570
    assert (detectable_difference(1570) or 1) <= 0.05 < (detectable_difference(1569) or 0)


def test_the_promised_power_is_there() -> None:
    rng = random.Random(8)
    n, base = 200, 0.5
    delta = detectable_difference(n, within_a=0.25, within_b=0.25) or 0
    low, high = base - delta / 2, base + delta / 2
    found = 0
    for _ in range(400):
        a = {i: float(rng.random() < low) for i in range(n)}
        b = {i: float(rng.random() < high) for i in range(n)}
        differences = [b[i] - a[i] for i in range(n)]
        interval = paired_difference(differences).interval
        assert interval is not None
        found += interval.low > 0
    assert found / 400 == pytest.approx(0.8, abs=0.06)


def test_pass_hat_k_is_what_was_published_for_the_airline_trajectories(shared_data: Path) -> None:
    passed: dict[int, int] = defaultdict(int)
    tries: dict[int, int] = defaultdict(int)
    for line in (shared_data / "tau_airline" / "recorded_gpt4o_rewards.jsonl").read_text().splitlines():
        row = json.loads(line)
        tries[row["task_id"]] += 1
        passed[row["task_id"]] += row["reward"] >= 1
    counts = [(tries[t], passed[t]) for t in tries]
    values = [mean_pass_hat_k(counts, k).value for k in (1, 2, 3, 4)]
    assert values == pytest.approx([0.42, 0.27333333, 0.22, 0.2], abs=1e-6)
    assert mean_pass_hat_k(counts, 5).value is None


def test_pass_at_k_is_what_was_recorded_for_code(shared_data: Path) -> None:
    recorded = json.loads((shared_data / "humaneval" / "expected_codegen16b_n100.json").read_text())
    counts = [(100, correct) for correct in _numbers(recorded["correct_by_task"])]
    for k, expected in ((1, 0.22115853658536583), (10, 0.5037941435181967), (100, 0.7378048780487805)):
        assert mean_pass_at_k(counts, k).value == pytest.approx(expected, abs=1e-12)


def _numbers(value: object) -> list[int]:
    found = list(value.values()) if isinstance(value, dict) else value
    assert isinstance(found, list)
    return found


def test_the_judge_preferences_have_the_published_mean_and_error(shared_data: Path) -> None:
    expected = {
        "claude-2.1": (15.733506736409938, 1.120315865445773),
        "gpt-3.5-turbo-1106": (9.177964561962735, 0.8904117511864436),
        "alpaca-7b": (2.591450540223603, 0.4870855382635108),
        "phi-2": (2.350209543026152, 0.4496590405673333),
    }
    values: dict[str, list[float]] = defaultdict(list)
    with gzip.open(shared_data / "alpaca_eval" / "recorded_judge_preferences.jsonl.gz", "rt") as file:
        for line in file:
            row = json.loads(line)
            if row["preference"] is not None:
                values[row["model"]].append(row["preference"] - 1)
    for model, (mean, stderr) in expected.items():
        found = mean_score(values[model])
        assert 100 * (found.mean or 0) == pytest.approx(mean, abs=1e-6)
        assert 100 * (found.stderr or 0) == pytest.approx(stderr, abs=1e-6)

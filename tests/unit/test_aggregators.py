"""Trials: what a launch may ask for, and what they come to."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from runs.errors import LaunchRefused
from runs.trials.aggregators import AGGREGATORS, aggregate
from runs.trials.outcome import Rate, outcome_of
from runs.trials.plan import PARAMETERS, resolve_trials
from runs.vocabulary import Outcome


def trial(score: float | None, **meta: Any) -> dict[str, Any]:
    """One trial as the sweep keeps it."""
    return {"score": score, "meta": meta, "extracted": meta.pop("extracted", None)}


def verdict(name: str, *trials: dict[str, Any], **parameters: Any) -> tuple[str, float | None]:
    """Outcome and score; the same in every order of the trials."""
    found = {
        (v.outcome.value, v.score)
        for order in itertools.islice(itertools.permutations(trials), 50)
        for v in [aggregate({"name": name, **parameters}, order)]
    }
    assert len(found) == 1, "the order of the trials changed the verdict"
    return found.pop()


@pytest.mark.parametrize(
    ("name", "scores", "expected"),
    [
        ("any_pass", [0.0, 0.3, 1.0], ("pass", 1.0)),
        ("any_pass", [0.0, 0.3], ("fail", 0.3)),
        ("all_pass", [1.0, 1.0], ("pass", 1.0)),
        ("all_pass", [1.0, 0.9], ("fail", 0.0)),
        ("mean", [1.0, 0.0, 0.5], ("fail", 0.5)),
        ("mean", [1.0] * 7, ("pass", 1.0)),
    ],
)
def test_plain_aggregators(name: str, scores: list[float], expected: tuple[str, float]) -> None:
    assert verdict(name, *[trial(s) for s in scores]) == expected


@pytest.mark.parametrize("name", AGGREGATORS)
def test_a_task_is_an_error_only_when_every_trial_errored(name: str) -> None:
    extra = {"field": "v", "threshold": 0, "weight": "v"}
    assert verdict(name, trial(None, v=1), trial(None), **extra) == ("err", None)
    assert verdict(name, trial(None), trial(1.0, v=1), **extra) == ("pass", 1.0)
    assert "1 of 2 trials errored" in (aggregate({"name": name, **extra}, [trial(None), trial(1.0, v=1)]).note or "")


def test_the_majority_wins_even_when_it_is_wrong() -> None:
    trials = [trial(0.0, a="7"), trial(0.0, a="7"), trial(1.0, a="8")]
    assert verdict("majority_on", *trials, field="a") == ("fail", 0.0)


def test_a_tie_scores_the_mean_over_the_tied_values_and_says_so() -> None:
    trials = [trial(1.0, a="8"), trial(0.0, a="7"), trial(0.5, a=None), trial(1.0)]
    assert verdict("majority_on", *trials, field="a") == ("fail", 0.5)
    assert aggregate({"name": "majority_on", "field": "a"}, trials).note == "a tie of 2 values"


def test_a_missing_or_null_field_never_votes_and_nobody_voting_is_zero() -> None:
    assert verdict("majority_on", trial(1.0, a=None), trial(1.0), field="a") == ("fail", 0.0)
    assert verdict("majority_on", trial(0.0), trial(0.0), trial(1.0, a=0), field="a") == ("pass", 1.0)


def test_the_extracted_answer_votes_though_it_was_lifted_out_of_the_meta() -> None:
    trials = [trial(1.0, extracted="8"), trial(1.0, extracted="8"), trial(0.0, extracted="9")]
    assert verdict("majority_on", *trials, field="extracted") == ("pass", 1.0)


def test_equal_numbers_are_one_vote_and_true_is_not_one() -> None:
    trials = [trial(1.0, a=7), trial(1.0, a=7.0), trial(0.0, a="7")]
    assert verdict("majority_on", *trials, field="a") == ("pass", 1.0)
    assert verdict("majority_on", trial(1.0, a=True), trial(0.0, a=1), field="a") == ("fail", 0.5)


def test_lists_and_objects_vote_by_their_value() -> None:
    trials = [trial(1.0, a={"x": [1], "y": 2}), trial(1.0, a={"y": 2, "x": [1]}), trial(0.0, a=[])]
    assert verdict("majority_on", *trials, field="a") == ("pass", 1.0)


def test_weights_weigh() -> None:
    assert verdict("weighted_mean", trial(1.0, w=3), trial(0.0, w=1), weight="w") == ("fail", 0.75)
    assert verdict("weighted_mean", trial(1.0, w=1e308), trial(1.0, w=1e308), weight="w") == ("pass", 1.0)
    assert verdict("weighted_mean", trial(1.0, w=2), trial(0.0, w=0), weight="w") == ("pass", 1.0)


@pytest.mark.parametrize("weight", [-1, None, math.nan, math.inf, "3", True, 0, 10**400])
def test_a_weight_that_is_none_makes_the_task_an_error(weight: Any) -> None:
    others = [] if weight == 0 and weight is not False else [trial(1.0, w=1)]
    assert verdict("weighted_mean", trial(1.0, w=weight), *others, weight="w") == ("err", None)


def test_min_above_takes_the_best_trial_over_the_threshold_and_none_is_zero() -> None:
    trials = [trial(1.0, c=0.5), trial(0.4, c=0.6), trial(0.2, c=0.9), trial(1.0), trial(1.0, c="0.9")]
    assert verdict("min_above", *trials, field="c", threshold=0.5) == ("fail", 0.4)
    assert verdict("min_above", *trials, field="c", threshold=2) == ("fail", 0.0)


def test_trials_default_to_one_and_any_pass() -> None:
    expected = {"plan": {"k": 1}, "aggregator": {"name": "any_pass"}}
    assert resolve_trials(None) == resolve_trials({}) == resolve_trials(None, {}) == expected


def test_a_launch_overrides_the_subset_part_by_part() -> None:
    subset = {"plan": {"k": 4}, "aggregator": {"name": "majority_on", "field": "extracted"}}
    assert resolve_trials(None, subset) == subset
    assert resolve_trials({"plan": {"k": 8}}, subset) == {**subset, "plan": {"k": 8}}
    assert resolve_trials({"aggregator": {"name": "mean"}}, subset) == {**subset, "aggregator": {"name": "mean"}}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"k": 3}, "'k'"),
        ({"plan": {"n": 3}}, "'n'"),
        ({"plan": 3}, "trials.plan"),
        ({"plan": {"k": 0}}, "trials.plan.k"),
        ({"plan": {"k": True}}, "trials.plan.k"),
        ({"plan": {"k": 2.0}}, "trials.plan.k"),
        ({"plan": {"k": 10**9}}, "trials.plan.k"),
        ({"aggregator": {"name": "best"}}, "'best'"),
        ({"aggregator": {"name": ["mean"]}}, "aggregator.name"),
        ({"aggregator": {}}, "aggregator.name"),
        ({"aggregator": {"name": "mean", "field": "x"}}, "'field'"),
        ({"aggregator": {"name": "majority_on"}}, "aggregator.field"),
        ({"aggregator": {"name": "weighted_mean", "weight": 3}}, "aggregator.weight"),
        ({"aggregator": {"name": "min_above", "field": "c"}}, "aggregator.threshold"),
        ({"aggregator": {"name": "min_above", "field": "c", "threshold": math.nan}}, "aggregator.threshold"),
        ([1], "trials"),
    ],
)
def test_a_bad_trials_field_is_refused_by_name(given: Any, named: str) -> None:
    with pytest.raises(LaunchRefused) as refused:
        resolve_trials(given)
    assert named in refused.value.message
    assert (refused.value.field or "").startswith("trials")


def test_every_aggregator_can_be_asked_for() -> None:
    assert set(PARAMETERS) == set(AGGREGATORS)


def test_errors_are_outside_the_rate_and_inside_its_band() -> None:
    rate = Rate(passed=6, failed=2, errored=2, selected=20)
    assert (rate.accuracy, rate.coverage, rate.low, rate.high) == (0.75, 0.5, 0.6, 0.8)
    nothing = Rate(passed=0, failed=0, errored=0, selected=0)
    assert (nothing.accuracy, nothing.coverage, nothing.low, nothing.high) == (None, None, None, None)
    assert Rate(0, 0, 3, 3).accuracy is None


def test_only_a_full_score_passes() -> None:
    assert [outcome_of(s) for s in (1.0, 0.999999, 0.0, None)] == [
        Outcome.PASS,
        Outcome.FAIL,
        Outcome.FAIL,
        Outcome.ERR,
    ]

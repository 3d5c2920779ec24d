"""From the trials of one task to its verdict. Six pure functions; errored trials never enter them.

A trial is a mapping with `score` (None when it errored), `meta` (what the scorer said beside it) and, lifted out of
the meta by the runner, `extracted`, `rule`, `target`, `no_answer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchwright.lib.canonical import canonical
from runs.trials.outcome import outcome_of
from runs.vocabulary import Outcome

LIFTED = frozenset({"extracted", "rule", "target", "no_answer"})

Trial = Mapping[str, Any]


class Unaggregatable(Exception):
    """These trials have no aggregate; the message says why. The task is an error."""


@dataclass(frozen=True)
class Verdict:
    """A task's score in [0, 1] and outcome. `score` is None exactly when `outcome` is err. `note`: what to know."""

    outcome: Outcome
    score: float | None
    note: str | None = None


def aggregate(aggregator: Mapping[str, Any], trials: Sequence[Trial]) -> Verdict:
    """What the trials of one task come to. `aggregator`: as `resolve_trials` returns it. Order never matters."""
    scored = [t for t in trials if t["score"] is not None]
    if not scored:
        return Verdict(Outcome.ERR, None, "every trial errored" if trials else "no trial ran")
    try:
        score, note = AGGREGATORS[aggregator["name"]](aggregator, scored)
    except Unaggregatable as error:
        return Verdict(Outcome.ERR, None, str(error))
    errored = len(trials) - len(scored)
    if errored:
        left_out = f"{errored} of {len(trials)} trials errored and are left out"
        note = f"{note}; {left_out}" if note else left_out
    return Verdict(outcome_of(score), score, note)


def _any_pass(aggregator: Mapping[str, Any], trials: Sequence[Trial]) -> tuple[float, str | None]:
    """The best trial."""
    return max(t["score"] for t in trials), None


def _all_pass(aggregator: Mapping[str, Any], trials: Sequence[Trial]) -> tuple[float, str | None]:
    """1 if every trial passed, else 0."""
    return float(all(outcome_of(t["score"]) is Outcome.PASS for t in trials)), None


def _mean(aggregator: Mapping[str, Any], trials: Sequence[Trial]) -> tuple[float, str | None]:
    """The arithmetic mean."""
    return _average([t["score"] for t in trials]), None


def _majority_on(aggregator: Mapping[str, Any], trials: Sequence[Trial]) -> tuple[float, str | None]:
    """The mean score of the trials that gave the most frequent value; over all tied values when there is a tie."""
    ballots: dict[str, list[float]] = {}
    for trial in trials:
        value = field_of(trial, aggregator["field"])
        if value is not None:
            ballots.setdefault(_ballot(value), []).append(trial["score"])
    if not ballots:
        return 0.0, f"no trial gave a value for {aggregator['field']!r}"
    most = max(len(scores) for scores in ballots.values())
    winners = [scores for scores in ballots.values() if len(scores) == most]
    note = f"a tie of {len(winners)} values" if len(winners) > 1 else None
    return _average([s for scores in winners for s in scores]), note


def _weighted_mean(aggregator: Mapping[str, Any], trials: Sequence[Trial]) -> tuple[float, str | None]:
    """Σ score·w / Σ w, with the weight in a meta field."""
    name = aggregator["weight"]
    weights = []
    for trial in trials:
        weight = number_of(field_of(trial, name))
        if weight is None:
            raise Unaggregatable(f"a trial has no finite weight in {name!r}")
        if weight < 0:
            raise Unaggregatable(f"a trial has the negative weight {weight:g} in {name!r}")
        weights.append(weight)
    largest = max(weights)
    if largest == 0:
        raise Unaggregatable(f"the weights in {name!r} add up to 0")
    # Divided by the largest first, so that no sum overflows.
    shares = [w / largest for w in weights]
    products = [t["score"] * share for t, share in zip(trials, shares, strict=True)]
    return min(1.0, math.fsum(products) / math.fsum(shares)), None


def _min_above(aggregator: Mapping[str, Any], trials: Sequence[Trial]) -> tuple[float, str | None]:
    """The best trial among those whose field is above the threshold; 0 when there is none."""
    name, threshold = aggregator["field"], aggregator["threshold"]
    above = []
    for trial in trials:
        value = number_of(field_of(trial, name))
        if value is not None and value > threshold:
            above.append(trial["score"])
    if not above:
        return 0.0, f"no trial has {name!r} above {threshold:g}"
    return max(above), None


AGGREGATORS: dict[str, Callable[[Mapping[str, Any], Sequence[Trial]], tuple[float, str | None]]] = {
    "any_pass": _any_pass,
    "all_pass": _all_pass,
    "mean": _mean,
    "majority_on": _majority_on,
    "weighted_mean": _weighted_mean,
    "min_above": _min_above,
}


def field_of(trial: Trial, name: str) -> Any:
    """A field of what the scorer said beside the score, wherever the runner put it; None when it is missing."""
    value = (trial.get("meta") or {}).get(name)
    return trial.get(name) if value is None and name in LIFTED else value


def number_of(value: Any) -> float | None:
    """A finite number, or None; True is not 1 here."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _ballot(value: Any) -> str:
    """One text per value: 7 and 7.0 are one vote, True and 1 are two."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return canonical(value)


def _average(scores: Sequence[float]) -> float:
    return min(1.0, math.fsum(scores) / len(scores))

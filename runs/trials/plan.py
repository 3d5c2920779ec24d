"""The `trials` field of a launch: checked, completed, frozen. Pure.

{"plan": {"k": 5}, "aggregator": {"name": "majority_on", "field": "extracted"}}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runs.errors import LaunchRefused

MAX_TRIALS = 1000

# What each aggregator needs beside its name; it takes nothing else.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "any_pass": (),
    "all_pass": (),
    "mean": (),
    "majority_on": ("field",),
    "weighted_mean": ("weight",),
    "min_above": ("field", "threshold"),
}

DEFAULT: dict[str, Any] = {"plan": {"k": 1}, "aggregator": {"name": "any_pass"}}


def resolve_trials(given: Mapping[str, Any] | None, default: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The trials config of a run: the launch's, completed by the subset's, completed by `DEFAULT`.

    `plan` and `aggregator` are each taken whole. Raises LaunchRefused, naming the key.
    """
    chosen: dict[str, Any] = dict(DEFAULT)
    for source in (default, given):
        if not source:
            continue
        if not isinstance(source, Mapping):
            raise _refused("trials", f"must be an object, not {type(source).__name__}")
        _only(source, ("plan", "aggregator"), "trials")
        chosen.update({name: part for name, part in source.items() if part is not None})
    return {"plan": _plan(chosen["plan"]), "aggregator": _aggregator(chosen["aggregator"])}


def _plan(plan: Any) -> dict[str, Any]:
    if not isinstance(plan, Mapping):
        raise _refused("trials.plan", 'must be an object such as {"k": 3}')
    _only(plan, ("k",), "trials.plan")
    k = plan.get("k", 1)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_TRIALS:
        raise _refused("trials.plan.k", f"must be a whole number from 1 to {MAX_TRIALS}, not {k!r}")
    return {"k": k}


def _aggregator(aggregator: Any) -> dict[str, Any]:
    if not isinstance(aggregator, Mapping):
        raise _refused("trials.aggregator", 'must be an object such as {"name": "mean"}')
    name = aggregator.get("name")
    if not isinstance(name, str) or name not in PARAMETERS:
        raise _refused("trials.aggregator.name", f"{name!r} is none of {', '.join(PARAMETERS)}")
    needed = PARAMETERS[name]
    _only(aggregator, ("name", *needed), f"trials.aggregator ({name})")
    out: dict[str, Any] = {"name": name}
    for parameter in needed:
        value = aggregator.get(parameter)
        key = f"trials.aggregator.{parameter}"
        if parameter == "threshold":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise _refused(key, f"must be a number, not {value!r}")
        elif not isinstance(value, str) or not value:
            raise _refused(key, f"must name a field of the score's meta: {name} needs it")
        out[parameter] = value
    return out


def _only(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = sorted(str(key) for key in given if key not in known)
    if unknown:
        raise _refused(where, f"unknown key {unknown[0]!r}; known: {', '.join(known)}")


def _refused(field: str, message: str) -> LaunchRefused:
    return LaunchRefused(f"{field}: {message}", field=field)

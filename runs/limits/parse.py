"""`limits` and the older `constraints` to one shape; what can't be enforced is refused, never ignored. Pure."""

from __future__ import annotations

import difflib
import math
from typing import Any

from runs.errors import LaunchRefused
from runs.vocabulary import Phase

# level -> quantities that are enforced. "phase:<name>" follows "phase".
ENFORCED: dict[str, frozenset[str]] = {
    "run": frozenset({"cost", "duration", "tokens"}),
    "phase": frozenset({"cost", "duration", "restarts"}),
    "task": frozenset({"cost", "duration", "attempts"}),
    "attempt": frozenset({"cost", "duration", "tokens"}),
}
QUANTITIES = frozenset({"cost", "duration", "tokens", "attempts", "restarts"})
_WHOLE = frozenset({"tokens", "attempts", "restarts"})


def parse_limits(limits: Any, constraints: Any = None) -> tuple[dict[str, dict[str, float]], int | None]:
    """(limits as {level: {quantity: number}}, the most tasks to run or None). Raises LaunchRefused, naming the key."""
    out: dict[str, dict[str, float]] = {}
    if limits is None:
        limits = {}
    if not isinstance(limits, dict):
        raise LaunchRefused('limits must be an object such as {"run": {"cost": 5.0}}.', field="limits")
    for level, group in limits.items():
        base = level.split(":", 1)[0]
        if base not in ENFORCED or (":" in level and base != "phase"):
            raise LaunchRefused(
                f"There is no limit level {level!r}.",
                code="limit_unenforceable",
                field=f"limits.{level}",
                hint="Levels: run, phase, phase:<name>, task, attempt.",
            )
        if ":" in level and level.split(":", 1)[1] not in set(Phase):
            name = level.split(":", 1)[1]
            near = difflib.get_close_matches(name, list(Phase), 1, 0.5)
            raise LaunchRefused(
                f"There is no phase {name!r}.",
                code="limit_unenforceable",
                field=f"limits.{level}",
                hint=f"Did you mean phase:{near[0]}?" if near else f"Phases: {', '.join(Phase)}.",
            )
        if not isinstance(group, dict):
            raise LaunchRefused(f"limits.{level} must be an object of quantities.", field=f"limits.{level}")
        for quantity, value in group.items():
            key = f"limits.{level}.{quantity}"
            if quantity not in ENFORCED[base]:
                why = "can't be enforced" if quantity in QUANTITIES else "is not a quantity"
                raise LaunchRefused(
                    f"{level}.{quantity} {why}.",
                    code="limit_unenforceable",
                    field=key,
                    hint=f"For {base}: {', '.join(sorted(ENFORCED[base]))}.",
                )
            out.setdefault(level, {})[quantity] = _number(value, key, whole=quantity in _WHOLE)
    return out, _older(constraints, out)


def _older(constraints: Any, out: dict[str, dict[str, float]]) -> int | None:
    if constraints is None:
        return None
    if not isinstance(constraints, dict):
        raise LaunchRefused("constraints must be an object.", field="constraints")
    known = {"max_cost_cents", "max_duration_ms", "max_tasks"}
    for key in constraints:
        if key not in known:
            raise LaunchRefused(
                f"There is no constraint {key!r}.",
                field=f"constraints.{key}",
                hint=f"Known: {', '.join(sorted(known))}.",
            )
    run = out.setdefault("run", {})
    if "max_cost_cents" in constraints:
        cents = _number(constraints["max_cost_cents"], "constraints.max_cost_cents")
        run["cost"] = min(run.get("cost", math.inf), cents / 100)
    if "max_duration_ms" in constraints:
        ms = _number(constraints["max_duration_ms"], "constraints.max_duration_ms")
        run["duration"] = min(run.get("duration", math.inf), ms / 1000)
    if not run:
        del out["run"]
    if "max_tasks" in constraints:
        return int(_number(constraints["max_tasks"], "constraints.max_tasks", whole=True))
    return None


def _number(value: Any, key: str, *, whole: bool = False) -> float:
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    if not ok or (whole and value != int(value)):
        kind = "a whole number above 0" if whole else "a number above 0"
        raise LaunchRefused(f"{key} must be {kind}, not {value!r}.", code="limit_unenforceable", field=key)
    return value

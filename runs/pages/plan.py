"""What the launch form says before anything is launched: ready or not, which phases will work, what it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from benchwright.lib import wording
from benchwright.lib.errors import BenchwrightError


@dataclass(frozen=True)
class PlanPhase:
    """One phase of the launch to come. `verdict`: runs, cached or skipped."""

    name: str
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class PlanFact:
    """One line of the panel beside the form."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """The panel beside the form. Not ready and no error means: still being filled in."""

    ready: bool = False
    error: BenchwrightError | None = None
    waiting_for: str = ""
    phases: list[PlanPhase] = field(default_factory=list)
    facts: list[PlanFact] = field(default_factory=list)


_WHY = {
    "find": "work out which benchmark is meant",
    "fetch": "download the data",
    "analyze": "read files, find the task list",
    "setup": "install what the scorer needs",
    "attach": "bind the model, prove it is live",
    "atomize": "write and prove the scorer",
    "materialize": "run and score every task",
}


def smallest_difference(n: int) -> float:
    """The smallest difference between two models that n tasks can show, as a share: 80 % power, 5 % two-sided.

    The worst case for unpaired 0/1 scores near one half; pairing the same tasks usually does better.
    """
    return min(1.0, (1.959964 + 0.841621) * math.sqrt(2 * 0.25 / max(1, n)))


def phases(verdicts: dict[str, Any]) -> list[PlanPhase]:
    """Phases in pipeline order from {name: "runs" | "cached" | "skipped"}."""
    out = []
    for name, why in _WHY.items():
        verdict = str(verdicts.get(name, "runs"))
        words = {"cached": "copied from an earlier run", "skipped": "not needed"}.get(verdict, why)
        out.append(PlanPhase(name, verdict, words))
    return out


def facts(ahead: Any) -> list[PlanFact]:
    """How much will be run, what it can show and about what it costs. `ahead`: a launch preview."""
    out = []
    n = ahead.at_most if ahead.tasks is None else ahead.tasks
    if n is not None:
        up_to = "up to " if ahead.tasks is None else ""
        out.append(PlanFact("Tasks", up_to + wording.count(n)))
        if ahead.k > 1:
            out.append(PlanFact("Trials", up_to + wording.count(n * ahead.k), f"{ahead.k} a task"))
        gap = f"{100 * smallest_difference(n):.0f} points"
        out.append(PlanFact("Can tell apart", gap, "the smallest gap between two models that shows, 80% power"))
    if ahead.tokens is not None:
        out.append(PlanFact("Tokens, about", wording.count(ahead.tokens), ahead.basis))
    if ahead.cost_usd is not None:
        out.append(PlanFact("Model cost, about", wording.usd(ahead.cost_usd), ahead.basis))
    return out

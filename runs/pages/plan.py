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


def smallest_difference(n: int, k: int = 1) -> float:
    """The smallest difference between two models that n tasks can show, as a share: 80 % power, 5 % two-sided.

    The worst case for unpaired 0/1 scores near one half; pairing the same tasks usually does better.
    """
    return min(1.0, (1.959964 + 0.841621) * math.sqrt(2 * 0.25 / max(1, n * max(1, k))))


def phases(verdicts: dict[str, Any]) -> list[PlanPhase]:
    """Phases in pipeline order from {name: "runs" | "cached" | "skipped"}."""
    out = []
    for name, why in _WHY.items():
        verdict = str(verdicts.get(name, "runs"))
        words = {"cached": "copied from an earlier run", "skipped": "not needed"}.get(verdict, why)
        out.append(PlanPhase(name, verdict, words))
    return out


def facts(tasks: int | None, k: int, limit: int | None) -> list[PlanFact]:
    """How much will be run and what it can show."""
    n = limit if tasks is None else min(tasks, limit or tasks)
    out = []
    if n is not None:
        out.append(PlanFact("Tasks", ("up to " if tasks is None else "") + wording.count(n)))
        out.append(PlanFact("Model calls", ("up to " if tasks is None else "") + wording.count(n * k), "one or more a task, as the scorer asks"))
        out.append(
            PlanFact(
                "Can tell apart",
                f"{100 * smallest_difference(n):.0f} points",
                "the smallest gap between two models that this many tasks show, 80% power",
            )
        )
    return out

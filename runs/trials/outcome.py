"""Pass, fail or error: where a score falls, and the rate over many. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from runs.vocabulary import Outcome

PASS_MARK = 1.0


def outcome_of(score: float | None) -> Outcome:
    """`pass` at 1.0, `fail` below it, `err` when there is no score: never one for the other."""
    if score is None:
        return Outcome.ERR
    return Outcome.PASS if score >= PASS_MARK else Outcome.FAIL


@dataclass(frozen=True)
class Rate:
    """passed / (passed + failed), with what that hides.

    `accuracy` is None while nothing was scored. `coverage`: settled / selected. `low`, `high`: the rate if every error
    were a fail, and if every error were a pass; None while nothing is settled.
    """

    passed: int
    failed: int
    errored: int
    selected: int

    @property
    def scored(self) -> int:
        """Tasks with a verdict: the denominator."""
        return self.passed + self.failed

    @property
    def settled(self) -> int:
        """Tasks that are over, errors included."""
        return self.scored + self.errored

    @property
    def accuracy(self) -> float | None:
        """The pass rate; errors are outside."""
        return self.passed / self.scored if self.scored else None

    @property
    def coverage(self) -> float | None:
        """How much of what was selected is settled."""
        return self.settled / self.selected if self.selected else None

    @property
    def low(self) -> float | None:
        """The rate if every error were a fail."""
        return self.passed / self.settled if self.settled else None

    @property
    def high(self) -> float | None:
        """The rate if every error were a pass."""
        return (self.passed + self.errored) / self.settled if self.settled else None

"""Which ceiling a run has passed, from what was measured. Pure: the worker measures, this compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from runs.vocabulary import PAUSE_REASON, WAIT_REASONS, halt_is

CLOCK_EVENTS = ("RunLaunched", "PhaseStarted", "PhaseCompleted", "PhaseFailed", "HaltRequested", "HaltCleared")


@dataclass(frozen=True)
class Measured:
    """What a run has used so far. Dollars exact, seconds without the time it was parked."""

    cost: Decimal = Decimal(0)
    seconds: float = 0.0
    tokens: int = 0
    phase: str | None = None
    phase_cost: Decimal = Decimal(0)
    phase_seconds: float = 0.0
    restarts: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Clock:
    """When the run and its phase began. Time that a run is parked, for a person to come, is nobody's."""

    launched: datetime | None = None
    phase: str | None = None
    phase_seq: int = 0
    phase_at: datetime | None = None
    parked_at: datetime | None = None
    parked: timedelta = timedelta()
    parked_in_phase: timedelta = timedelta()

    def apply(self, seq: int, kind: str, data: Mapping[str, Any], at: datetime) -> None:
        """Takes one event in."""
        match kind:
            case "RunLaunched":
                self.launched = at
            case "PhaseStarted":
                self.phase, self.phase_seq, self.phase_at, self.parked_in_phase = data["phase"], seq, at, timedelta()
            case "PhaseCompleted" | "PhaseFailed":
                self.phase = None
            case "HaltRequested":
                if halt_is(data["reason"], (PAUSE_REASON, *WAIT_REASONS)):
                    self.parked_at = at
            case "HaltCleared":
                if self.parked_at is not None:
                    self.parked += at - self.parked_at
                    self.parked_in_phase += at - self.parked_at
                    self.parked_at = None

    def run_seconds(self, at: datetime) -> float:
        """Seconds since the launch."""
        return (at - self.launched - self.parked).total_seconds() if self.launched else 0.0

    def phase_seconds(self, at: datetime) -> float:
        """Seconds since the phase began; 0 between phases."""
        if self.phase is None or self.phase_at is None:
            return 0.0
        return (at - self.phase_at - self.parked_in_phase).total_seconds()


def clock(rows: Iterable[tuple[int, str, Mapping[str, Any], datetime]]) -> Clock:
    """The clock after these events, in order."""
    out = Clock()
    for row in rows:
        out.apply(*row)
    return out


def exceeded(limits: Mapping[str, Mapping[str, float]], now: Measured) -> str | None:
    """The first ceiling that is passed, as `<level>.<quantity>`, or None. Tasks and attempts are the proxy's."""
    for level, group in limits.items():
        for quantity, limit in group.items():
            if _value(level, quantity, now) > Decimal(str(limit)):
                return f"{level}.{quantity}"
    return None


def watched(limits: Mapping[str, Mapping[str, float]]) -> bool:
    """Whether there is anything to compare here."""
    return any(level.split(":")[0] in ("run", "phase") for level in limits)


def _value(level: str, quantity: str, now: Measured) -> Decimal:
    base, _, name = level.partition(":")
    if base == "run":
        return {"cost": now.cost, "duration": _seconds(now.seconds), "tokens": Decimal(now.tokens)}[quantity]
    if base != "phase":
        return Decimal(0)
    if quantity == "restarts":
        return Decimal(now.restarts.get(name, 0) if name else max(now.restarts.values(), default=0))
    if now.phase is None or (name and name != now.phase):
        return Decimal(0)
    return now.phase_cost if quantity == "cost" else _seconds(now.phase_seconds)


def _seconds(value: float) -> Decimal:
    return Decimal(str(round(value, 3)))

"""Phases: started, completed, failed, restarted."""

from __future__ import annotations

from runs.events.types.base import JSON, Event


class PhaseStarted(Event, frozen=True, kw_only=True):
    """A phase begins to work."""

    phase: str


class PhaseCompleted(Event, frozen=True, kw_only=True):
    """A phase is done. `cache_hit`: {run, seq} of the cell that was copied. `skipped`: why there was nothing to do."""

    phase: str
    duration_ms: float
    cache_hit: JSON = None
    skipped: str | None = None


class PhaseFailed(Event, frozen=True, kw_only=True):
    """A phase could not do its work; the run ends in error. `hint` says what a person can do."""

    phase: str
    error_type: str
    detail: str
    hint: str | None = None
    stack_trace: str | None = None


class PhaseRestarted(Event, frozen=True, kw_only=True):
    """The Driver asked for another try."""

    phase: str
    reason: str

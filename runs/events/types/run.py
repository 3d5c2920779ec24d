"""A run's beginning, halts and end."""

from __future__ import annotations

from runs.events.types.base import JSON, Event


class RunLaunched(Event, frozen=True, kw_only=True):
    """Always seq 0: the body as accepted (no secrets), the ids it resolved to, who asked, and the mode."""

    mode: str
    body: JSON
    benchmark_id: str | None = None
    subset_id: str | None = None
    impl_id: str | None = None
    account: str
    user: str
    trials: JSON
    limits: JSON
    backend: str


class PipelineStarted(Event, frozen=True, kw_only=True):
    """A worker took the run. `epoch` counts takeovers: 1 is the first."""

    epoch: int


class PipelineFinished(Event, frozen=True, kw_only=True):
    """The run ended. `status`: ok or error; a halted run ends with what it had."""

    status: str
    duration_ms: float


class HaltRequested(Event, frozen=True, kw_only=True):
    """The run is to stop. `by`: a username, `driver`, or `limits`."""

    reason: str
    by: str


class HaltCleared(Event, frozen=True, kw_only=True):
    """The run goes on; a review's words go to the Driver."""

    by: str
    review_resolution: str | None = None


class VisibilityChanged(Event, frozen=True, kw_only=True):
    """Who may see the run from now on."""

    visibility: str
    by: str


class RunNarrated(Event, frozen=True, kw_only=True):
    """The run in words."""

    text: str
    usage: JSON = None

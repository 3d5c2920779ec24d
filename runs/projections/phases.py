"""The phases of a run as the timeline shows them, from its story. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from runs.vocabulary import Phase


class _Row(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...
    @property
    def at(self) -> datetime: ...


class _Halting(Protocol):
    halted: bool
    status: str


@dataclass
class PhaseView:
    """`status`: pending, running, ok, failed, skipped or cached. `note`: why it was skipped."""

    name: str
    status: str = "pending"
    duration_ms: float | None = None
    started_at: datetime | None = None
    cache_hit: dict[str, Any] | None = None
    restarts: int = 0
    invocation: int | None = None
    note: str = ""


_ORIGIN = {
    "BenchmarkResolved": Phase.FIND,
    "FetchArtifact": Phase.FETCH,
    "AnalyzeArtifact": Phase.ANALYZE,
    "SetupArtifact": Phase.SETUP,
    "AtomizeArtifact": Phase.ATOMIZE,
}


def phase_views(story: Iterable[_Row], run: _Halting) -> list[PhaseView]:
    """One view for each phase in order; `fork` only where there was one."""
    views = {phase.value: PhaseView(phase.value) for phase in Phase if phase is not Phase.FORK}
    for row in story:
        data = row.data
        name = data.get("phase")
        if name == Phase.FORK and name not in views:
            views = {name: PhaseView(Phase.FORK.value), **views}
        view = views.get(name) if isinstance(name, str) else None
        if view is not None:
            if row.type == "PhaseStarted":
                view.status, view.started_at = "running", row.at
            elif row.type == "PhaseCompleted":
                view.status = "cached" if data["cache_hit"] else "ok"
                view.duration_ms, view.cache_hit = data["duration_ms"], data["cache_hit"]
            elif row.type == "PhaseFailed":
                view.status = "failed"
                if view.started_at:
                    view.duration_ms = (row.at - view.started_at).total_seconds() * 1000
            elif row.type == "PhaseRestarted":
                view.restarts += 1
        elif row.type == "MaterializeStarted":
            views[Phase.MATERIALIZE].invocation = data["invocation"]
        elif row.type in _ORIGIN and views[_ORIGIN[row.type]].status == "pending":
            views[_ORIGIN[row.type]].status = "skipped"
            forked = Phase.FORK in views or data.get("origin") == "inherited"
            views[_ORIGIN[row.type]].note = "inherited" if forked else "pinned"
    if run.status != "running":
        for view in views.values():
            if view.status == "pending":
                view.status = "skipped"
            elif view.status == "running":
                view.status = "failed" if run.status == "error" else "ok"
    return list(views.values())

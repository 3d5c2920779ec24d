"""Fork: what a replay or a fork takes over from its parent, copied into its own log and marked `inherited`.

Copies carry no usage: what the parent spent is the parent's. Attach is never taken over, for it binds credentials.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from runs.errors import LaunchRefused, PhaseFailed
from runs.events.log import read
from runs.events.types.artifact import ForkResolved
from runs.events.types.base import Event
from runs.events.types.union import EVENT_TYPES
from runs.models import Run
from runs.phases.base import Done
from runs.phases.tasks import select
from runs.pipeline.context import Context
from runs.vocabulary import Mode, Phase

# What each phase leaves that a later run can take over.
LEAVES: dict[Phase, tuple[str, ...]] = {
    Phase.FIND: ("BenchmarkResolved",),
    Phase.FETCH: ("FetchArtifact",),
    Phase.ANALYZE: ("AnalyzeArtifact", "DatasetTasksArtifact"),
    Phase.SETUP: ("SetupArtifact",),
    Phase.ATOMIZE: ("AtomizeArtifact",),
}


def fork(ctx: Context) -> Done | None:
    """Copies the parent's artifacts up to the rewound phase. The scorer's copy waits for its turn, after Attach."""
    if ctx.run.mode not in (Mode.REPLAY, Mode.FORK):
        return None
    if "ForkResolved" in ctx.state.artifacts or "BenchmarkResolved" in ctx.state.artifacts:
        return Done() if ctx.state.started == Phase.FORK else None
    forking = ctx.run.mode == Mode.FORK
    rewind = rewind_of(ctx.run)
    found = latest_artifacts(_parent(ctx.run))
    events: list[Event] = [
        _copy(kind, found[kind], ctx.run) for kind in inherited_kinds(ctx.run) if kind != "AtomizeArtifact"
    ]
    if not forking:
        ctx.emit(*events)
        return None
    ctx.start(Phase.FORK)
    body = ctx.state.launched["body"]
    why = body.get("instructions") or "named by the launch"
    ctx.emit(ForkResolved(rewind_to=rewind.value, overrides=body.get("overrides") or {}, why=why), *events)
    return Done()


def inherited_scorer(ctx: Context) -> Event | None:
    """The parent's scorer where this run takes it over, else None."""
    if "AtomizeArtifact" not in inherited_kinds(ctx.run):
        return None
    return _copy("AtomizeArtifact", latest_artifacts(_parent(ctx.run))["AtomizeArtifact"], ctx.run)


def rewind_of(run: Run) -> Phase:
    """The first phase that works; a replay is a fork at Materialize."""
    return Phase(run.rewind_phase or Phase.MATERIALIZE)


def inherited_kinds(run: Run) -> list[str]:
    """Which artifacts this run takes over, in order; an impl named by the launch replaces the parent's scorer."""
    if run.mode not in (Mode.REPLAY, Mode.FORK):
        return []
    kinds = [kind for phase in before(rewind_of(run)) for kind in LEAVES.get(phase, ())]
    return [k for k in kinds if not (k == "AtomizeArtifact" and run.launch.get("impl"))]


def latest_artifacts(run_id: UUID) -> dict[str, dict[str, Any]]:
    """The newest artifact of each type in that run's log."""
    kinds = [kind for left in LEAVES.values() for kind in left]
    return {row.type: row.data for row in read(run_id, types=kinds)}


def missing_before(rewind: Phase, found: dict[str, Any]) -> Phase | None:
    """The first phase before `rewind` that left nothing to take over, or None."""
    return next((p for p in before(rewind) if any(kind not in found for kind in LEAVES.get(p, ()))), None)


def selection(tasks: dict[str, Any], sample: dict[str, Any]) -> list[int] | None:
    """The indices that a sample selects from the parent's task list. Raises LaunchRefused naming the index."""
    try:
        return select(tasks["count"], sample)
    except PhaseFailed as e:
        raise LaunchRefused(e.message, field="sample.indices") from None


def before(rewind: Phase) -> list[Phase]:
    """The phases that come earlier, in order."""
    order = list(Phase)
    return order[: order.index(rewind)]


def _parent(run: Run) -> UUID:
    assert run.parent_id is not None  # the launch set it, and the database protects it
    return run.parent_id


def _copy(kind: str, data: dict[str, Any], run: Run) -> Event:
    data = dict(data)
    if "origin" in data:
        data["origin"] = "inherited"
    if kind == "DatasetTasksArtifact":
        data["selected"] = selection(data, run.sample)  # the same sample selects the same rows
    event: Event = msgspec.convert({"type": kind, **data}, EVENT_TYPES[kind])
    return event

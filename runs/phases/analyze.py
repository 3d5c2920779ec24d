"""Analyze: what the sources hold. Files to rows, rows to subsets, a shape and a field map."""

from __future__ import annotations

from registry.models import Subset
from runs.events.types.artifact import AnalyzeArtifact
from runs.phases.base import Done
from runs.phases.tasks import freeze
from runs.pipeline.context import Context
from runs.vocabulary import Mode, Phase


def analyze(ctx: Context) -> Done | None:
    """Reads the files inside the sandbox and freezes the task list. A pinned launch copies what its subset was made
    with.
    """
    if "DatasetTasksArtifact" in ctx.state.artifacts:
        return Done() if ctx.state.started == Phase.ANALYZE else None
    named = ctx.state.launched["subset_id"] or ctx.state.artifacts["BenchmarkResolved"]["subset"]
    if ctx.run.mode != Mode.NATURAL_LANGUAGE and named:
        _pinned(ctx, Subset.objects.select_related("snapshot").get(pk=named))
    return None


def _pinned(ctx: Context, subset: Subset) -> None:
    """The artifacts that Analyze would leave, marked as pinned: the fingerprint covers them whatever was skipped."""
    made = subset.field_map
    ctx.emit(
        AnalyzeArtifact(
            files=[],
            subsets=[{"name": subset.name, "count": subset.snapshot.count if subset.snapshot else 0}],
            shape=made.get("shape", ""),
            field_map=made,
            why="the subset is pinned",
            origin="pinned",
        ),
        freeze(subset, ctx.run.sample, origin="pinned"),
    )
    return

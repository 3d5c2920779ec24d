"""Which tasks a run is about: its frozen snapshot and the indices it selected."""

from __future__ import annotations

import random
from typing import Any

from registry.models import Subset, SubsetSnapshot
from runs.errors import PhaseFailed
from runs.events.types.artifact import DatasetTasksArtifact
from runs.pipeline.context import Context


def snapshot_of(ctx: Context) -> SubsetSnapshot:
    """The snapshot that this run's DatasetTasksArtifact froze. A later append to the subset doesn't move it."""
    tasks = ctx.state.artifacts["DatasetTasksArtifact"]
    return SubsetSnapshot.objects.select_related("subset").get(
        subset_id=tasks["subset_id"], digest=tasks["snapshot_digest"]
    )


def freeze(subset: Subset, sample: dict[str, Any], *, origin: str = "own") -> DatasetTasksArtifact:
    """The artifact for this subset's current snapshot and the launch's sample."""
    if subset.snapshot is None:
        raise PhaseFailed(f"{subset.id} has no tasks yet.", code="no_tasks")
    return DatasetTasksArtifact(
        subset_id=subset.id,
        snapshot_digest=subset.snapshot.digest,
        count=subset.snapshot.count,
        selected=select(subset.snapshot.count, sample),
        origin=origin,
    )


def select(count: int, sample: dict[str, Any]) -> list[int] | None:
    """The selected indices in order, or None for all. A limit takes the first ones, or with a seed a random draw."""
    indices = list(range(count))
    if sample.get("indices"):
        beyond = [i for i in sample["indices"] if i >= count]
        if beyond:
            raise PhaseFailed(f"There are {count} tasks; there is no index {beyond[0]}.", code="no_such_index")
        indices = list(sample["indices"])
    limit = sample.get("limit")
    if limit is not None and limit < len(indices):
        if sample.get("seed") is not None:
            indices = sorted(random.Random(sample["seed"]).sample(indices, limit))
        else:
            indices = indices[:limit]
    return None if len(indices) == count else indices

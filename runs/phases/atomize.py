"""Atomize: the scorer, written by the Driver and accepted on proof; or the pinned one."""

from __future__ import annotations

from registry.models import Impl
from runs.events.types.artifact import AtomizeArtifact
from runs.phases.base import Done
from runs.pipeline.context import Context
from runs.vocabulary import Phase

IMPL_PATH = "/workspace/task_impl.py"


def atomize(ctx: Context) -> Done | None:
    """Publishes the scorer as an immutable impl. Pinned and resolved: the artifact is copied and nothing is done."""
    if "AtomizeArtifact" in ctx.state.artifacts:
        return Done() if ctx.state.started == Phase.ATOMIZE else None
    pinned = ctx.state.launched["impl_id"]
    if pinned:
        impl = Impl.objects.get(pk=pinned)
        ctx.emit(
            AtomizeArtifact(
                invocation=0,
                impl_id=impl.id,
                sha256=impl.impl_fingerprint,
                source=impl.source,
                proof=impl.proof,
                origin="pinned",
            )
        )
        return None
    return None

"""At the end: the fingerprint, the comparability key and the identity, from the log."""

from __future__ import annotations

from runs.fingerprints.identity import identity_of
from runs.models import Run
from runs.pipeline.context import Context


def seal_identity(ctx: Context) -> None:
    """Writes what the artifacts say onto the run's row. Before the end these columns are empty."""
    found = identity_of(ctx.state.ordered, trials=ctx.run.trials_config, limits=ctx.run.limits)
    Run.objects.filter(pk=ctx.run.pk, lease_epoch=ctx.lease.epoch).update(
        fingerprint=found.fingerprint[:12],
        fingerprint_sha256=found.fingerprint,
        comparability_key=found.comparability_key,
    )

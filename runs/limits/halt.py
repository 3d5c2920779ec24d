"""The one way a run stops: the row says so, the log says why, the worker looks."""

from __future__ import annotations

from django.db import transaction

from runs.errors import AlreadyEnded
from runs.events.log import append
from runs.events.types.run import HaltRequested
from runs.models import Run
from runs.vocabulary import PAUSE_REASON, WAIT_REASONS, RunStatus, halt_is


@transaction.atomic
def request_halt(run: Run, reason: str, *, by: str, epoch: int | None = None) -> None:
    """Asks the run to stop; the pipeline sees it within two seconds. Raises AlreadyEnded.

    A parked run (paused or waiting) can still be stopped for good.
    """
    locked = Run.objects.select_for_update().get(pk=run.pk)
    if locked.status != RunStatus.RUNNING:
        raise AlreadyEnded("This run has ended.", hint="Launch it again, or fork it.")
    parked = halt_is(locked.halt_reason, (PAUSE_REASON, *WAIT_REASONS))
    if locked.halted and (not parked or halt_is(reason, PAUSE_REASON)):
        raise AlreadyEnded(f"This run is halted already: {locked.halt_reason}.")
    append(run.pk, [HaltRequested(reason=reason, by=by)], epoch=epoch)

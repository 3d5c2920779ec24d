"""Stop, pause, resume, resolve a review."""

from __future__ import annotations

from django.db import transaction

from runs.errors import NotPaused, NotWaiting
from runs.events.log import append
from runs.events.types.run import HaltCleared
from runs.limits.halt import request_halt
from runs.models import Run
from runs.pipeline.dispatch import dispatch_on_commit
from runs.vocabulary import PAUSE_REASON, WAIT_REASONS, halt_is


def stop(run: Run, *, by: str) -> None:
    """Stops a run for good, keeping what is settled. A parked run, which no worker holds, is handed to one to be
    closed.
    """
    parked = run.halted
    request_halt(run, f"operator_kill: by {by}", by=by)
    if parked:
        _hand_on(run)


def pause(run: Run, *, by: str) -> None:
    """Parks a run until `resume`."""
    request_halt(run, f"operator_pause: by {by}", by=by)


@transaction.atomic
def resume(run: Run, *, by: str) -> None:
    """Goes on with a paused run. Raises NotPaused."""
    locked = Run.objects.select_for_update().get(pk=run.pk)
    if not locked.halted or not halt_is(locked.halt_reason, PAUSE_REASON):
        raise NotPaused(
            "Only a paused run can be resumed.",
            hint="A run that waits for a review goes on with PATCH review_resolution.",
        )
    append(run.pk, [HaltCleared(by=by)])
    _hand_on(run)


@transaction.atomic
def resolve_review(run: Run, words: str, *, by: str) -> None:
    """Gives a waiting run a person's words and lets it go on. Raises NotWaiting."""
    locked = Run.objects.select_for_update().get(pk=run.pk)
    if not locked.halted or not halt_is(locked.halt_reason, WAIT_REASONS):
        raise NotWaiting("This run does not wait for a review.")
    append(run.pk, [HaltCleared(by=by, review_resolution=words)])
    _hand_on(run)


def _hand_on(run: Run) -> None:
    dispatch_on_commit(run.pk)

"""Celery's entries."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.db.models import Q

from benchwright.lib.clock import now
from runs.models import Run
from runs.pipeline import runner
from runs.pipeline.dispatch import dispatch
from runs.vocabulary import PAUSE_REASON, WAIT_REASONS, RunStatus, halt_is

REDISPATCH_SECONDS = 15  # a message that nobody took in this time is taken for lost


@shared_task(name="runs.tasks.run_pipeline", ignore_result=True, acks_late=False)
def run_pipeline(run_id: str) -> None:
    """Works on one run until it ends, is halted, or is someone else's."""
    runner.run_pipeline(UUID(run_id))


@shared_task(name="runs.tasks.recover", ignore_result=True)
def recover() -> None:
    """Hands out runs whose worker has gone: the lease has expired, or the message never arrived."""
    at = now()
    gone = Q(heartbeat_at__lt=at - timedelta(seconds=settings.LEASE_SECONDS))
    never = Q(heartbeat_at=None) & (
        Q(dispatched_at=None) | Q(dispatched_at__lt=at - timedelta(seconds=REDISPATCH_SECONDS))
    )
    asked = Q(dispatched_at=None) | Q(dispatched_at__lt=at - timedelta(seconds=settings.LEASE_SECONDS / 2))
    for run in Run.objects.filter(Q(status=RunStatus.RUNNING) & (gone | never) & asked).only(
        "id", "halted", "halt_reason"
    ):
        if not (run.halted and halt_is(run.halt_reason, (PAUSE_REASON, *WAIT_REASONS))):
            dispatch(run.pk)


@shared_task(name="runs.tasks.reap", ignore_result=True)
def reap() -> None:
    """Kills sandboxes whose run has ended or is parked and that no worker holds."""
    from runs.pipeline.reaper import reap_orphans

    reap_orphans()

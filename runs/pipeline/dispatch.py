"""Hands a run to a worker after the launch is committed. A lost message costs nothing: beat dispatches again."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from benchwright.lib.clock import now
from runs.models import Run

log = logging.getLogger(__name__)


def dispatch_on_commit(run_id: UUID) -> None:
    """Queues the run once the surrounding transaction is committed."""
    transaction.on_commit(lambda: dispatch(run_id))


def dispatch(run_id: UUID) -> None:
    """Queues the run now. A broker that is away is logged: the run waits for beat."""
    from benchwright.celery import app

    Run.objects.filter(pk=run_id).update(dispatched_at=now())
    try:
        app.send_task("runs.tasks.run_pipeline", [str(run_id)], ignore_result=True, retry=False)
    except (OperationalError, RedisError, OSError) as e:
        log.warning("run %s waits: the broker is away (%s)", run_id, e)

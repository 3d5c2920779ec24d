"""No sandbox outlives its run: orphans are found by their label and killed."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from uuid import UUID

from django.conf import settings

from benchwright.lib.clock import now
from benchwright.lib.errors import BenchwrightError
from runs.models import Run
from runs.vocabulary import PAUSE_REASON, WAIT_REASONS, RunStatus, halt_is
from sandboxes.backends.choose import open_backend

log = logging.getLogger(__name__)
GRACE_SECONDS = 60


def reap_orphans() -> int:
    """Kills and counts them. A backend that is away is left for the next time."""
    killed = 0
    try:
        backend = open_backend()
        for box in backend.list({}):
            label = box.labels.get("benchwright_run")
            if label and time.time() - box.created_at > GRACE_SECONDS and _is_orphan(label):
                backend.attach(box.id).kill()
                killed += 1
    except BenchwrightError as e:
        log.warning("reaper: %s", e.message)
    return killed


def _is_orphan(run_id: str) -> bool:
    try:
        run = Run.objects.filter(pk=UUID(run_id)).first()
    except ValueError:
        return False
    if run is None:
        return False  # another installation's
    held = run.heartbeat_at is not None and run.heartbeat_at > now() - timedelta(seconds=settings.LEASE_SECONDS * 2)
    parked = run.halted and halt_is(run.halt_reason, (PAUSE_REASON, *WAIT_REASONS))
    return not held and (run.status != RunStatus.RUNNING or parked)

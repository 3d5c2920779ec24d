"""One worker per run: a lease with an epoch, renewed while it works, and lost when it dies."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import Error, connection
from django.db.models import F, Q

from benchwright.lib.clock import now
from runs.errors import StaleWorker
from runs.models import Run
from runs.vocabulary import RunStatus


def claim(run_id: UUID) -> int | None:
    """Takes the run for this worker; the new epoch, or None when another holds it or there is nothing to do."""
    expired = now() - timedelta(seconds=settings.LEASE_SECONDS)
    taken = Run.objects.filter(
        Q(heartbeat_at=None) | Q(heartbeat_at__lt=expired), pk=run_id, status=RunStatus.RUNNING
    ).update(lease_epoch=F("lease_epoch") + 1, heartbeat_at=now())
    return Run.objects.values_list("lease_epoch", flat=True).get(pk=run_id) if taken else None


class Lease:
    """Renews the lease from a thread and brings back what the row says: halted or not, stale or not."""

    def __init__(self, run_id: UUID, epoch: int) -> None:
        self.run_id = run_id
        self.epoch = epoch
        self.halt_reason: str | None = None
        self.on_beat: Callable[[], None] | None = None  # called in the lease's thread, once a beat
        self._stale = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(5)
        Run.objects.filter(pk=self.run_id, lease_epoch=self.epoch).update(heartbeat_at=None)

    def check(self) -> None:
        """Raises StaleWorker once another worker has taken over."""
        if self._stale:
            raise StaleWorker("Another worker has taken this run over.")

    def look(self) -> str | None:
        """The halt reason as the row has it now."""
        self._look()
        return self.halt_reason

    def _beat(self) -> None:
        try:
            while not self._over.wait(settings.HEARTBEAT_SECONDS):
                try:
                    if not Run.objects.filter(pk=self.run_id, lease_epoch=self.epoch).update(heartbeat_at=now()):
                        self._stale = True
                        return
                    self._look()
                    if self.on_beat is not None:
                        self.on_beat()
                except Error:
                    connection.close()  # the database is away: try again with a new connection
        finally:
            connection.close()

    def _look(self) -> None:
        halted, reason = Run.objects.values_list("halted", "halt_reason").get(pk=self.run_id)
        self.halt_reason = reason if halted else None

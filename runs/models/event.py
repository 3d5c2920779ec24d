"""One row of the log. Only `runs.events` may import this."""

from __future__ import annotations

from django.db import models


class RunEvent(models.Model):
    """One event of one run. `body` is the truth: canonical JSON text of {at, data, seq, type}, over which `digest` is
    chained. `data` is a copy for queries, with NUL and lone surrogates made harmless. There is no `updated_at`: the
    database refuses UPDATE and DELETE.
    """

    pk = models.CompositePrimaryKey("run_id", "seq")
    run_id = models.UUIDField()
    seq = models.BigIntegerField()
    type = models.CharField(max_length=40)
    body = models.TextField()
    data = models.JSONField()
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "trace_events"

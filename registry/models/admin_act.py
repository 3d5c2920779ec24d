"""What admins did, for good."""

from __future__ import annotations

from django.db import models


class AdminAct(models.Model):
    """One act of one admin: who, when, on what, why, and what was known (`data`). The database keeps it as it is.

    A table and not the server's log, because whoever trusts an official scorer must be able to read why it is one, next
    to it, years later, and because it is written in the transaction of the act. `by` and `user_id` are plain values:
    the act outlives the person's account.
    """

    act = models.CharField(max_length=20)
    subject = models.CharField(max_length=200)
    by = models.CharField(max_length=150)
    user_id = models.BigIntegerField()
    reason = models.TextField()
    data = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "admin_acts"
        indexes = [models.Index(fields=["subject", "id"], name="acts_on_subject")]

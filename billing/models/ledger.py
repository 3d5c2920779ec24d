"""The account's book: a balance is the sum of its entries, and no entry ever changes."""

from __future__ import annotations

from django.db import models


class LedgerEntry(models.Model):
    """One credit (+) or debit (-), in dollars. `(run_id, seq_to)` is unique: settling a stretch of a log twice is
    impossible.
    """

    account = models.ForeignKey("billing.Account", models.PROTECT, related_name="ledger")
    amount_usd = models.DecimalField(max_digits=24, decimal_places=12)
    kind = models.CharField(max_length=10)
    reason = models.CharField(max_length=200)
    run_id = models.UUIDField(null=True)  # a plain value: this app knows no run
    seq_from = models.BigIntegerField(null=True)
    seq_to = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "ledger_entries"
        constraints = [models.UniqueConstraint(fields=["run_id", "seq_to"], name="a_stretch_is_settled_once")]

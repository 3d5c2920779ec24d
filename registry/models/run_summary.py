"""One row for each finished run: what leaderboards read. A trigger of `runs` fills it; nothing here looks up."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

_SCORED = Q(status="ok", accuracy__isnull=False)


class RunSummary(models.Model):
    """The identity of a finished run and its result. `accuracy` null: nothing could be scored."""

    run_id = models.UUIDField(primary_key=True)
    account_id = models.BigIntegerField()
    benchmark_id = models.CharField(max_length=80, null=True)
    subset_id = models.CharField(max_length=200, null=True)
    impl_id = models.CharField(max_length=120, null=True)
    model = models.JSONField()
    model_key = models.CharField(max_length=300)
    status = models.CharField(max_length=10)
    visibility = models.CharField(max_length=10)
    comparability_key = models.CharField(max_length=64, blank=True)
    accuracy = models.FloatField(null=True)
    selected = models.IntegerField(default=0)
    passed = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    errored = models.IntegerField(default=0)
    cost_model = models.DecimalField(max_digits=24, decimal_places=12, null=True)
    finished_at = models.DateTimeField()

    class Meta:
        db_table = "benchmark_run_summaries"
        indexes = [
            models.Index(fields=["account_id", "-finished_at"], name="summaries_of_account"),
            # Leaderboards hop from model to model: each index leads to one model's best run in a few pages, however
            # many runs there are.
            models.Index(
                fields=["subset_id", "visibility", "model_key", "-accuracy", "finished_at"],
                include=["passed", "failed"],
                condition=_SCORED,
                name="board_best",
            ),
            models.Index(
                fields=["account_id", "subset_id", "model_key", "-accuracy", "finished_at"],
                condition=_SCORED,
                name="board_own",
            ),
            models.Index(
                fields=["subset_id", "visibility", "impl_id", "model_key", "-accuracy", "finished_at"],
                condition=_SCORED,
                name="board_impl",
            ),
            models.Index(
                fields=["subset_id", "visibility", "comparability_key", "model_key", "-accuracy", "finished_at"],
                include=["passed", "failed", "selected", "cost_model"],
                condition=_SCORED,
                name="board_ruler",
            ),
            models.Index(
                F("subset_id"),
                F("visibility"),
                F("model_key"),
                (F("passed") + F("failed")).desc(),
                condition=_SCORED,
                name="board_coverage",
            ),
        ]

"""The run's row: what was asked for, frozen, and projections of its log."""

from __future__ import annotations

from typing import Any

from django.db import models

from benchwright.lib.ids import uuid7
from registry.vocabulary import Visibility
from runs.vocabulary import DisplayStatus, RunStatus, display_status


def _money() -> models.DecimalField[Any, Any]:
    return models.DecimalField(max_digits=24, decimal_places=12, default=0)


class Run(models.Model):
    """One run. Everything under "projections" is rebuilt from the log by `rebuild_projections`; the rest is frozen
    at launch.

    `cost_*` are dollars for the calls whose price is known; `unknown_cost_calls` counts the others. There is no `score`
    column: a score is always computed from the counts beside it, with its coverage.
    """

    id = models.UUIDField(primary_key=True, default=uuid7)
    account = models.ForeignKey("billing.Account", models.PROTECT, related_name="runs")
    user = models.ForeignKey("billing.User", models.PROTECT, related_name="+")
    title = models.CharField(max_length=200)
    mode = models.CharField(max_length=20)
    prompt = models.TextField(blank=True)
    launch = models.JSONField(default=dict)  # the body as accepted, without secrets
    model = models.JSONField()
    driver = models.CharField(max_length=200)
    harness = models.CharField(max_length=20, default="benchwright")
    backend = models.CharField(max_length=20, default="local")
    trials_config = models.JSONField()
    limits = models.JSONField(default=dict)
    sample = models.JSONField(default=dict)
    concurrency = models.IntegerField(default=32)
    metadata = models.JSONField(default=dict)
    visibility = models.CharField(max_length=10, default=Visibility.PRIVATE)
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="children")
    rewind_phase = models.CharField(max_length=20, blank=True)
    run_group = models.CharField(max_length=100, blank=True)
    key_secret = models.BinaryField()  # signs the fake keys of this run; worthless outside its proxy
    created_at = models.DateTimeField(auto_now_add=True)
    idempotency_key = models.CharField(max_length=200, blank=True)
    body_digest = models.CharField(max_length=64, blank=True)

    # the lease: one worker at a time
    lease_epoch = models.BigIntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)

    # the log's head
    next_seq = models.BigIntegerField(default=0)
    head_digest = models.CharField(max_length=64, blank=True)

    # projections
    status = models.CharField(max_length=10, default=RunStatus.RUNNING)
    halted = models.BooleanField(default=False)
    halt_reason = models.TextField(blank=True)
    phase = models.CharField(max_length=20, blank=True)
    invocation = models.IntegerField(default=0)
    benchmark_id = models.CharField(max_length=80, null=True)
    subset_id = models.CharField(max_length=200, null=True)
    impl_id = models.CharField(max_length=120, null=True)
    fingerprint = models.CharField(max_length=12, blank=True)
    fingerprint_sha256 = models.CharField(max_length=64, blank=True)
    comparability_key = models.CharField(max_length=64, blank=True)
    tasks_selected = models.IntegerField(null=True)
    tasks_passed = models.IntegerField(default=0)
    tasks_failed = models.IntegerField(default=0)
    tasks_errored = models.IntegerField(default=0)
    score_sum = models.FloatField(default=0)
    score_squares = models.FloatField(default=0)
    cost_driver = _money()
    cost_model = _money()
    cost_sandbox = _money()
    cost_narration = _money()
    cost_judge = _money()
    cost_proxy_linger = _money()
    unknown_cost_calls = models.BigIntegerField(default=0)
    tokens_in = models.BigIntegerField(default=0)
    tokens_out = models.BigIntegerField(default=0)
    requests = models.BigIntegerField(default=0)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "traces"
        constraints = [
            # A repeated request must find the first run, however close together the two come.
            models.UniqueConstraint(
                fields=["account", "idempotency_key"], condition=~models.Q(idempotency_key=""), name="a_launch_once"
            )
        ]
        indexes = [
            models.Index(fields=["account", "-created_at"], name="runs_of_account"),
            models.Index(fields=["status", "heartbeat_at"], name="runs_to_recover"),
            models.Index(fields=["subset_id", "-created_at"], name="runs_of_subset"),
        ]

    @property
    def display_status(self) -> DisplayStatus:
        return display_status(self.status, self.halted, self.halt_reason)

    @property
    def display_name(self) -> str:
        """The model as people call it."""
        return str(self.model.get("label") or self.model.get("identifier"))

"""Projections that have rows of their own. All of them may be thrown away and rebuilt from the log."""

from __future__ import annotations

from django.db import models


class TaskRow(models.Model):
    """One task of one Materialize invocation. `trials` lists {trial, seq, score, outcome}; `seq` points at the
    event.
    """

    pk = models.CompositePrimaryKey("run_id", "invocation", "index")
    run_id = models.UUIDField()
    invocation = models.IntegerField()
    index = models.IntegerField()
    outcome = models.CharField(max_length=8)
    score = models.FloatField(null=True)
    trials = models.JSONField(default=list)
    latency_ms = models.FloatField(null=True)

    class Meta:
        db_table = "trace_tasks"


class PhaseCell(models.Model):
    """A finished phase that others may reuse: its inputs' hash, the run that did it, and where in its log."""

    phase = models.CharField(max_length=20)
    input_hash = models.CharField(max_length=64)
    account_id = models.BigIntegerField()
    run = models.ForeignKey("Run", models.CASCADE, related_name="cells")
    seq = models.BigIntegerField()
    snapshot_id = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "phase_fingerprints"
        indexes = [models.Index(fields=["phase", "input_hash", "-created_at"], name="cells_by_hash")]


class SandboxRow(models.Model):
    """One sandbox of one run: from SandboxCreated and SandboxKilled."""

    id = models.CharField(max_length=80, primary_key=True)
    run_id = models.UUIDField()
    role = models.CharField(max_length=20)
    backend = models.CharField(max_length=20)
    size = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    killed_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=200, blank=True)
    cost_usd = models.DecimalField(max_digits=24, decimal_places=12, null=True)

    class Meta:
        db_table = "sandboxes"
        indexes = [models.Index(fields=["run_id"], name="sandboxes_of_run")]


class SnapshotRow(models.Model):
    """One saved workspace of one run."""

    id = models.CharField(max_length=80, primary_key=True)
    run_id = models.UUIDField()
    phase = models.CharField(max_length=20)
    digest = models.CharField(max_length=64)
    size = models.BigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "snapshots"
        indexes = [models.Index(fields=["run_id"], name="snapshots_of_run")]

"""A benchmark, its subsets and their frozen task lists."""

from __future__ import annotations

from django.db import models

from registry.vocabulary import BenchmarkKind, Visibility


class Benchmark(models.Model):
    """What is measured. `source` says where the data come from: {"files": [{name, sha256}]} or {"url": …}."""

    id = models.CharField(max_length=80, primary_key=True)
    name = models.CharField(max_length=160)
    owner = models.ForeignKey("billing.Account", models.PROTECT, related_name="benchmarks")
    visibility = models.CharField(max_length=10, default=Visibility.PRIVATE)
    description = models.TextField(blank=True)
    kind = models.CharField(max_length=12, default=BenchmarkKind.DATASET)
    source = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "benchmarks"

    def __str__(self) -> str:
        return self.name


class Subset(models.Model):
    """One task list of a benchmark. Its id is `<benchmark>/<name>`."""

    id = models.CharField(max_length=200, primary_key=True)
    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="subsets")
    name = models.CharField(max_length=100)
    subset_fingerprint = models.CharField(max_length=64)
    rolling = models.BooleanField(default=False)
    synthetic = models.BooleanField(default=False)
    default_trials = models.JSONField(null=True)
    field_map = models.JSONField(default=dict)
    snapshot = models.ForeignKey("SubsetSnapshot", models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "benchmark_subsets"


class SubsetSnapshot(models.Model):
    """An immutable, ordered task list. `rows_blob` names JSON lines of {row, reference, choices}."""

    subset = models.ForeignKey(Subset, models.CASCADE, related_name="snapshots")
    digest = models.CharField(max_length=64)
    count = models.IntegerField()
    rows_blob = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "benchmark_subset_snapshots"
        constraints = [models.UniqueConstraint(fields=["subset", "digest"], name="a_task_list_is_stored_once")]

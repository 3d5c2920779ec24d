"""One immutable scorer, named by its content."""

from __future__ import annotations

from django.db import models


class Impl(models.Model):
    """A scorer file. The id is `<benchmark>:<12 hex of its SHA-256>`; `impl_fingerprint` is the whole digest."""

    id = models.CharField(max_length=120, primary_key=True)
    benchmark = models.ForeignKey("Benchmark", models.CASCADE, related_name="impls")
    subset = models.ForeignKey("Subset", models.CASCADE, null=True, related_name="impls")
    impl_fingerprint = models.CharField(max_length=64)
    source = models.TextField()
    official = models.BooleanField(default=False)
    promoted_by = models.ForeignKey("billing.User", models.SET_NULL, null=True)
    promoted_at = models.DateTimeField(null=True)
    promotion_reason = models.TextField(blank=True)
    proof = models.JSONField(default=dict)
    origin_run = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "benchmark_subset_impls"

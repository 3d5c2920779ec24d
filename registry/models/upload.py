"""A file that someone handed in and that a launch may name."""

from __future__ import annotations

from django.db import models


class Upload(models.Model):
    """One uploaded file. The bytes are the blob `sha256`."""

    id = models.CharField(max_length=40, primary_key=True)
    account = models.ForeignKey("billing.Account", models.CASCADE, related_name="uploads")
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "uploads"

"""Bodies that are too big for a row, named by their content."""

from __future__ import annotations

import zlib

from django.db import models

from benchwright.lib.canonical import sha256


class Blob(models.Model):
    """Immutable bytes. `data` is zlib-compressed, or null once expired: the name and the size stay."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.BigIntegerField()
    data = models.BinaryField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "blobs"


def put_blob(data: bytes) -> str:
    """Stores once, returns the SHA-256 name."""
    name = sha256(data)
    Blob.objects.bulk_create([Blob(sha256=name, size=len(data), data=zlib.compress(data, 1))], ignore_conflicts=True)
    return name


def get_blob(name: str) -> bytes | None:
    """The bytes, or None when the body is unknown or has expired."""
    blob = Blob.objects.filter(sha256=name).first()
    return None if blob is None or blob.data is None else zlib.decompress(bytes(blob.data))

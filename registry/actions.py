"""Write benchmarks, subsets, snapshots, impls and uploads. What is published never changes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import transaction

from benchwright.lib.canonical import canonical, sha256
from benchwright.lib.ids import slug, token
from billing.models import Account
from registry.errors import ImplIsImmutable
from registry.models import Benchmark, Impl, Subset, SubsetSnapshot, Upload
from registry.models.blob import put_blob


def save_upload(account: Account, name: str, data: bytes) -> Upload:
    """Keeps the bytes; the same bytes under the same name give the same upload."""
    clean = re.sub(r"[^\w.() -]+", "_", name.replace("\\", "/").rsplit("/", 1)[-1]).strip(". ")[:160] or "upload"
    digest = put_blob(data)
    found = Upload.objects.filter(account=account, name=clean, sha256=digest).first()
    return found or Upload.objects.create(id=token("file"), account=account, name=clean, sha256=digest, size=len(data))


def open_benchmark(account: Account, name: str, *, source: dict[str, Any], description: str = "") -> Benchmark:
    """A private benchmark of this account: the one with the same name and source, else a new one with a free id."""
    same = Benchmark.objects.filter(owner=account, name=name, source=source).first()
    if same:
        return same
    base = slug(name, limit=60)
    with transaction.atomic():
        taken = set(Benchmark.objects.filter(pk__startswith=base).values_list("pk", flat=True))
        key = base
        while key in taken:
            key = f"{base}-{token('x', 3)[2:]}"
        return Benchmark.objects.create(id=key, name=name, owner=account, source=source, description=description)


def task_list_digest(rows: Iterable[dict[str, Any]]) -> str:
    """SHA-256 over the canonical rows, in order: is this the same task list?"""
    return sha256("\n".join(canonical(r["row"]) for r in rows))


@transaction.atomic
def save_subset(
    benchmark: Benchmark, name: str, rows: list[dict[str, Any]], *, field_map: dict[str, Any], synthetic: bool = False
) -> tuple[Subset, SubsetSnapshot]:
    """The subset of this name with these tasks ({row, reference, choices}) as its current snapshot.

    Other tasks under the same name make a new snapshot; the earlier one stays for the runs that used it.
    """
    digest = task_list_digest(rows)
    subset, _ = Subset.objects.get_or_create(
        id=f"{benchmark.id}/{name}",
        defaults={
            "benchmark": benchmark,
            "name": name,
            "subset_fingerprint": digest,
            "field_map": field_map,
            "synthetic": synthetic,
        },
    )
    snapshot = SubsetSnapshot.objects.filter(subset=subset, digest=digest).first()
    if snapshot is None:
        blob = put_blob("\n".join(canonical(r) for r in rows).encode())
        snapshot = SubsetSnapshot.objects.create(subset=subset, digest=digest, count=len(rows), rows_blob=blob)
    if subset.snapshot_id != snapshot.pk or subset.field_map != field_map:
        subset.snapshot, subset.subset_fingerprint, subset.field_map = snapshot, digest, field_map
        subset.save(update_fields=["snapshot", "subset_fingerprint", "field_map"])
    return subset, snapshot


def impl_id(benchmark_id: str, source: str) -> str:
    """`<benchmark>:<first 12 hex of the file's SHA-256>`."""
    return f"{benchmark_id}:{sha256(source)[:12]}"


def publish_impl(
    benchmark: Benchmark, subset: Subset | None, source: str, *, proof: dict[str, Any], run_id: UUID | None
) -> Impl:
    """The impl with exactly this source; publishing the same file again gives the same impl."""
    key = impl_id(benchmark.id, source)
    impl, created = Impl.objects.get_or_create(
        id=key,
        defaults={
            "benchmark": benchmark,
            "subset": subset,
            "impl_fingerprint": sha256(source),
            "source": source,
            "proof": proof,
            "origin_run": run_id,
        },
    )
    if not created and impl.source != source:
        raise ImplIsImmutable(f"{key} exists with another source.")
    return impl

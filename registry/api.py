"""API v1 of the registry: files, benchmarks, subsets, impls."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Router, Status

from benchwright.auth import caller, writer
from benchwright.lib.clock import stamp
from benchwright.lib.errors import BenchwrightError
from registry.actions import save_upload
from registry.models import Benchmark
from registry.queries import find_benchmark, visible_benchmarks

router = Router(tags=["registry"])


@router.post("/files", response={201: dict}, summary="Upload a file")
def upload(request: HttpRequest) -> Status:
    """multipart/form-data with one part called file. Answers with the id that a launch's `files` takes."""
    who = writer(request)
    given = request.FILES.get("file")
    if given is None:
        raise BenchwrightError(
            "There is no part called file.",
            code="invalid_request",
            field="file",
            hint="Send multipart/form-data: curl -F file=@rows.jsonl",
        )
    if given.size is None or given.size > settings.UPLOAD_MAX_BYTES:
        raise BenchwrightError(
            f"The file is larger than {settings.UPLOAD_MAX_BYTES >> 20} MB.",
            code="file_too_large",
            status=413,
            field="file",
            hint="Compress it, or give its URL as source.",
        )
    if given.size == 0:
        raise BenchwrightError("The file is empty.", code="file_empty", field="file")
    kept = save_upload(who.account, given.name or "upload", given.read())
    return Status(201, {"id": kept.id, "name": kept.name, "bytes": kept.size, "sha256": kept.sha256})


@router.get("/registry/benchmarks", summary="List benchmarks")
def list_benchmarks(request: HttpRequest) -> dict[str, Any]:
    """Public ones and your own."""
    found = visible_benchmarks(caller(request).account).prefetch_related("subsets").order_by("id")
    return {"data": [_json(b) for b in found]}


@router.get("/registry/benchmarks/{benchmark_id}", summary="Read a benchmark")
def read_benchmark(request: HttpRequest, benchmark_id: str) -> dict[str, Any]:
    """With its subsets and impls."""
    b = find_benchmark(caller(request).account, benchmark_id)
    impls = [
        {"id": i.id, "official": i.official, "subset_id": i.subset_id, "created_at": stamp(i.created_at)}
        for i in b.impls.order_by("-created_at")
    ]
    return {**_json(b), "impls": impls}


def _json(b: Benchmark) -> dict[str, Any]:
    return {
        "id": b.id,
        "name": b.name,
        "description": b.description,
        "visibility": b.visibility,
        "kind": b.kind,
        "created_at": stamp(b.created_at),
        "subsets": [
            {
                "id": s.id,
                "name": s.name,
                "fingerprint": s.subset_fingerprint,
                "count": s.snapshot.count if s.snapshot else None,
            }
            for s in b.subsets.all()
        ],
    }

"""API v1 of the registry: files, benchmarks, subsets, impls."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Router, Status

from benchwright.auth import caller, writer
from benchwright.lib.clock import stamp
from benchwright.lib.errors import BenchwrightError
from registry.actions import save_upload
from registry.immunity import failings
from registry.models import Benchmark, Impl
from registry.official import acts_on, demote, promote
from registry.queries import find_benchmark, impl_by_id, visible_benchmarks

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


@router.get("/registry/impls/{impl_id}", summary="Read a scorer")
def read_impl(request: HttpRequest, impl_id: str) -> dict[str, Any]:
    """Its source, its proof, its standing, and what admins did to it."""
    return _impl(impl_by_id(caller(request).account, impl_id))


@router.post("/registry/impls/{impl_id}/promote", summary="Make a scorer official")
def promote_impl(request: HttpRequest, impl_id: str) -> dict[str, Any]:
    """Admins only. reason; override: why it may be official although a check of its proof failed."""
    who = writer(request)
    words = _words(request, "reason", "override")
    impl = impl_by_id(who.account, impl_id)
    return _impl(promote(who.user, impl, words["reason"], override=words["override"]))


@router.post("/registry/impls/{impl_id}/demote", summary="Make a scorer official no longer")
def demote_impl(request: HttpRequest, impl_id: str) -> dict[str, Any]:
    """Admins only. reason."""
    who = writer(request)
    words = _words(request, "reason")
    return _impl(demote(who.user, impl_by_id(who.account, impl_id), words["reason"]))


def _words(request: HttpRequest, *keys: str) -> dict[str, str]:
    """The body: an object of texts under these keys; one that is left out is empty."""
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise BenchwrightError(
            "The body is not JSON.", code="invalid_json", hint="Send Content-Type: application/json."
        ) from None
    if not isinstance(body, dict):
        raise BenchwrightError("The body must be an object.", code="invalid_request", hint=f"Keys: {', '.join(keys)}.")
    for key, value in body.items():
        if key not in keys:
            raise BenchwrightError(
                f"There is no key {key!r}.", code="unknown_key", field=key, hint=f"Known: {', '.join(keys)}."
            )
        if not isinstance(value, str):
            raise BenchwrightError(f"{key} must be text.", code="invalid_request", field=key)
    return {key: body.get(key, "") for key in keys}


def _impl(impl: Impl) -> dict[str, Any]:
    missing = failings(impl.proof)
    return {
        "id": impl.id,
        "benchmark_id": impl.benchmark_id,
        "subset_id": impl.subset_id,
        "sha256": impl.impl_fingerprint,
        "official": impl.official,
        "promotion": {
            "by": impl.promoted_by.username if impl.promoted_by else None,
            "at": stamp(impl.promoted_at) if impl.promoted_at else None,
            "reason": impl.promotion_reason,
        }
        if impl.official
        else None,
        "immune": not missing,
        "failings": missing,
        "proof": impl.proof,
        "source": impl.source,
        "created_at": stamp(impl.created_at),
        "acts": [
            {"act": a.act, "by": a.by, "at": stamp(a.at), "reason": a.reason, "data": a.data} for a in acts_on(impl.id)
        ],
    }


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

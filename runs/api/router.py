"""The routes of runs."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Router, Status

from benchwright.auth import caller, writer
from benchwright.lib.canonical import digest
from benchwright.lib.errors import BenchwrightError
from registry.vocabulary import Visibility
from runs.actions.change_visibility import change_visibility
from runs.actions.halt import pause, resolve_review, resume, stop
from runs.actions.launch import check, launch_once
from runs.actions.requests import launch_request
from runs.api.reads import limit_of
from runs.api.reads import router as reads
from runs.api.receipts import router as receipts
from runs.api.schemas import run_json, run_row_json
from runs.models import Run
from runs.queries.access import own_run
from runs.queries.run_detail import detail_of, run_detail
from runs.queries.run_list import run_list

router = Router(tags=["runs"])
router.add_router("", reads)
router.add_router("", receipts)


def body_of(request: HttpRequest) -> Any:
    """The JSON body. Raises BenchwrightError when it is none."""
    try:
        return json.loads(request.body or b"null")
    except (ValueError, RecursionError):
        raise BenchwrightError(
            "The body is not JSON.", code="invalid_json", hint="Send Content-Type: application/json."
        ) from None


@router.post("/runs", response={201: dict}, summary="Launch a run")
def create_run(request: HttpRequest) -> Status:
    """Four bodies: {prompt, …}, {benchmark, subset, …}, {replay, …}, {fork, …}. The same Idempotency-Key gives the
    same run.
    """
    who = writer(request)
    body = body_of(request)
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > 200:
        raise BenchwrightError("An Idempotency-Key has at most 200 characters.", code="invalid_request")
    run = launch_once(who.user, who.account, launch_request(body), key, digest(body))
    return Status(201, run_json(detail_of(run), settings.BASE_URL))


@router.post("/runs/validate", summary="Check a launch without launching")
def validate_run(request: HttpRequest) -> dict[str, Any]:
    """The same checks as a launch; answers what it resolves to."""
    who = writer(request)
    parsed = launch_request(body_of(request))
    found = check(who.account, parsed)
    return {
        "ok": True,
        "mode": parsed.mode.value,
        "benchmark_id": found.benchmark.pk if found.benchmark else None,
        "subset_id": found.subset.pk if found.subset else None,
        "impl_id": found.impl.pk if found.impl else None,
    }


@router.get("/runs", summary="List runs")
def list_runs(request: HttpRequest) -> dict[str, Any]:
    """Newest first. Filters: q, status, benchmark, subset, impl, model, group, visibility; cursor, limit."""
    who = caller(request)
    known = {"q", "status", "benchmark", "subset", "impl", "model", "group", "visibility", "cursor", "limit"}
    for name in request.GET:
        if name not in known:
            raise BenchwrightError(
                f"There is no filter {name!r}.",
                code="unknown_key",
                field=name,
                hint=f"Known: {', '.join(sorted(known))}.",
            )
    page = run_list(who.account, request.GET.dict(), limit=limit_of(request, 50, 200))
    return {"data": [run_row_json(run, settings.BASE_URL) for run in page.runs], "next_cursor": page.next_cursor}


@router.get("/runs/{run_id}", summary="Read a run")
def read_run(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Status, phases, score, cost, fingerprint."""
    who = caller(request)
    return run_json(run_detail(who.account, who.user, run_id), settings.BASE_URL)


@router.patch("/runs/{run_id}", summary="Change visibility or metadata, resolve a review")
def patch_run(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """`visibility`, `metadata`, `review_resolution`; other keys are refused."""
    who = writer(request)
    run = own_run(who.account, run_id)
    body = body_of(request)
    if not isinstance(body, dict) or not body:
        raise BenchwrightError(
            "Say what to change.", code="invalid_request", hint="visibility, metadata or review_resolution."
        )
    for key in body:
        if key not in {"visibility", "metadata", "review_resolution"}:
            raise BenchwrightError(
                f"{key!r} can't be changed.",
                code="unknown_key",
                field=key,
                hint="visibility, metadata, review_resolution.",
            )
    if "visibility" in body:
        if body["visibility"] not in set(Visibility):
            raise BenchwrightError("visibility is private, unlisted or public.", field="visibility")
        change_visibility(run, Visibility(body["visibility"]), by=who.user.username)
    if "metadata" in body:
        if not isinstance(body["metadata"], dict):
            raise BenchwrightError("metadata must be an object.", field="metadata")
        Run.objects.filter(pk=run.pk).update(metadata=body["metadata"])
    if "review_resolution" in body:
        words = body["review_resolution"]
        if not isinstance(words, str) or not words.strip():
            raise BenchwrightError("review_resolution must be words.", field="review_resolution")
        resolve_review(run, words.strip(), by=who.user.username)
    return run_json(run_detail(who.account, who.user, run_id), settings.BASE_URL)


@router.post("/runs/{run_id}/pause", summary="Pause a run")
def pause_run(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """The run is parked until resumed; nothing settled is lost."""
    who = writer(request)
    pause(own_run(who.account, run_id), by=who.user.username)
    return run_json(run_detail(who.account, who.user, run_id), settings.BASE_URL)


@router.post("/runs/{run_id}/resume", summary="Resume a paused run")
def resume_run(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """409 not_paused for anything but a paused run."""
    who = writer(request)
    resume(own_run(who.account, run_id), by=who.user.username)
    return run_json(run_detail(who.account, who.user, run_id), settings.BASE_URL)


@router.post("/runs/{run_id}/halt", summary="Stop a run for good")
def halt_run(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Partial results stay."""
    who = writer(request)
    stop(own_run(who.account, run_id), by=who.user.username)
    return run_json(run_detail(who.account, who.user, run_id), settings.BASE_URL)

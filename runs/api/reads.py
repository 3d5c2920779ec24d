"""Reading a run: events, the stream, tasks, artifacts, fingerprint, sandboxes, cost."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Router

from benchwright.auth import caller
from benchwright.lib.clock import stamp
from benchwright.lib.errors import BenchwrightError, NotFound
from benchwright.lib.money import text
from benchwright.lib.sse import HEARTBEAT, frame
from benchwright.lib.streamed import streamed
from runs.api.schemas import cost_json, event_json, task_json, task_row_json
from runs.events.follow import follow
from runs.events.log import raw, read
from runs.models import TaskRow
from runs.queries.access import visible_run
from runs.queries.run_detail import run_detail
from runs.queries.task_detail import task_detail

router = Router(tags=["runs"])


def limit_of(request: HttpRequest, default: int, most: int) -> int:
    """The `limit` of a list, from 1 to `most`."""
    return whole_of(request, "limit", default, 1, most)


def whole_of(request: HttpRequest, name: str, default: int, least: int, most: int) -> int:
    """A whole number of the query. Raises BenchwrightError naming it."""
    given = request.GET.get(name)
    if given is None:
        return default
    try:
        value = int(given) if len(given) < 19 else most + 1
    except ValueError:
        value = most + 1
    if not least <= value <= most:
        raise BenchwrightError(
            f"{name} must be a whole number from {least} to {most}.", code="invalid_request", field=name
        )
    return value


@router.get("/runs/{run_id}/events", summary="Read the log")
def list_events(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """In order of seq. after, types (comma-separated), limit (at most 1000)."""
    run = visible_run(caller(request).account, run_id)
    types = [t for t in request.GET.get("types", "").split(",") if t] or None
    limit = limit_of(request, 200, 1000)
    rows = list(read(run.pk, after=whole_of(request, "after", -1, -1, 2**62), types=types, limit=limit + 1))
    more, rows = len(rows) > limit, rows[:limit]
    return {
        "data": [event_json(r) for r in rows],
        "next_after": rows[-1].seq if more else None,
        "last_seq": run.next_seq - 1,
    }


@router.get("/runs/{run_id}/events/stream", summary="Follow the log (SSE)")
async def stream_events(request: HttpRequest, run_id: str) -> StreamingHttpResponse:
    """Every event once, `id:` = seq. Send Last-Event-ID to go on where you were. Ends with the run."""
    run = await sync_to_async(lambda: visible_run(caller(request).account, run_id))()
    seen = request.headers.get("Last-Event-ID") or request.GET.get("after") or "-1"
    if not seen.lstrip("-").isdigit() or len(seen) > 18:
        raise BenchwrightError("Last-Event-ID must be a seq.", code="invalid_request", field="after")
    answer = StreamingHttpResponse(_frames(run.pk, int(seen)), content_type="text/event-stream")
    answer["Cache-Control"] = "no-cache"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def _frames(run_id: Any, after: int) -> AsyncIterator[bytes]:
    yield HEARTBEAT
    async for rows in follow(run_id, after):
        if rows is None:
            yield HEARTBEAT
        else:
            yield b"".join(frame(json.dumps(event_json(r)), event=r.type, id=r.seq) for r in rows)
    yield frame("", event="end")


@router.get("/runs/{run_id}/tasks", summary="List tasks")
def list_tasks(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Rows of the latest invocation with outcome, score and trials, and the summary. after, outcome, limit (at most
    1000).
    """
    who = caller(request)
    run = visible_run(who.account, run_id)
    after, limit = whole_of(request, "after", -1, -1, 2**31 - 1), limit_of(request, 200, 1000)
    rows = TaskRow.objects.filter(run_id=run.pk, invocation=run.invocation, index__gt=after).order_by("index")
    if outcome := request.GET.get("outcome"):
        if outcome not in {"pass", "fail", "err", "running"}:
            raise BenchwrightError("outcome is pass, fail, err or running.", code="invalid_request", field="outcome")
        rows = rows.filter(outcome=outcome)
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    settled = run.tasks_passed + run.tasks_failed + run.tasks_errored
    return {
        "data": [task_row_json(r) for r in found],
        "next_after": found[-1].index if more else None,
        "summary": {
            "selected": run.tasks_selected,
            "settled": settled,
            "passed": run.tasks_passed,
            "failed": run.tasks_failed,
            "errored": run.tasks_errored,
        },
    }


@router.get("/runs/{run_id}/tasks/{index}", summary="Read a task")
def read_task(request: HttpRequest, run_id: str, index: int) -> dict[str, Any]:
    """Trials with prompt, response, target, meta, usage, latency."""
    who = caller(request)
    return task_json(task_detail(who.account, who.user, run_id, index))


@router.get("/runs/{run_id}/artifacts", summary="List artifacts")
def list_artifacts(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Names that can be read with /artifacts/{name}."""
    detail = run_detail(caller(request).account, request.user, run_id)
    names = ["events.jsonl"] + (["task_impl.py"] if detail.impl_source else [])
    return {"data": [{"name": n} for n in names]}


@router.get("/runs/{run_id}/artifacts/{name}", summary="Read an artifact")
def read_artifact(request: HttpRequest, run_id: str, name: str) -> HttpResponse | StreamingHttpResponse:
    """`task_impl.py`, or `events.jsonl`: the log as exact text, for checking offline."""
    run = visible_run(caller(request).account, run_id)
    if name == "events.jsonl":
        lines = (json.dumps({"seq": s, "body": b, "digest": d}) + "\n" for s, b, d in raw(run.pk))
        return streamed(request, lines, "application/x-ndjson", name)
    if name == "task_impl.py" and (source := run_detail(run.account, request.user, run.pk).impl_source):
        answer = HttpResponse(source, content_type="text/plain; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer
    raise NotFound(f"This run has no artifact {name!r}.", code="unknown_artifact")


@router.get("/runs/{run_id}/fingerprint", summary="The fingerprint with its inputs")
def read_fingerprint(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """The hash and what it was taken over, so that two runs can be compared field by field."""
    d = run_detail(caller(request).account, request.user, run_id)
    return {
        "fingerprint": d.fingerprint or None,
        "sha256": d.fingerprint_sha256 or None,
        "inputs": d.fingerprint_inputs,
        "comparability_key": d.comparability_key or None,
    }


@router.get("/runs/{run_id}/sandboxes", summary="The run's sandboxes")
def list_sandboxes(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """With role, times and cost."""
    d = run_detail(caller(request).account, request.user, run_id)
    return {
        "data": [
            {
                "id": s.id,
                "role": s.role,
                "backend": s.backend,
                "created_at": stamp(s.created_at),
                "killed_at": stamp(s.killed_at) if s.killed_at else None,
                "cost_usd": text(s.cost_usd),
            }
            for s in d.sandboxes
        ]
    }


@router.get("/runs/{run_id}/blocked-hosts", summary="Hosts that were refused")
def list_blocked(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """With which sandbox role asked and how often."""
    d = run_detail(caller(request).account, request.user, run_id)
    return {
        "data": [
            {
                "host": h.host,
                "port": h.port,
                "role": h.role,
                "seen_count": h.seen_count,
                "first_seen": stamp(h.first_seen),
                "last_seen": stamp(h.last_seen),
            }
            for h in d.blocked_hosts
        ]
    }


@router.get("/runs/{run_id}/cost", summary="The run's cost")
def read_cost(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Exact decimals; null is unknown."""
    return cost_json(run_detail(caller(request).account, request.user, run_id).cost)

"""What the run page listens to: names of parts that are stale, and tiles that changed. State is always fetched anew."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from benchwright.lib.errors import BenchwrightError
from benchwright.lib.sse import HEARTBEAT, frame
from runs.events.follow import follow
from runs.events.log import LogRow
from runs.pages.viewer import account
from runs.queries.access import visible_run

TILES = {"pass": "p", "fail": "f", "err": "e", "running": "r"}
# A settled task changes its tile, which has a frame of its own: the whole map is not fetched again for it. `log:tasks`
# is for logs that show task events, which the usual filter leaves out.
_PARTS = {
    "MaterializeResponse": ("log:tasks",),
    "MaterializeTaskResult": ("cost", "log:tasks"),
    "MaterializeTaskAggregated": ("score", "cost", "log:tasks"),
    "MaterializeStarted": ("status", "phases", "heatmap", "score", "log"),
    "DatasetTasksArtifact": ("heatmap", "score", "log"),
    "SandboxKilled": ("cost", "log"),
    "AgentTextEvent": ("log",),
}
_MOST = ("status", "phases", "log")
ORDER = ("status", "phases", "heatmap", "cost", "log", "log:tasks", "score")


def stale_parts(rows: Iterable[LogRow]) -> list[str]:
    """The parts that these events change, in the order of the page."""
    parts = {part for row in rows for part in _PARTS.get(row.type, _MOST)}
    return [part for part in ORDER if part in parts]


def changed_tiles(rows: Iterable[LogRow]) -> dict[str, str]:
    """{index: sign} for tasks that these events settle."""
    return {str(r.data["index"]): TILES[r.data["outcome"]] for r in rows if r.type == "MaterializeTaskAggregated"}


async def stream(request: HttpRequest, run_id: UUID) -> HttpResponse | StreamingHttpResponse:
    """GET /runs/<id>/stream; `Last-Event-ID` (or ?after=) says what the page has seen."""
    seen = request.headers.get("Last-Event-ID") or request.GET.get("after") or "-1"
    after = int(seen) if seen.lstrip("-").isdigit() and len(seen) < 19 else -1
    try:
        await sync_to_async(lambda: visible_run(account(request), run_id))()
    except BenchwrightError as e:
        return HttpResponse(e.message, status=e.status, content_type="text/plain")
    response = StreamingHttpResponse(_frames(run_id, after), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


async def _frames(run_id: UUID, after: int) -> AsyncIterator[bytes]:
    yield HEARTBEAT
    async for rows in follow(run_id, after):
        if rows is None:
            yield HEARTBEAT
            continue
        if tiles := changed_tiles(rows):
            yield frame(json.dumps({"i": tiles}), event="tiles", id=rows[-1].seq)
        yield frame(" ".join(stale_parts(rows)), event="stale", id=rows[-1].seq)
    yield frame("", event="end")

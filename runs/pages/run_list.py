"""My runs: search, filter by status, page by page."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.pages.viewer import account, signed_in
from runs.queries.run_list import run_list as query

STATUSES = (
    {"id": "", "label": "All"},
    {"id": "running", "label": "Running"},
    {"id": "ok", "label": "Ok"},
    {"id": "error", "label": "Error"},
    {"id": "waiting", "label": "Waiting"},
    {"id": "halted", "label": "Halted"},
)


@require_GET
@signed_in
def run_list(request: HttpRequest) -> HttpResponse:
    """GET /runs/."""
    filters = {"q": request.GET.get("q", "").strip()[:200], "status": request.GET.get("status", "")}
    if filters["status"] not in {choice["id"] for choice in STATUSES}:
        filters["status"] = ""
    asked = {name: value for name, value in filters.items() if value}
    found = query(account(request), asked | {"cursor": request.GET.get("cursor") or None})
    context = {
        "nav": "runs",
        "rows": found.rows,
        "next_cursor": found.next_cursor,
        "next_query": urlencode(asked | {"cursor": found.next_cursor or ""}),
        "filters": filters,
        "filtered": bool(asked),
        "statuses": STATUSES,
        "any_live": any(row.display_status == "running" for row in found.rows),
    }
    return render(request, "runs/list.html", context)

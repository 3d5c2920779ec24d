"""The page of one run: everything it shows, its live parts, its log, and the buttons on it."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from benchwright.auth import writer
from benchwright.lib.errors import BenchwrightError
from runs.pages import buttons
from runs.pages.code import highlighted
from runs.pages.fragments import parts
from runs.pages.log_groups import GROUPS, types_of
from runs.pages.viewer import account, owns, page, signed_in
from runs.queries.access import own_run
from runs.queries.run_detail import RunDetail, run_detail
from runs.queries.run_events import event_page

TEMPLATE = "runs/run.html"
LIVE_PARTS = ("status", "phases", "score", "cost", "heatmap", "identity", "scorer")
LOG_ROWS = 200
LIVE = ("running", "waiting", "paused")  # a paused or waiting run can go on while the page is open


def _context(request: HttpRequest, run: RunDetail) -> dict[str, Any]:
    return {
        "nav": "runs",
        "run": run,
        "live": run.display_status in LIVE,
        "can_write": owns(request, run.id),
        "impl_html": partial(highlighted, run.impl_source) if run.impl_source else "",  # called only where it is shown
        "fingerprint_inputs": [_input(reduced) for reduced in run.fingerprint_inputs],
    }


def _log(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    """The newest rows of the chosen kind, or those before or after a seq."""
    group = request.GET.get("events", "main")
    types = types_of(group)
    after, before = _seq(request, "after"), _seq(request, "before")
    events = event_page(account(request), request.user, run_id, after=after, before=before, types=types, limit=LOG_ROWS)
    more = bool(events) and after is None and len(events) == LOG_ROWS and events[0].seq > 0
    return {
        "events": events,
        "log_groups": GROUPS,
        "log_group": group if types_of(group) is not None or group == "all" else "main",
        "log_before": events[0].seq if more else None,
    }


def _seq(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.lstrip("-").isdigit() and len(text) < 19 else None


@require_GET
@page
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """GET /runs/<id>/; with `parts=` only those live parts."""
    detail = run_detail(account(request), request.user, run_id)
    context = _context(request, detail)
    wanted = request.GET.get("parts")
    if wanted is not None:
        asked = wanted.replace("+", " ").split()
        return parts(request, TEMPLATE, [name for name in LIVE_PARTS if name in asked], context)
    return render(request, TEMPLATE, context | _log(request, run_id))


def _input(reduced: dict[str, Any]) -> dict[str, Any]:
    """One artifact as the fingerprint sees it: its type, and the fields that count."""
    return {"type": reduced.get("type", ""), "fields": {k: v for k, v in reduced.items() if k != "type"}}


@require_GET
@page
def run_log(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The log card alone; with `rows=1` only its rows, to be added at either end."""
    context = _log(request, run_id) | {"run": {"id": run_id}}
    fragment = "log_more" if request.GET.get("before") else "log_rows" if request.GET.get("rows") else "log"
    return render(request, f"{TEMPLATE}#{fragment}", context)


@require_POST
@signed_in
def run_act(request: HttpRequest, run_id: UUID, act: str) -> HttpResponse:
    """Pause, resume, halt, or answer a review; the status part comes back with what happened."""
    button = buttons.BUTTONS.get(act)
    if button is None:
        raise Http404
    problem: BenchwrightError | None = None
    try:
        who = writer(request)
        button(own_run(who.account, run_id), who.user.get_username(), request.POST)
    except BenchwrightError as error:
        if error.status == 404:
            raise
        problem = error
    if not getattr(request, "htmx", False) and problem is None:
        return redirect("run", run_id)
    context = _context(request, run_detail(account(request), request.user, run_id)) | {"action_error": problem}
    if getattr(request, "htmx", False):
        return render(request, f"{TEMPLATE}#status", context)
    return render(request, TEMPLATE, context | _log(request, run_id), status=problem.status if problem else 200)


@require_GET
@page
def run_receipt(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The receipt, to print."""
    detail = run_detail(account(request), request.user, run_id)
    permalink = request.build_absolute_uri(f"/runs/{run_id}/")
    return render(request, "runs/receipt.html", {"nav": "runs", "run": detail, "permalink": permalink})

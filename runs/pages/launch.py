"""The first page: say what to measure, pick a model, launch."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from benchwright.auth import writer
from benchwright.lib.errors import BenchwrightError
from registry.directory import cards, picked
from runs.actions.launch import launch_once
from runs.pages import launch_form, launch_options, plan
from runs.pages.launch_check import check
from runs.pages.launch_request import KeptFile, keep_files, request_from
from runs.pages.viewer import account, page
from runs.queries.run_list import run_list

TEMPLATE = "runs/launch.html"
PLACED_LIMITS = ("limits.run.cost", "limits.run.duration", "limits.attempt.duration", "limits.task.attempts")


def _context(
    request: HttpRequest,
    form: launch_form.LaunchForm,
    error: BenchwrightError | None = None,
    kept: list[KeptFile] | None = None,
) -> dict[str, Any]:
    mine = account(request)
    chosen = picked(mine, form.benchmark) if form.benchmark else None
    mended = plan.Plan(waiting_for="Mend what is marked, then launch again.")
    return {
        "nav": "launch",
        "form": form,
        "error": error,
        "errors": _errors(error),
        "kept": kept or [],
        "idempotency_key": secrets.token_urlsafe(18),
        "benchmarks": cards(mine),
        "subsets": chosen.subsets if chosen else [],
        "impls": chosen.impls if chosen else [],
        "upload_limit": settings.UPLOAD_MAX_BYTES,
        "recent": run_list(mine, {}).rows[:4] if mine else [],
        "plan": mended if error else check(mine, form, request.GET),
        **launch_options.choices(),
    }


def _errors(error: BenchwrightError | None) -> dict[str, str]:
    """{place in the form: words}. What has no place of its own is said beside the nearest one."""
    if error is None or not error.field:
        return {}
    field = error.field
    if field.startswith("model") and field != "model.base_url":
        field = "model"
    elif field.startswith("trials"):
        field = "trials"
    elif field.startswith("limits") and field not in PLACED_LIMITS:
        field = "limits"
    return {field: error.message}


@require_http_methods(["GET", "HEAD", "POST"])
@page
def launch(request: HttpRequest) -> HttpResponse:
    """GET / shows the form, filled from the link's query; POST / launches and goes to the run."""
    if request.method != "POST":
        return render(request, TEMPLATE, _context(request, launch_form.read(request.GET, launch_options.defaults())))
    form = launch_form.read(request.POST)
    if account(request) is None:
        return redirect_to_login("/")
    who = writer(request)
    mine = who.account
    kept: list[KeptFile] = []
    try:
        kept = keep_files(mine, request.FILES.getlist("files"), request.POST.getlist("kept"))
        asked, body_digest = request_from(form, kept)
        # The body is part of the key: a double click is one launch; a form gone back to and changed is another.
        key = f"form:{form.idempotency_key}:{body_digest[:16]}" if form.idempotency_key else ""
        run = launch_once(who.user, mine, asked, key, body_digest)
    except BenchwrightError as error:
        return render(request, TEMPLATE, _context(request, form, error, kept), status=error.status)
    return redirect("run", run.pk)


@require_POST
@page
def launch_validate(request: HttpRequest) -> HttpResponse:
    """POST /launch/validate: the panel beside the form, while it is being filled in."""
    form = launch_form.read(request.POST)
    return render(request, f"{TEMPLATE}#plan", {"plan": check(account(request), form, request.POST)})


@require_GET
@page
def launch_subsets(request: HttpRequest) -> HttpResponse:
    """GET /launch/subsets?benchmark=: the two fields that depend on the benchmark."""
    benchmark = request.GET.get("benchmark", "")
    chosen = picked(account(request), benchmark) if benchmark else None
    context = {
        "form": launch_form.LaunchForm(benchmark=benchmark),
        "subsets": chosen.subsets if chosen else [],
        "impls": chosen.impls if chosen else [],
    }
    return render(request, f"{TEMPLATE}#subsets", context)

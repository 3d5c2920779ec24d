"""The first page: say what to measure, pick a model, launch."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from benchwright.lib.errors import BenchwrightError
from registry.directory import cards, picked
from runs.actions.launch import launch as launch_run
from runs.pages import launch_form, launch_options
from runs.pages.launch_check import check
from runs.pages.launch_request import request_from
from runs.pages.viewer import account, page
from runs.queries.run_list import run_list

TEMPLATE = "runs/launch.html"


def _context(request: HttpRequest, form: launch_form.LaunchForm, error: BenchwrightError | None = None) -> dict[str, Any]:
    mine = account(request)
    chosen = picked(mine, form.benchmark) if form.benchmark else None
    return {
        "nav": "launch",
        "form": form,
        "error": error,
        "errors": {error.field: error.message} if error is not None and error.field else {},
        "idempotency_key": form.idempotency_key or secrets.token_urlsafe(18),
        "benchmarks": cards(mine),
        "subsets": chosen.subsets if chosen else [],
        "impls": chosen.impls if chosen else [],
        "upload_limit": settings.UPLOAD_MAX_BYTES,
        "recent": run_list(mine, {}).rows[:4] if mine else [],
        "plan": check(mine, request.user, form) if error is None else {"error": error},
        **launch_options.choices(),
    }


@require_http_methods(["GET", "HEAD", "POST"])
@page
def launch(request: HttpRequest) -> HttpResponse:
    """GET / shows the form, filled from the link's query; POST / launches and goes to the run."""
    if request.method != "POST":
        return render(request, TEMPLATE, _context(request, launch_form.read(request.GET, launch_options.defaults())))
    form = launch_form.read(request.POST)
    if not request.user.is_authenticated:
        return redirect("sign_in")
    try:
        run = launch_run(request.user, account(request), request_from(form, request.FILES.getlist("files")))
    except BenchwrightError as error:
        return render(request, TEMPLATE, _context(request, form, error), status=error.status if error.status < 500 else 502)
    return redirect("run", run.id)


@require_POST
@page
def launch_validate(request: HttpRequest) -> HttpResponse:
    """POST /launch/validate: the panel beside the form, while it is being filled in."""
    form = launch_form.read(request.POST)
    return render(request, f"{TEMPLATE}#plan", {"plan": check(account(request), request.user, form)})


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

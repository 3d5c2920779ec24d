"""One task of a run, as a page and as the drawer; and all tasks as a table."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from benchwright.lib.errors import BenchwrightError
from benchwright.lib.inert import readable
from runs.pages.viewer import account, page
from runs.queries.task_detail import TaskDetail, task_detail
from runs.queries.task_rows import OUTCOMES, task_table

_AS_IS = (
    "trial",
    "attempts",
    "score",
    "outcome",
    "extracted",
    "rule",
    "no_answer",
    "target",
    "meta",
    "error",
    "calls",
    "latency_ms",
)
_USAGE_WORDS = {
    "input": "Tokens in",
    "output": "Tokens out",
    "cached": "Cached",
    "reasoning": "Reasoning",
}


def _shown(trial: Any) -> SimpleNamespace:
    """A trial with what the template can't work out: messages of the prompt, usage in words."""
    prompt = trial.prompt
    if isinstance(prompt, str) and prompt[:1] in "[{":
        try:
            prompt = json.loads(prompt)
        except ValueError:
            prompt = trial.prompt
    if isinstance(prompt, dict):
        prompt = prompt.get("messages", prompt)
    chat = isinstance(prompt, list) and all(isinstance(item, dict) and "role" in item for item in prompt)
    usage = trial.usage if isinstance(trial.usage, dict) else {}
    response = trial.response
    if isinstance(response, dict) and isinstance(response.get("text"), str) and not response.get("tool_calls"):
        response = response["text"]
    return SimpleNamespace(
        **{name: getattr(trial, name) for name in _AS_IS},
        prompt=prompt,
        messages=prompt if chat else None,
        response=response,
        target_long=len(readable(trial.target)) > 300,
        cost_usd=usage.get("cost_usd"),
        priced="cost_usd" in usage,
        usage_items=[(_USAGE_WORDS[name], value) for name, value in usage.items() if name in _USAGE_WORDS],
    )


def _detail(request: HttpRequest, run_id: UUID, index: int) -> TaskDetail:
    """The task; one that has not begun is a state to show in the drawer, not an error."""
    try:
        return task_detail(account(request), request.user, run_id, index)
    except BenchwrightError as error:
        if error.code != "unknown_task" or not getattr(request, "htmx", False):
            raise
    return TaskDetail(index, 0, "", None, "", [], index - 1 if index else None, index + 1)


@require_GET
@page
def task(request: HttpRequest, run_id: UUID, index: int) -> HttpResponse:
    """GET /runs/<id>/tasks/<index>/: the page, or the drawer when htmx asks."""
    detail = _detail(request, run_id, index)
    context = {
        "nav": "runs",
        "run_id": str(run_id),
        "task": SimpleNamespace(
            index=detail.index,
            outcome=detail.outcome,
            score=detail.score,
            aggregator=detail.aggregator,
            trials=[_shown(trial) for trial in detail.trials],
        ),
        "previous": detail.previous,
        "next": detail.next,
    }
    name = "runs/task.html#drawer" if getattr(request, "htmx", False) else "runs/task.html"
    return render(request, name, context)


@require_GET
@page
def task_list(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """GET /runs/<id>/tasks/: the map's content as a table, for any browser and any reader."""
    outcome = request.GET.get("outcome", "")
    wanted = outcome if outcome in OUTCOMES else ""
    asked = request.GET.get("page", "1")
    number = int(asked) if asked.isdigit() and len(asked) < 8 else 1
    table = task_table(account(request), request.user, run_id, wanted, number)
    choices = [{"id": "", "label": "All", "count": table.selected, "sign": ""}]
    for sign, label in (("p", "Pass"), ("f", "Fail"), ("e", "Error"), ("r", "Running")):
        choices.append({"id": sign, "label": label, "count": table.counts[sign], "sign": sign})
    context = {"nav": "runs", "run_id": run_id, "table": table, "outcome": wanted, "outcomes": choices}
    return render(request, "runs/task_list.html", context)

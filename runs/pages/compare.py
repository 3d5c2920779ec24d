"""Runs side by side, and the tasks on which they part."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.pages.viewer import account, page
from runs.queries.compare import MOST_FLIPS, Compared, Pair, compare_runs


@require_GET
@page
def compare(request: HttpRequest) -> HttpResponse:
    """GET /compare/?runs=a,b or ?run=a&run=b (from the list's boxes); `pair=AB` picks the rows shown."""
    asked = [*request.GET.get("runs", "").split(","), *request.GET.getlist("run")]
    if not any(part.strip() for part in asked):
        return render(request, "runs/compare.html", {"nav": "runs", "found": None})
    found = compare_runs(account(request), asked)
    context = {
        "nav": "runs",
        "found": found,
        "runs": ",".join(str(side.run.pk) for side in found.sides),
        "pairs": [_pair(pair) for pair in found.pairs],
        "shown": _pair(_picked(found, request.GET.get("pair", ""))),
        "most_flips": MOST_FLIPS,
    }
    return render(request, "runs/compare.html", context)


def _picked(found: Compared, name: str) -> Pair:
    return next((p for p in found.pairs if p.a.letter + p.b.letter == name), found.pairs[0])


def _pair(pair: Pair) -> dict[str, Any]:
    """A pair with what the template can't work out: the winner, and places on an axis from −100 to 100 points."""
    result = pair.result

    def at(value: float) -> float:
        return round(50 + 50 * value, 2)

    return {
        "pair": pair,
        "name": pair.a.letter + pair.b.letter,
        "result": result,
        "winner": {"a": pair.a, "b": pair.b}.get(pair.better),
        "points": None if result.difference is None else 100 * result.difference,
        "low": None if result.interval is None else 100 * result.interval.low,
        "high": None if result.interval is None else 100 * result.interval.high,
        "at": None if result.difference is None else at(result.difference),
        "at_low": None if result.interval is None else at(result.interval.low),
        "at_high": None if result.interval is None else at(result.interval.high),
    }

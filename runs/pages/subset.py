"""The page of a subset: its leaderboard, its scorers."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from registry.directory import subset_page
from registry.leaderboard import COUNTED_RUNS, SCORED_SHARE, Board, leaderboard
from registry.queries import subset_by_id
from registry.vocabulary import BoardBy, BoardRuns, Visibility
from runs.pages.viewer import account, page
from runs.queries.leaderboard import MarkedBoard, marked


@require_GET
@page
def subset(request: HttpRequest, benchmark_id: str, subset_name: str) -> HttpResponse:
    """GET /registry/<benchmark>/<subset>/?runs=&by=&impl=&key=; other words are ignored. htmx gets the board alone."""
    mine = account(request)
    found = subset_by_id(mine, f"{benchmark_id}/{subset_name}")
    usual = BoardRuns.PUBLIC if found.benchmark.visibility == Visibility.PUBLIC or mine is None else BoardRuns.OWN
    asked = request.GET
    of = BoardRuns(asked["runs"]) if asked.get("runs") in set(BoardRuns) and mine else usual
    by = BoardBy(asked["by"]) if asked.get("by") in set(BoardBy) else BoardBy.BEST
    impl = asked.get("impl") if by is BoardBy.BEST else None
    shown = marked(
        leaderboard(
            found,
            of=of,
            account_id=mine.pk if mine else None,
            by=by,
            impl=impl or None,
            ruler=asked.get("key") or None,
        )
    )
    context = {
        "nav": "registry",
        "page": subset_page(found),
        "board": shown.board,
        "rows": _lines(shown),
        "lines": _reference_lines(shown.board),
        "signed_in": mine is not None,
        "can_promote": request.user.is_authenticated and request.user.is_staff,
        "counted": COUNTED_RUNS,
        "scored_percent": round(SCORED_SHARE * 100),
        "tested": any(mark.how == "paired" for mark in shown.marks.values()),
    }
    name = "registry/subset.html#board" if getattr(request, "htmx", False) else "registry/subset.html"
    return render(request, name, context)


def _lines(shown: MarkedBoard) -> list[dict[str, Any]]:
    return [{"row": row, "mark": shown.marks.get(row.run_id), "leads": not i} for i, row in enumerate(shown.board.rows)]


def _reference_lines(board: Board) -> list[float]:
    """Where controls stand, in percent: the same in the picture of each row."""
    return [round(row.accuracy * 100, 2) for row in board.controls]

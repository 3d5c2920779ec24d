"""API v1: leaderboards."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest
from ninja import Router

from benchwright.auth import caller
from benchwright.lib.clock import stamp
from benchwright.lib.errors import BenchwrightError
from benchwright.lib.money import text
from registry.leaderboard import COUNTED_RUNS, SCORED_SHARE, BoardRow, leaderboard
from registry.queries import subset_by_id
from registry.vocabulary import BoardBy, BoardRuns, Visibility
from runs.queries.leaderboard import MarkedBoard, marked

router = Router(tags=["registry"])
Word = TypeVar("Word", bound=StrEnum)
KEYS = ("runs", "by", "impl", "key")


def word_of(request: HttpRequest, name: str, words: type[Word], default: Word) -> Word:
    """One word of the query. Raises BenchwrightError with the known ones."""
    given = request.GET.get(name) or default.value
    if given not in set(words):
        raise BenchwrightError(f"{name} is one of {', '.join(words)}.", code="invalid_request", field=name)
    return words(given)


@router.get("/registry/subsets/{path:subset_id}/leaderboard", summary="Read the leaderboard of a subset")
def read_leaderboard(request: HttpRequest, subset_id: str) -> dict[str, Any]:
    """One row for each model. runs (public, own), by (best, mean), impl, key (a comparability key)."""
    for name in request.GET:
        if name not in KEYS:
            raise BenchwrightError(
                f"There is no filter {name!r}.", code="unknown_key", field=name, hint=f"Known: {', '.join(KEYS)}."
            )
    who = caller(request)
    subset = subset_by_id(who.account, subset_id)
    usual = BoardRuns.PUBLIC if subset.benchmark.visibility == Visibility.PUBLIC else BoardRuns.OWN
    board = leaderboard(
        subset,
        of=word_of(request, "runs", BoardRuns, usual),
        account_id=who.account.pk,
        by=word_of(request, "by", BoardBy, BoardBy.BEST),
        impl=request.GET.get("impl") or None,
        ruler=request.GET.get("key") or None,
    )
    return board_json(marked(board), settings.BASE_URL)


def board_json(shown: MarkedBoard, base_url: str) -> dict[str, Any]:
    """The board as the API says it."""
    board = shown.board
    return {
        "subset_id": board.subset_id,
        "tasks": board.tasks,
        "runs": board.of.value,
        "by": board.by.value,
        "impl": board.impl,
        "key": board.ruler,
        "mixed": board.mixed,
        "keys": [{"key": key, "models": models} for key, models in board.rulers],
        "scored_share": SCORED_SHARE,
        "data": [_row(row, shown, base_url) for row in board.rows],
        "partial": [_row(row, shown, base_url) for row in board.partial],
        "controls": [_row(row, shown, base_url) for row in board.controls],
    }


def _row(row: BoardRow, shown: MarkedBoard, base_url: str) -> dict[str, Any]:
    mark = shown.marks.get(row.run_id)
    return {
        "rank": row.place.rank if row.place else None,
        "rank_interval": [row.place.first, row.place.last] if row.place else None,
        "model": {"key": row.model_key, "label": row.model_label, "control": row.control},
        "accuracy": row.accuracy,
        "interval": None if row.low is None else {"low": row.low, "high": row.high, "level": 0.95, "method": "wilson"},
        "n": row.n,
        "errored": row.errored,
        "coverage": row.coverage,
        "impl_id": row.impl_id,
        "comparability_key": row.comparability_key,
        "cost_usd": None if row.cost_usd is None else text(row.cost_usd),
        "runs": row.runs,
        "runs_at_least": row.runs >= COUNTED_RUNS,
        "run_id": str(row.run_id),
        "url": f"{base_url}/runs/{row.run_id}/",
        "finished_at": stamp(row.finished_at),
        "like_leader": None if mark is None else mark.same,
        "like_leader_by": None if mark is None else mark.how,
        "p": None if mark is None else mark.p,
    }

"""API v1: runs side by side."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Router

from benchwright.auth import caller
from benchwright.lib.errors import BenchwrightError
from benchwright.lib.money import text
from runs.projections.receipt import score_json
from runs.queries.compare import Compared, Pair, Side, compare_runs

router = Router(tags=["runs"])


@router.get("/compare", summary="Compare runs task by task")
def compare(request: HttpRequest) -> dict[str, Any]:
    """runs: two to eight ids, comma-separated. Answers every pair, task by task, and how their rulers differ."""
    for name in request.GET:
        if name != "runs":
            raise BenchwrightError(f"There is no filter {name!r}.", code="unknown_key", field=name, hint="Known: runs.")
    who = caller(request)
    return compared_json(compare_runs(who.account, request.GET.get("runs", "").split(",")), settings.BASE_URL)


def compared_json(found: Compared, base_url: str) -> dict[str, Any]:
    """The comparison as the API says it."""
    return {
        "comparable": not found.differs,
        "differs": [
            {"field": d.field, "means": d.means, "values": dict(zip(_letters(found), d.values, strict=True))}
            for d in found.differs
        ],
        "runs": [_side(side, base_url) for side in found.sides],
        "pairs": [_pair(pair, base_url) for pair in found.pairs],
    }


def _letters(found: Compared) -> list[str]:
    return [side.letter for side in found.sides]


def _side(side: Side, base_url: str) -> dict[str, Any]:
    return {
        "letter": side.letter,
        "id": str(side.run.pk),
        "url": f"{base_url}/runs/{side.run.pk}/",
        "title": side.run.title,
        "model": {"label": side.label, "control": side.control},
        "display_status": side.run.display_status.value,
        "subset_id": side.ruler.subset_id or None,
        "comparability_key": side.ruler.key or None,
        "score": score_json(side.score),
        "cost_usd": text(side.cost_usd),
    }


def _pair(pair: Pair, base_url: str) -> dict[str, Any]:
    result = pair.result
    return {
        "a": pair.a.letter,
        "b": pair.b.letter,
        "n": result.n,
        "matched": pair.matched,
        "difference": result.difference,
        "stderr": result.stderr,
        "interval": None
        if result.interval is None
        else {"low": result.interval.low, "high": result.interval.high, "level": 0.95},
        "test": result.test,
        "p": result.p_value,
        "p_adjusted": pair.p_adjusted,
        "better": {"a": pair.a.letter, "b": pair.b.letter}.get(pair.better),
        "wins": result.wins,
        "losses": result.losses,
        "ties": result.ties,
        "both_pass": result.both_pass,
        "neither": result.neither,
        "only_a": len(result.only_a),
        "only_b": len(result.only_b),
        "dropped": len(result.dropped),
        "dropped_rate_a": result.dropped_rate_a,
        "dropped_rate_b": result.dropped_rate_b,
        "flipped": pair.flipped,
        "flips": [
            {
                "index_a": flip.index_a,
                "index_b": flip.index_b,
                "passed_by": pair.a.letter if flip.winner == "a" else pair.b.letter,
                "url_a": f"{base_url}/runs/{pair.a.run.pk}/tasks/{flip.index_a}/",
                "url_b": f"{base_url}/runs/{pair.b.run.pk}/tasks/{flip.index_b}/",
            }
            for flip in pair.flips
        ],
    }

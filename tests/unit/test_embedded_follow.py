"""One run on the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest

from benchwright.embedded import follow
from benchwright.embedded.client import ApiFailed
from benchwright.embedded.follow import Follower, bar, dollars, summary, why


class Recorded:
    """An API that answers with these runs in turn, the last one for ever; an exception in the list is raised."""

    def __init__(self, *runs: Any) -> None:
        self.runs = list(runs)

    def run(self, run_id: str) -> dict[str, Any]:
        found = self.runs.pop(0) if len(self.runs) > 1 else self.runs[0]
        if isinstance(found, Exception):
            raise found
        return dict(found)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0)


def run(status: str = "running", **fields: Any) -> dict[str, Any]:
    return {"display_status": status, "phases": [], "tasks": {}, **fields}


def followed(*runs: Any) -> tuple[dict[str, Any] | None, str]:
    out = io.StringIO()
    return Follower(Recorded(*runs), out).follow("id", 5), out.getvalue()  # type: ignore[arg-type]


def test_it_follows_until_the_run_has_ended() -> None:
    last, _ = followed(run(), run(), run("ok"))
    assert last is not None and last["display_status"] == "ok"


def test_each_phase_is_told_once_when_it_is_over() -> None:
    going = {"phase": "fetch", "status": "running", "duration_ms": None}
    over = {"phase": "fetch", "status": "ok", "duration_ms": 1240.0}
    _, text = followed(run(phases=[going]), run(phases=[over]), run(phases=[over]), run("ok", phases=[over]))
    assert text == "  ✓ fetch        1.2 s\n"


def test_a_phase_from_the_cache_says_so() -> None:
    _, text = followed(run("ok", phases=[{"phase": "setup", "status": "cached", "cache_hit": {"run": "x"}}]))
    assert "from cache" in text


def test_a_web_process_that_restarts_does_not_end_the_following() -> None:
    last, _ = followed(run(), ApiFailed("refused", None), ApiFailed("bad gateway", 502), run("ok"))
    assert last is not None


def test_a_refused_key_ends_it_with_the_reason() -> None:
    with pytest.raises(ApiFailed, match="revoked"):
        followed(run(), ApiFailed("revoked", 401))


def test_a_dead_server_ends_the_following() -> None:
    assert Follower(Recorded(run()), io.StringIO()).follow("id", 5, alive=lambda: False) is None  # type: ignore[arg-type]


def test_a_run_parked_for_review_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "STANDING_SECONDS", 0)
    last, _ = followed(run("paused", halt_reason="review"))
    assert last is not None and last["display_status"] == "paused"


@pytest.mark.parametrize(("settled", "blocks"), [(0, 0), (50, 14), (100, 28), (120, 28)])
def test_the_bar_is_as_long_as_what_is_done(settled: int, blocks: int) -> None:
    assert bar(settled, 100).count("█") == blocks


def test_an_unknown_cost_is_unknown_and_not_zero() -> None:
    assert dollars(None) == "unknown"
    assert dollars("0") == "$0"


def test_a_cost_is_shown_exactly() -> None:
    assert dollars("0.0000012") == "$0.0000012"


def test_the_summary_holds_score_interval_cost_and_receipt() -> None:
    ended = run(
        "ok",
        score={"accuracy": 0.25, "interval": [0.1, 0.49], "n": 20},
        cost={"model_usd": None},
        url="http://x/runs/1/",
    )
    assert summary(ended) == [
        "Score     25.0 % of 20   (95 % interval 10.0 % to 49.0 %)",
        "Cost      unknown for the model",
        "Receipt   http://x/runs/1/",
    ]


def test_no_control_character_of_a_model_reaches_the_terminal() -> None:
    assert "\x1b" not in why(run("error", error={"detail": "\x1b]0;owned\x07 bad", "hint": None}))

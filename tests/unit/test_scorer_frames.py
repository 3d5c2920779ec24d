"""Lines out of a sandbox: hostile text becomes facts, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.scorer.calls import CallBook
from runs.scorer.frames import Lines, clean_error, number, score_of


@pytest.mark.parametrize("value", [2**70, -(2**80), "x\0y\ud800", float("inf"), 0.1, "é", [1, {"a": None}]])
def test_a_value_comes_back_exactly_as_it_was_sent(value: Any) -> None:
    [frame] = Lines().feed(json.dumps({"response": value}).encode() + b"\n")
    assert frame == {"response": value}


def test_rubbish_between_frames_costs_no_frame_and_is_counted() -> None:
    lines = Lines()
    found = lines.feed(b'{"t": 1}\nnot json\n[1]\n\xff\xfe\n\n{"t":')
    found += lines.feed(b" 2}\n")
    assert [f["t"] for f in found] == [1, 2]
    assert lines.rubbish == 3


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.1, "1", None, True, [1]])
def test_a_score_that_is_none_is_an_error_and_never_a_failure(score: Any) -> None:
    value, error = score_of({"score": score})
    assert value is None and error is not None and error["kind"] == "bad_score"


def test_an_error_keeps_known_keys_of_bounded_length() -> None:
    error = clean_error({"kind": "evil", "message": "x" * 10**6, "trace": "t" * 10**6, "more": 1})
    assert (error["kind"], set(error)) == ("scorer", {"kind", "type", "message", "trace"})
    assert len(error["message"]) <= 4000 and len(error["trace"]) <= 8000


@pytest.mark.parametrize("value", [-1, float("nan"), "5", True, None])
def test_a_measure_that_is_none_is_unknown(value: Any) -> None:
    assert number(value) is None


def _call(index: int, attempt: int = 1, **more: Any) -> dict[str, Any]:
    return {"key": {"invocation": 1, "index": index, "trial": 0, "attempt": attempt}, **more}


def test_the_usage_of_a_call_is_taken_once_and_an_unknown_part_stays_unknown() -> None:
    book = CallBook(1)
    book.add(_call(0, usage={"input": 5, "output": 2}, cost_usd="0.5"))
    book.add(_call(0, usage={"input": 5, "output": None}, cost_usd=None))
    book.add({"key": {"invocation": 2, "index": 0, "trial": 0, "attempt": 1}, "cost_usd": "9"})
    usage = book.take([(0, 0, 1)])
    assert usage is not None
    assert (usage.requests, usage.input, usage.output) == (2, 10, None)
    assert (usage.cost_usd, usage.unknown_cost_calls) == ("0.5", 1)
    assert book.take([(0, 0, 1)]) is None


def test_a_control_costs_nothing_and_that_is_known() -> None:
    book = CallBook(1)
    book.add(_call(3, provider="control", cost_usd=None))
    usage = book.take([(3, 0, 1)])
    assert usage is not None and (usage.cost_usd, usage.unknown_cost_calls) == ("0", 0)

"""What exports make of single values."""

from __future__ import annotations

from typing import Any

import pytest

from runs.exports.formats import cell
from runs.exports.inspect_log import _tool_calls
from runs.exports.results import finite


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\t=1", "\n=1", "\uff1d1", "\u00a0=1", "=cmd|'/C calc'!A0"]
)
def test_a_text_that_a_spreadsheet_would_run_stays_a_text(text: str) -> None:
    assert str(cell(text)).startswith("'")


@pytest.mark.parametrize(("value", "shown"), [(-1.5, -1.5), (None, ""), ("a=1", "a=1"), (True, "true"), ([1], "[1]")])
def test_a_number_stays_a_number_and_what_is_unknown_is_empty(value: Any, shown: Any) -> None:
    assert cell(value) == shown


def test_a_control_character_is_shown_and_not_kept() -> None:
    assert cell("\r=1") == "\u240d=1"


def test_what_json_has_no_word_for_becomes_text() -> None:
    assert finite({"a": [float("nan"), float("-inf"), 1.5]}) == {"a": ["nan", "-inf", 1.5]}


def test_tool_calls_of_another_form_are_not_guessed_at() -> None:
    good = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    bad: list[Any] = [3, {"name": "x", "arguments": "{"}, {"arguments": {}}, {"function": None}]
    made = [{"id": "call-0", "function": "get_weather", "arguments": {"city": "Oslo"}, "type": "function"}]
    assert _tool_calls([good, *bad]) == made
    assert _tool_calls("nonsense") is None

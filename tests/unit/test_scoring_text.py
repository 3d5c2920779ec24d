"""Text, thinking, JSON, lists: what may differ and what may not."""

from __future__ import annotations

import time

import pytest

from tests.unit import rules_harness  # noqa: F401 - puts the scoring helpers on the path

# isort: split
import benchwright_scoring as scoring
from benchwright_scoring import (
    NotJson,
    WrongVersion,
    answer_text,
    find_json,
    list_answer,
    no_answer,
    parse_json,
    require,
    same_as_any,
    same_json,
    same_list,
    same_set,
    same_text,
    short_answer,
    split_items,
    verdict,
    visible,
    without_ansi,
)


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        ("<think>maybe 9</think>It is 4", "It is 4"),
        ("<think>maybe 4 or 5", ""),
        ("</think> It is 4", " It is 4"),
        ("<think>it is 4</think>", ""),
        ("</think> </think> OK", " OK"),
        ("<think>a</think>b<think>c</think>OK", "OK"),
        ("<THINK>a</THINK>OK", "OK"),
        ("done<think>again", "done"),
        ("    indented", "    indented"),
        (None, ""),
    ],
)
def test_thinking_is_never_the_answer(reply: str | None, seen: str) -> None:
    assert visible(reply) == seen


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        ({"text": None, "reasoning": "2 and 2", "finish_reason": "length"}, "truncated"),
        ({"text": "", "finish_reason": "stop"}, "empty"),
        ({"text": "<think>x", "finish_reason": "length"}, "truncated"),
        ({"text": "", "finish_reason": "content_filter"}, "content_filter"),
        ({"text": "hm", "finish_reason": "stop"}, None),
        (None, "empty"),
        ("", "empty"),
        ("text", None),
    ],
)
def test_no_answer_has_a_cause(response: object, cause: str | None) -> None:
    assert no_answer(response) == cause


def test_a_verdict_without_an_answer_fails_and_says_why() -> None:
    out = verdict(True, None, "4", {"text": "words", "finish_reason": "stop"})
    assert out["score"] == 0.0 and out["no_answer"] == "unparsed"


def test_null_content_is_not_replaced_by_the_reasoning() -> None:
    assert answer_text({"text": None, "reasoning": "4"}) == ""


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("Paris", " paris. ", True),
        ("**Paris**", "Paris", True),
        ("“Paris”", "Paris", True),
        ("it\u2019s", "it's", True),
        ("] ]", "]]", False),
        ("] ]", "]  ]", True),
        (")", ") )", False),
        ("", "", False),
        ("a.b.", "a.b", True),
        ("cafe\u0301", "café", True),
    ],
)
def test_texts_are_compared_after_what_cannot_matter_is_gone(left: str, right: str, same: bool) -> None:
    assert same_text(left, right) is same


def test_loose_comparison_drops_articles_and_punctuation() -> None:
    assert same_as_any("The Beatles!", ["beatles"], punctuation=False)
    assert not same_as_any("The Beatles!", ["beatles"])


@pytest.mark.parametrize(
    ("reply", "answer", "rule"),
    [
        ("Let us see. So the answer is False.", "False", "answer is"),
        ("So the answer is ) ]. \nQ: next\nSo the answer is >.", ") ]", "answer is"),
        ("The answer is:\n\n**blue**", "blue", "answer is"),
        ("**Answer:** blue", "blue", "answer line"),
        ("Thus \\boxed{\\text{blue}}", "blue", "boxed"),
        ("blue.\nmore words", "blue", "first line"),
    ],
)
def test_a_short_answer_is_cut_out(reply: str, answer: str, rule: str) -> None:
    found = short_answer(reply)
    assert found is not None and (found.value, found.rule) == (answer, rule)


def test_json_is_compared_by_structure() -> None:
    wanted = parse_json('{"a":1,"b":{"x":[1,2],"y":null}}')
    assert same_json(parse_json('{\n "b": {"y": null, "x": [1, 2]}, "a": 1.0}'), wanted)
    assert not same_json(parse_json('{"a":1,"b":{"x":[2,1],"y":null}}'), wanted)
    assert not same_json(parse_json('{"a":1,"b":{"x":[1,2]}}'), wanted)
    assert not same_json({"a": True}, {"a": 1})
    assert not same_json({"a": "1"}, {"a": 1})


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "NaN", "", "{", "[1,]", "[" * 100_000])
def test_what_is_not_strict_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        parse_json(text)


def test_json_is_found_in_a_fence_and_in_prose() -> None:
    assert find_json('Here:\n```json\n{"a": 1}\n```\nok?') == {"a": 1}
    assert find_json('The result is {"a": [1]} as asked.') == {"a": [1]}
    with pytest.raises(NotJson):
        find_json("no JSON here")


def test_items_are_split_and_compared_as_lists_or_sets() -> None:
    assert split_items("red, green, and blue.") == ["red", "green", "blue"]
    assert split_items("[a; b, c]") == ["a", "b, c"]
    for reply in ("Answer: red, green and blue", '["red","green","blue"]', "Sure:\n- red\n- green\n- blue\n"):
        found = list_answer(reply)
        assert found is not None and same_list(found.value, ["Red", "green", "blue"])
        assert same_set(found.value, ["blue", "green", "red"])
        assert not same_list(found.value, ["blue", "green", "red"])
    assert not same_set([], [])
    assert list_answer("") is None


def test_colour_codes_do_not_stick_to_words() -> None:
    assert without_ansi("\x1b[1;33mPASSED\x1b[m a") == "PASSED a"


def test_another_version_is_refused_by_name() -> None:
    require(scoring.VERSION)
    with pytest.raises(WrongVersion, match=r"9\.9\.9"):
        require("9.9.9")


def test_every_public_name_is_there() -> None:
    assert all(hasattr(scoring, name) for name in scoring.__all__)
    assert sorted(set(scoring.__all__)) == sorted(scoring.__all__)


@pytest.mark.parametrize(
    "piece",
    ["1,", "A: ", "answer is ", "Answer: A\n", "\\boxed{", "[", "```\n", "<think>", "(A) ", "- x\n", "\ndef ", "\x1b["],
)
def test_no_text_makes_a_helper_raise_or_take_for_ever(piece: str) -> None:
    text = (piece * 100_000)[:100_000]
    started = time.monotonic()
    scoring.number_answer(text)
    scoring.choice_letter(text, "ABCD", ["x", "y", "z", "w"])
    scoring.label_answer(text, ["yes", "no"])
    scoring.short_answer(text)
    scoring.list_answer(text)
    scoring.complete_function("def f():\n", text, "f")
    scoring.read_calls({"text": text})
    assert time.monotonic() - started < 20

"""A tool call is right by name, types and values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit import rules_harness  # noqa: F401 - puts the scoring helpers on the path

# isort: split
from benchwright_scoring import Call, accepts, match_call, match_calls, openai_tools, read_calls, same_arguments

FUNCTION = {
    "name": "map.route",
    "parameters": {
        "type": "dict",
        "properties": {
            "start": {"type": "string"},
            "distance": {"type": "float"},
            "stops": {"type": "array", "items": {"type": "string"}},
            "fast": {"type": "boolean"},
            "count": {"type": "integer"},
            "options": {"type": "dict"},
        },
        "required": ["start"],
    },
}
ACCEPTED: dict[str, Any] = {
    "map.route": {
        "start": ["New York, NY", "NYC"], "distance": [10.0, ""], "stops": [["A", "B"], ""], "fast": [True, ""],
        "count": [3, ""], "options": [{"toll": [False], "lane": ["left", ""]}, ""],
    }
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ({"start": "new york NY"}, True),
        ({"start": "NYC", "distance": 10}, True),
        ({"start": "NYC", "distance": 10.0, "fast": True, "count": 3}, True),
        ({"start": "NYC", "stops": ["a", "b"]}, True),
        ({"start": "NYC", "stops": '["A", "B"]'}, True),
        ({"start": "NYC", "options": {"toll": False}}, True),
        ({"start": "NYC", "options": {"toll": False, "lane": "Left"}}, True),
        ({"start": "NYC", "options": {"lane": "left"}}, False),
        ({"start": "NYC", "stops": ["b", "a"]}, False),
        ({"start": "Boston"}, False),
        ({}, False),
        ({"start": "NYC", "way": 1}, False),
        ({"start": "NYC", "distance": "10"}, False),
        ({"start": "NYC", "fast": 1}, False),
        ({"start": "NYC", "fast": "true"}, False),
        ({"start": "NYC", "count": 3.0}, False),
        ({"start": "NYC", "count": True}, False),
    ],
)
def test_arguments_are_checked_by_type_and_value(arguments: dict[str, Any], right: bool) -> None:
    match = match_call(Call("map_route", arguments, ""), ACCEPTED, FUNCTION)
    assert match.ok is right
    assert bool(match.why) is not right


def test_a_whole_number_inside_a_list_is_no_float() -> None:
    assert accepts([1.0, 3.0], [[1.0, 3.0]], "array")
    assert not accepts([1, 3], [[1.0, 3.0]], "array")


def test_another_function_and_one_call_too_many_are_wrong() -> None:
    good = Call("map.route", {"start": "NYC"}, "")
    assert not match_call(good._replace(name="map.walk"), ACCEPTED, FUNCTION).ok
    assert match_calls([good], [ACCEPTED], [FUNCTION]).ok
    assert not match_calls([good, good], [ACCEPTED], [FUNCTION]).ok
    assert not match_calls([], [ACCEPTED], [FUNCTION]).ok


@pytest.mark.parametrize(
    ("response", "calls"),
    [
        ({"text": "", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]}, [("f", {"a": 1})]),
        ({"text": "", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]}, [("f", {"a": 1})]),
        ({"text": "", "tool_calls": [{"name": "f", "arguments": '"{\\"a\\": 1}"'}]}, [("f", {"a": 1})]),
        ({"text": '{"name": "f", "arguments": {"a": 1}}'}, [("f", {"a": 1})]),
        ({"text": '```json\n[{"name": "f", "parameters": {"a": 1}}]\n```'}, [("f", {"a": 1})]),
        ({"text": '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'}, [("f", {"a": 1})]),
        ({"text": '{"f": {"a": 1}}'}, [("f", {"a": 1})]),
        ({"text": "[m.f(a=1, b='x')]"}, [("m.f", {"a": 1, "b": "x"})]),
        ({"text": "I would not call anything."}, []),
        ({"text": "<think>f(a=1)</think>no"}, []),
        ("", []),
        (None, []),
    ],
)
def test_calls_are_read_wherever_models_put_them(response: Any, calls: list[Any]) -> None:
    assert [(c.name, c.arguments) for c in read_calls(response)] == calls


def test_arguments_that_cannot_be_read_are_a_wrong_call_not_a_missing_one() -> None:
    calls = read_calls({"text": "", "tool_calls": [{"name": "f", "arguments": "{broken"}]})
    assert len(calls) == 1
    assert not match_calls(calls, [{"f": {"a": [1, ""]}}]).ok


def test_descriptions_become_valid_tools() -> None:
    tool = openai_tools([FUNCTION])[0]["function"]
    assert tool["name"] == "map_route"
    assert tool["parameters"]["type"] == "object"
    assert tool["parameters"]["properties"]["distance"] == {"type": "number"}
    assert "dict" not in json.dumps(tool)


def test_a_parameter_called_type_is_kept() -> None:
    function = {"name": "f", "parameters": {"type": "dict", "properties": {"type": {"type": "tuple"}}}}
    assert openai_tools([function])[0]["function"]["parameters"]["properties"] == {"type": {"type": "array"}}


@pytest.mark.parametrize(
    ("actual", "right"),
    [
        ({"hour": 7, "label": "gym", "on": True}, True),
        ({"hour": 7.0, "label": "gym", "on": True}, True),
        ({"hour": 19, "label": "gym", "on": True}, False),
        ({"hour": "7", "label": "gym", "on": True}, False),
        ({"hour": 7, "label": "gym", "on": 1}, False),
        ('{"hour": 7, "label": "gym", "on": true}', True),
        ("nonsense", False),
    ],
)
def test_plain_arguments_are_equal_as_json(actual: Any, right: bool) -> None:
    assert same_arguments(actual, {"hour": 7, "label": "gym", "on": True}).ok is right

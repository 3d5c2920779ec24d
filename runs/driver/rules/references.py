"""What the oracle says, taken from the label and from nothing that the scorer computes."""

from __future__ import annotations

import json
import re
from typing import Any

from runs.driver.rules.derivation import Reference


def text_reference(label: Any) -> Reference:
    """A label as a model would say it: text as it is, true and false as words, other values as JSON."""
    if isinstance(label, str):
        return Reference(text=label)
    if isinstance(label, bool):
        return Reference(text="Yes" if label else "No")
    return Reference(text=json.dumps(label))


def letter_reference(letter: str) -> Reference:
    """The letter of the right option."""
    return Reference(text=letter)


def list_reference(items: list[Any]) -> Reference:
    """The items, as a JSON array: the one form in which an item may hold any character."""
    return Reference(text=json.dumps([item if isinstance(item, str) else json.dumps(item) for item in items]))


def code_reference(prompt: str, solution: str) -> Reference:
    """A chat model's answer: the whole program in a fence. `prompt` is "" when the solution stands alone."""
    return Reference(text=f"```python\n{prompt}{solution}\n```")


def calls_reference(accepted: list[dict[str, dict[str, list[Any]]]], functions: list[dict[str, Any]]) -> Reference:
    """The first accepted value of each argument; an argument that may be left out is left out."""
    by_name = {str(f.get("name")): f for f in functions}
    calls = []
    for call in accepted:
        (name, arguments), *_ = call.items()
        required = ((by_name.get(name) or {}).get("parameters") or {}).get("required") or []
        chosen = {
            key: _first(values)
            for key, values in arguments.items()
            if key in required or not any(isinstance(v, str) and v == "" for v in values)
        }
        calls.append({"name": re.sub(r"[^A-Za-z0-9_-]", "_", name), "arguments": chosen})
    return Reference(tool_calls=calls)


def _first(values: list[Any]) -> Any:
    value = next((v for v in values if not (isinstance(v, str) and v == "")), "")
    return _concrete(value)


def _concrete(value: Any) -> Any:
    """An accepted object gives a list of values for each of its keys: take the first ones."""
    if isinstance(value, dict):
        return {
            key: _first(inner) if isinstance(inner, list) else inner
            for key, inner in value.items()
            if not (isinstance(inner, list) and "" in inner)
        }
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return [_concrete(item) for item in value]
    return value

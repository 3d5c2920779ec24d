"""JSON answers: parsed strictly, compared by structure."""

import json
import re
from typing import Any, Optional

_FENCE = re.compile(r"```[a-zA-Z0-9_+-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


class NotJson(ValueError):
    """The text is not one JSON value; the message says why."""


def _unique(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"the key {repeated!r} is there twice")
    return out


def _constant(name: str) -> Any:
    raise NotJson(f"{name} is not JSON")


def parse_json(text: str) -> Any:
    """One strict JSON value: no repeated key, no NaN. Raises NotJson."""
    try:
        return json.loads(text.lstrip("\ufeff"), object_pairs_hook=_unique, parse_constant=_constant)
    except NotJson:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error) or "too deep") from None


def find_json(text: Optional[str]) -> Any:
    """The JSON value of a reply: the whole text, else the last fenced block that parses, else the first object or
    array that stands in the text. Raises NotJson."""
    if not text or not text.strip():
        raise NotJson("the reply is empty")
    try:
        return parse_json(text.strip())
    except NotJson as error:
        reason = error
    for block in reversed(_FENCE.findall(text)):
        try:
            return parse_json(block.strip())
        except NotJson as error:
            reason = error
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)
    for start in [m.start() for m in re.finditer(r"[{\[]", text)][:200]:
        try:
            return decoder.raw_decode(text, start)[0]
        except NotJson as error:
            raise error from None
        except (ValueError, RecursionError):
            continue
    raise reason


def same_json(left: Any, right: Any) -> bool:
    """Equal as JSON: key order is free, list order is not, 7 and 7.0 are the same number, a bool is never a number,
    a missing key is not null."""
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and left == right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same_json, left, right))
    return type(left) is type(right) and left == right

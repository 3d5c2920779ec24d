"""Answers that are several items."""

import re
from typing import Any, List, Optional, Sequence

from .answers import phrase_answer
from .found import Found
from .jsons import NotJson, find_json
from .text import normalise, strip_answer

_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+(.*\S)\s*$")


def split_items(text: str) -> List[str]:
    """The items of "a, b, and c", "a; b", "[a, b]", "{a, b}" or "a and b": stripped, empty ones dropped.

    A semicolon, where there is one, is the only separator (items may then hold commas).
    """
    text = strip_answer(text)
    if len(text) > 1 and text[0] + text[-1] in ("[]", "{}", "()"):
        text = text[1:-1]
    separator = r";" if ";" in text else r",\s*and\s+|,|\s+and\s+|\s+&\s+"
    return [item for item in (strip_answer(part) for part in re.split(separator, text)) if item]


def list_answer(text: str) -> Optional[Found]:
    """The items that a reply gives. `value` is a list of strings.

    Rules, in order: a marked answer ("answer is …", "Answer: …"); a JSON array; the last block of bulleted or numbered
    lines; the first line.
    """
    if not text or not text.strip():
        return None
    marked = phrase_answer(text)
    if marked is not None and not _BULLET.match(marked.text + " "):
        items = _json_items(marked.text) or split_items(marked.text)
        return Found(items, marked.text, marked.rule) if items else None
    items = _json_items(text)
    if items:
        return Found(items, ", ".join(items), "JSON array")
    block: List[str] = []
    for line in reversed(text.strip().split("\n")):
        bullet = _BULLET.match(line)
        if bullet:
            block.append(strip_answer(bullet.group(1)))
        elif block and line.strip():
            break
    if block:
        block.reverse()
        return Found(block, ", ".join(block), "bulleted lines")
    items = split_items(text.strip().split("\n", 1)[0])
    return Found(items, ", ".join(items), "first line") if items else None


def _json_items(text: str) -> List[str]:
    try:
        value = find_json(text)
    except NotJson:
        return []
    if not isinstance(value, list) or not all(isinstance(v, (str, int, float)) for v in value):
        return []
    return [str(v) for v in value]


def same_list(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """The same items in the same order, compared as normalised text. Two empty lists are not an answer: False."""
    first, second = [normalise(str(x)) for x in left], [normalise(str(x)) for x in right]
    return bool(first) and first == second


def same_set(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """The same items in any order; repeats count once. Two empty sets are not an answer: False."""
    first, second = {normalise(str(x)) for x in left}, {normalise(str(x)) for x in right}
    return bool(first) and first == second


def overlap_f1(left: Sequence[Any], right: Sequence[Any]) -> float:
    """F1 of the items that both hold, in [0, 1]; 0.0 when either is empty."""
    first, second = {normalise(str(x)) for x in left}, {normalise(str(x)) for x in right}
    if not first or not second:
        return 0.0
    return 2 * len(first & second) / (len(first) + len(second))

"""Reads the JSON that providers really send.

Half a surrogate pair out of a model's mouth, NaN among the log probabilities, bytes that are not UTF-8: not quite JSON,
yet an answer all the same, and paid for. orjson refuses them; the second reading does not.
"""

from __future__ import annotations

import json
from typing import Any

import orjson


def loads(raw: bytes) -> tuple[Any, bytes]:
    """The document, and the bytes to hand on: `raw` itself when it is proper JSON, else an ASCII rewriting.

    Raises ValueError when it is no JSON at all, or nested absurdly deep.
    """
    try:
        return orjson.loads(raw), raw
    except orjson.JSONDecodeError:
        pass
    try:
        document = json.loads(raw.decode("utf-8", "replace"))
        return document, json.dumps(document).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dumps(document: Any) -> bytes:
    """JSON bytes, also of text that UTF-8 can't hold."""
    try:
        return orjson.dumps(document, default=str)
    except TypeError:
        return json.dumps(document, default=str).encode()


def printable(text: str) -> str:
    """The text with what UTF-8 can't hold replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

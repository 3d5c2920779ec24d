"""Canonical JSON: sorted keys, no spaces, ASCII-escaped. The text that digests are taken over.

NUL, lone surrogates and non-finite numbers survive as text (`\\u0000`, `\\ud800`, `NaN`), so that a hostile answer can
be stored and verified exactly as it came.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

_UNSAFE = re.compile(r"\\u0000|\\ud[89a-f]|NaN|Infinity", re.IGNORECASE)
_LONE = re.compile("[\ud800-\udfff]")


def canonical(value: Any) -> str:
    """Any JSON value as its one text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def sha256(text: str | bytes) -> str:
    """64 hex digits."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def digest(value: Any) -> str:
    """SHA-256 over the canonical text, 64 hex digits."""
    return sha256(canonical(value))


def short(value: Any) -> str:
    """The first 12 hex digits of `digest(value)`."""
    return digest(value)[:12]


def jsonb_text(text: str) -> str:
    """The same JSON in a form that Postgres jsonb accepts.

    jsonb refuses NUL, lone surrogates and NaN; they become visible stand-ins. The exact text stays in the log.
    """
    # Nearly every text is plain: three fast looks spare the pattern.
    if ("\\u" not in text and "NaN" not in text and "Infinity" not in text) or not _UNSAFE.search(text):
        return text
    return json.dumps(_sanitise(json.loads(text)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _sanitise(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value.replace("\0", "\u2400"))
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)
    if isinstance(value, list):
        return [_sanitise(v) for v in value]
    if isinstance(value, dict):
        return {_sanitise(k): _sanitise(v) for k, v in value.items()}
    return value

"""Lines out of a sandbox to facts that may enter the log. Everything that comes in here is hostile text. Pure."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

MAX_LINE = 32 << 20
_LONG_NUMBER = re.compile(rb"\d{19}")
NO_ANSWER = frozenset({"empty", "refused", "truncated", "content_filter", "unparsed"})
ERROR_KINDS = frozenset({"scorer", "model", "timeout", "memory", "crash", "bad_score"})


class Lines:
    """Cuts a byte stream into JSON objects. A line that is none, or that never ends, is counted and dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self.rubbish = 0

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The whole objects so far."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            self._rest, self.rubbish = b"", self.rubbish + 1
        out = []
        for line in whole:
            if not line.strip():
                continue
            try:
                # The fast reader turns numbers over 64 bits into floats; an answer must come back as it was.
                value = json.loads(line) if _LONG_NUMBER.search(line) else orjson.loads(line)
            except (ValueError, RecursionError):
                try:
                    value = json.loads(line)  # lone surrogates and NaN, which are answers too
                except (ValueError, RecursionError):
                    self.rubbish += 1
                    continue
            if isinstance(value, dict):
                out.append(value)
            else:
                self.rubbish += 1
        return out


def score_of(frame: dict[str, Any]) -> tuple[float | None, dict[str, Any] | None]:
    """(score in [0, 1] or None, error or None): the guest's word is checked again here."""
    error = frame.get("error")
    if error is not None:
        return None, clean_error(error)
    score = frame.get("score")
    if (
        isinstance(score, bool)
        or not isinstance(score, (int, float))
        or not math.isfinite(score)
        or not 0 <= score <= 1
    ):
        return None, {"kind": "bad_score", "type": "bad_score", "message": f"the scorer returned {score!r}"[:300]}
    return float(score), None


def clean_error(error: Any) -> dict[str, Any]:
    """An error with known keys and bounded texts."""
    if not isinstance(error, dict):
        return {"kind": "scorer", "type": "unknown", "message": str(error)[:2000]}
    kind = error.get("kind")
    out = {
        "kind": kind if kind in ERROR_KINDS else "scorer",
        "type": str(error.get("type") or "")[:200],
        "message": str(error.get("message") or "")[:4000],
    }
    if error.get("trace"):
        out["trace"] = str(error["trace"])[:8000]
    return out


def number(value: Any) -> float | None:
    """A finite, non-negative number, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return round(float(value), 3)


def word(value: Any, known: frozenset[str] | None = None, limit: int = 200) -> str | None:
    """A short text, or None; with `known` only one of these."""
    if not isinstance(value, str) or (known is not None and value not in known):
        return None
    return value[:limit]

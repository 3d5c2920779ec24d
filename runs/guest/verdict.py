"""From what `solve` and `score` returned to what the log holds: checked, bounded, JSON.

Everything here is judged hostile or wrong until it fits: an exception, NaN, 1.2, "0.7" or None is an error with its
reason, never a fail.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from .sut import SutError, SutResult, SutTimeout

RESPONSE_LIMIT = 1_000_000
META_LIMIT = 64 << 10
FIELD_LIMIT = 8 << 10
TRACE_LIMIT = 4 << 10
MESSAGE_LIMIT = 2_000

NO_ANSWER = ("empty", "refused", "truncated", "content_filter", "unparsed")

_LIFTED = ("extracted", "rule", "no_answer", "target")

ErrorDict = dict[str, Any]


class TaskTimeout(BaseException):
    """Thrown into a worker whose task is over its time. Not an Exception, so that `except Exception` lets it pass."""


class BadScore(Exception):
    """`score` returned something that is not a score."""


class Rejected(Exception):
    """`solve` returned something that cannot stand in the log."""


class Verdict(NamedTuple):
    """A score in [0, 1] and what the scorer said beside it."""

    score: float
    meta: dict[str, Any]
    extracted: Any
    rule: Any
    no_answer: str | None
    target: Any


def read_verdict(value: Any) -> Verdict:
    """What `score` returned: a number, or {"score": number, **meta}. Raises BadScore."""
    meta: dict[str, Any] = {}
    if isinstance(value, dict):
        if "score" not in value:
            raise BadScore(f"score returned a dict without 'score' (keys: {_shown(sorted(map(str, value)))})")
        meta = {str(k): v for k, v in value.items() if k != "score"}
        value = value["score"]
    lifted = {name: meta.pop(name, None) for name in _LIFTED}
    no_answer = lifted["no_answer"]
    if no_answer is True or (isinstance(no_answer, str) and no_answer and no_answer not in NO_ANSWER):
        no_answer = "unparsed"
    return Verdict(
        score=_number(value),
        meta=_bounded_meta(meta),
        extracted=_bounded_field(lifted["extracted"]),
        rule=_bounded_field(lifted["rule"]),
        no_answer=no_answer if isinstance(no_answer, str) and no_answer else None,
        target=_bounded_field(lifted["target"]),
    )


def _number(value: Any) -> float:
    if hasattr(value, "__await__"):
        raise BadScore("score is async; only solve may be")
    if not isinstance(value, (int, float, str)) and hasattr(value, "item"):
        # NumPy and its like.
        try:
            value = value.item()
        except Exception:
            raise BadScore(f"score returned {_shown(value)}, which is not one number") from None
    if isinstance(value, bool):
        return 1.0 if value else 0.0
    if not isinstance(value, (int, float)):
        import numbers
        from decimal import Decimal

        if not isinstance(value, (numbers.Real, Decimal)):
            raise BadScore(f"score returned {_shown(value)} ({type(value).__name__}), not a number")
    try:
        number = float(value)
    except (ValueError, TypeError, ArithmeticError):
        raise BadScore(f"score returned {_shown(value)}, not a number") from None
    if not math.isfinite(number):
        raise BadScore(f"score returned {number}")
    if not 0.0 <= number <= 1.0:
        raise BadScore(f"score returned {number!r}, outside [0, 1]")
    return number + 0.0


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 200 else text[:200] + "…"


def jsonable(value: Any) -> Any:
    """`default=` of json.dumps for meta: what is not JSON is shown as text."""
    if isinstance(value, SutResult):
        return value.as_json()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    return _shown(value)


def _bounded_field(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else _shown(value)
    if isinstance(value, str):
        return value if len(value) <= FIELD_LIMIT else value[:FIELD_LIMIT] + "…"
    try:
        text = json.dumps(value, default=jsonable)
    except Exception:
        return _shown(value)
    return json.loads(text) if len(text) <= FIELD_LIMIT else text[:FIELD_LIMIT] + "…"


def _bounded_meta(meta: dict[str, Any]) -> dict[str, Any]:
    if not meta:
        return meta
    try:
        text = json.dumps(meta, default=jsonable)
        if len(text) <= META_LIMIT:
            result: dict[str, Any] = json.loads(text)
            return result
    except Exception:
        # Odd keys, a cycle, a repr that raises: field by field below.
        text = ""
    out: dict[str, Any] = {}
    room = META_LIMIT
    for name, value in meta.items():
        field = _bounded_field(value)
        room -= len(name) + len(json.dumps(field))
        if room < 0:
            out["cut"] = True
            break
        out[name[:200]] = field
    return out


def encode_response(value: Any) -> tuple[str, bool]:
    """(JSON text of what `solve` returned, whether it was cut). Raises Rejected."""
    cut = False
    if isinstance(value, SutResult):
        value = value.as_json()
    if isinstance(value, str) and len(value) > RESPONSE_LIMIT:
        value, cut = value[:RESPONSE_LIMIT], True
    try:
        text = json.dumps(value, default=_answer)
    except MemoryError:
        raise
    except Exception as error:
        raise Rejected(f"solve returned {_shown(value)}, which is not JSON: {_shown(str(error))}") from None
    # An escaped character takes up to six.
    if len(text) > (6 * RESPONSE_LIMIT if isinstance(value, str) else RESPONSE_LIMIT):
        raise Rejected(f"solve returned {len(text)} characters of JSON; at most {RESPONSE_LIMIT}")
    if len(text) > 3 * RESPONSE_LIMIT:
        text, cut = json.dumps(value[: RESPONSE_LIMIT // 2]), True
    return text, cut


def _answer(value: Any) -> Any:
    if isinstance(value, SutResult):
        return value.as_json()
    raise TypeError(f"{type(value).__name__} is not JSON")


def observed_no_answer(value: Any, last: SutResult | None) -> str | None:
    """What the runner itself saw: one of NO_ANSWER but "unparsed", or None."""
    if last is not None:
        if last.finish_reason == "content_filter":
            return "content_filter"
        if last.refusal or last.finish_reason == "refusal":
            return "refused"
        if not last.text.strip() and not last.tool_calls:
            # Reasoning may use up all the tokens before a first word of the answer.
            return "truncated" if last.finish_reason == "length" else "empty"
    return "empty" if is_blank(value) else None


def is_blank(value: Any) -> bool:
    """An answer with nothing in it."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, dict) and "text" in value:
        return not value.get("tool_calls") and (value["text"] is None or not str(value["text"]).strip())
    return value is None


def settle_no_answer(verdict: Verdict, observed: str | None, finish_reason: str | None) -> str | None:
    """Why there is no answer, where there is none: the scorer's word, sharpened by what was observed.

    A passing score had an answer, whatever it looked like.
    """
    if verdict.score >= 1.0:
        return None
    if observed:
        return verdict.no_answer if verdict.no_answer not in (None, "unparsed") else observed
    if finish_reason == "length" and verdict.extracted is None and verdict.no_answer in (None, "unparsed"):
        return "truncated"
    return verdict.no_answer


def error_dict(error: BaseException, kind: str = "") -> ErrorDict:
    """{"kind", "type", "message", "trace"}: bounded, whatever the exception holds."""
    if not kind:
        kind = (
            "timeout"
            if isinstance(error, (SutTimeout, TaskTimeout))
            else "model"
            if isinstance(error, SutError)
            else "bad_score"
            if isinstance(error, BadScore)
            else "memory"
            if isinstance(error, MemoryError)
            else "scorer"
        )
    try:
        message = str(error)[:MESSAGE_LIMIT]
    except BaseException:
        message = "(its message cannot be shown)"
    name = error.type if isinstance(error, SutError) else type(error).__name__
    out: ErrorDict = {"kind": kind, "type": str(name)[:200], "message": message, "trace": None}
    if isinstance(error, SutError):
        out["status"] = error.status or None
    elif not isinstance(error, (BadScore, Rejected)):
        out["trace"] = short_trace(error)
    return out


def short_trace(error: BaseException) -> str | None:
    """The last frames of an exception, without this runner's own."""
    try:
        import traceback

        frames = traceback.extract_tb(error.__traceback__, limit=-12)
        return shown_frames(frames)
    except BaseException:
        return None


def shown_frames(frames: Any) -> str:
    """Frames as text, oldest first, without this runner's own."""
    own = __file__.rpartition("/")[0] + "/"
    lines: list[str] = []
    for frame in frames:
        if frame.filename.startswith(own):
            continue
        lines.append(f"{frame.filename}:{frame.lineno} in {frame.name}: {(frame.line or '')[:200]}")
    return "\n".join(lines)[-TRACE_LIMIT:]


def result_line(
    index: int,
    trial: int,
    attempts: int,
    *,
    verdict: Verdict | None = None,
    no_answer: str | None = None,
    error: ErrorDict | None = None,
    score_ms: float = 0.0,
) -> bytes:
    """One "result" frame: either a verdict or an error."""
    frame = {
        "t": "result",
        "index": index,
        "trial": trial,
        "attempts": attempts,
        "score": verdict.score if verdict else None,
        "meta": verdict.meta if verdict else {},
        "extracted": verdict.extracted if verdict else None,
        "rule": verdict.rule if verdict else None,
        "no_answer": no_answer,
        "target": verdict.target if verdict else None,
        "error": error,
        "score_ms": round(score_ms, 2),
    }
    return json.dumps(frame).encode("ascii") + b"\n"


def failed_line(index: int, trial: int, attempt: int, error: ErrorDict) -> bytes:
    """One "attempt_failed" frame."""
    frame = {"t": "attempt_failed", "index": index, "trial": trial, "attempt": attempt, "error": error}
    return json.dumps(frame).encode("ascii") + b"\n"

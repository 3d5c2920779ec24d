"""What an extraction found, and by which rule."""

from fractions import Fraction
from typing import Any, NamedTuple, Optional


class Found(NamedTuple):
    """`value` is ready to compare, `text` is how the model wrote it, `rule` names the rule that found it."""

    value: Any
    text: str
    rule: str


def shown(value: Any) -> Any:
    """A value in one plain form, so that equal answers look equal and can be counted: 1,000 and 1000.0 are "1000"."""
    if isinstance(value, (frozenset, set)):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)) and hasattr(value, "value"):
        value = value.value  # type: ignore[union-attr]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Fraction):
        return _decimal(value)
    return value


def _decimal(value: Fraction) -> str:
    """Digits where they end (at most 12 after the point), else a/b."""
    if value.denominator == 1:
        return str(value.numerator) if abs(value.numerator) < 10**40 else f"{float(value):e}"
    scaled = value * 10**12
    if scaled.denominator == 1:
        sign, digits = ("-" if scaled < 0 else ""), str(abs(scaled.numerator)).rjust(13, "0")
        return f"{sign}{digits[:-12]}.{digits[-12:].rstrip('0')}"
    return f"{value.numerator}/{value.denominator}"[:80]


def verdict(right: bool, found: Optional[Found], target: Any, response: Any = None) -> dict:
    """The dict that `score` returns: score 1.0 or 0.0, what was extracted, by which rule, and the target.

    Where nothing was found, `no_answer` says why ("empty", "refused", "truncated", "content_filter", "unparsed").
    """
    from .response import no_answer

    out = {
        "score": 1.0 if right and found is not None else 0.0,
        "extracted": None if found is None else shown(found.value),
        "rule": None if found is None else found.rule,
        "target": shown(target),
    }
    if found is not None and found.text != out["extracted"]:
        out["written"] = found.text[:500]
    if found is None:
        out["no_answer"] = no_answer(response) or "unparsed"
    return out

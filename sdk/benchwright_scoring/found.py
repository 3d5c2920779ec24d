"""What an extraction found, and by which rule."""

from typing import Any, NamedTuple, Optional


class Found(NamedTuple):
    """`value` is ready to compare, `text` is how the model wrote it, `rule` names the rule that found it."""

    value: Any
    text: str
    rule: str


def verdict(right: bool, found: Optional[Found], target: Any, response: Any = None) -> dict:
    """The dict that `score` returns: score 1.0 or 0.0, what was extracted, by which rule, and the target.

    Where nothing was found, `no_answer` says why ("empty", "refused", "truncated", "content_filter", "unparsed").
    """
    from .response import no_answer

    out = {
        "score": 1.0 if right and found is not None else 0.0,
        "extracted": None if found is None else found.text,
        "rule": None if found is None else found.rule,
        "target": target,
    }
    if found is None:
        out["no_answer"] = no_answer(response) or "unparsed"
    return out

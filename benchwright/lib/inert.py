"""Text that came from a model, a data set or a scorer, made safe to print: visible, encodable, and unable to act.

Escaping HTML is the template's work. This takes out what escaping leaves: bytes that break the response (lone
surrogates), that a terminal would obey (control characters) and that reorder what a person reads (bidi overrides).
"""

from __future__ import annotations

import json
import re

_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufff9-\ufffb\ud800-\udfff]"
)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures: NUL shows as a small NUL sign
    if code == 0x7F:
        return "\u2421"
    return f"\u27e8U+{code:04X}\u27e9"


def inert(value: object) -> str:
    """`value` as text in which nothing is invisible or active. Newlines and tabs stay; None is empty."""
    if value is None:
        return ""
    return _ODD.sub(_visible, str(value).replace("\r\n", "\n"))


def readable(value: object) -> str:
    """Text as it is; any other JSON value indented. Both inert."""
    if value is None or isinstance(value, str):
        return inert(value)
    try:
        return inert(json.dumps(value, ensure_ascii=False, indent=2, default=str))
    except (TypeError, ValueError, RecursionError):
        return inert(repr(value))

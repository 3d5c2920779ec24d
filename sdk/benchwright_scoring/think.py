"""Hidden reasoning is never graded as the answer."""

import re
from typing import Optional

_CLOSE = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_OPEN = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)


def visible(text: Optional[str]) -> str:
    """What a reader was meant to see: the text after the last closing tag; "" when thinking never ended.

    A stray closing tag counts too, for servers that swallow the opening one. None gives "".
    """
    if not text:
        return ""
    end = 0
    for close in _CLOSE.finditer(text):
        end = close.end()
    rest = text[end:]
    opened = _OPEN.search(rest)
    if opened:
        rest = rest[: opened.start()]
    return rest.strip("\n") if end or opened else rest

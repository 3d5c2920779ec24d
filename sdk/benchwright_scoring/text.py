"""Comparing short texts: what may differ and what may not."""

import re
import unicodedata
from typing import Iterable, Optional

_SPACES = re.compile(r"\s+")
_QUOTES = {ord(c): "'" for c in "\u2018\u2019\u201b\u2032"}
_QUOTES.update({ord(c): '"' for c in "\u201c\u201d\u201f\u2033"})
_DASHES = {ord(c): "-" for c in "\u2010\u2011\u2012\u2013\u2014\u2212"}
_PAIRS = (("**", "**"), ("__", "__"), ("`", "`"), ('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("$", "$"), ("*", "*"))
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def strip_answer(text: str) -> str:
    """A cut-out answer without what surrounds it: spaces, one final dot, a pair of marks (bold, quotes, ticks).

    "**Paris**." gives "Paris". Brackets stay: they can be the answer.
    """
    text = text.strip()
    for _ in range(4):
        before = text
        if text.endswith(".") and not text.endswith(".."):
            text = text[:-1].rstrip()
        for left, right in _PAIRS:
            if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
                text = text[len(left) : -len(right)].strip()
        # An answer cut out of "**The answer is X**" keeps the closing half of the pair.
        for mark in ("**", "__", "`"):
            if text.endswith(mark) and text.count(mark) == 1:
                text = text[: -len(mark)].rstrip()
            elif text.startswith(mark) and text.count(mark) == 1:
                text = text[len(mark) :].lstrip()
        if text == before:
            break
    return text


def normalise(text: str, *, case: bool = True) -> str:
    """The form in which two short texts are compared.

    NFC, typographic quotes and dashes made plain, white space collapsed, `strip_answer`, and case folded unless
    `case=False`. Punctuation inside stays: "] ]" and "]" differ.
    """
    text = unicodedata.normalize("NFC", text).translate(_QUOTES).translate(_DASHES)
    text = strip_answer(_SPACES.sub(" ", text))
    return text.casefold() if case else text


def loose(text: str) -> str:
    """A looser form, for questions of fact: no punctuation, no English articles, case folded."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = "".join(c if c.isalnum() or c.isspace() else " " for c in text if not unicodedata.combining(c))
    return _SPACES.sub(" ", _ARTICLES.sub(" ", text)).strip()


def same_text(left: Optional[str], right: Optional[str], *, case: bool = True) -> bool:
    """Equal after `normalise`. An empty text equals nothing, so that no answer is never right."""
    if not left or not right:
        return False
    first = normalise(left, case=case)
    return bool(first) and first == normalise(right, case=case)


def same_as_any(text: Optional[str], accepted: Iterable[str], *, punctuation: bool = True) -> bool:
    """Whether the text equals one of the accepted ones; `punctuation=False` compares the `loose` forms."""
    if not text:
        return False
    form = normalise if punctuation else loose
    mine = form(text)
    return bool(mine) and any(mine == form(other) for other in accepted)


def without_ansi(text: str) -> str:
    """Text without terminal control sequences, so that a colour code cannot stick to a word that is parsed."""
    return _ANSI.sub("", text)

"""Cutting the answer out of a reply: "… So the answer is X."."""

import re
from typing import Iterable, Optional

from .boxed import last_boxed, unwrap
from .found import Found
from .text import normalise, strip_answer

_IS = re.compile(r"answer is[*_]*:?[*_]*\s+", re.IGNORECASE)
_IS_LINE_END = re.compile(r"answer is[*_]*:?[*_]*[ \t]*(?=\n)", re.IGNORECASE)
_LINE = re.compile(
    r"^[ \t>*_#-]*(?:final\s+|correct\s+|my\s+)?answer[*_]*\s*[:=][*_]*[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE
)
_SHORT = re.compile(r"^[ \t>*_#-]*(?:A|####)(?:[*_]*:[*_]*|(?<=#))[ \t]*(.*)$", re.MULTILINE)


def _line_from(text: str, at: int) -> str:
    """The rest of the line at a place; when that is blank, the next line that is not."""
    for line in text[at:].split("\n"):
        if line.strip(" \t*_:"):
            return line
    return ""


def phrase_answer(text: str) -> Optional[Found]:
    r"""The answer that a reply marks as such.

    Rules, in order: after the first "answer is " up to the end of that line; the last line "Answer: …"; the last
    `\boxed{…}`; the last line "A: …" or "#### …". One final dot, bold marks and quotes are taken off. The first
    "answer is" and not the last: a base model that goes on with the next question must not be graded on it.
    """
    match = _IS.search(text) or _IS_LINE_END.search(text)
    if match:
        answer = strip_answer(_line_from(text, match.end()))
        if answer:
            return Found(answer, answer, "answer is")
    for pattern, rule in ((_LINE, "answer line"), (None, "boxed"), (_SHORT, "answer line")):
        if pattern is None:
            box = last_boxed(text)
            if box:
                return Found(unwrap(box), box, rule)
            continue
        lines = list(pattern.finditer(text))
        if lines:
            answer = strip_answer(_line_from(text, lines[-1].start(1)))
            if answer:
                return Found(answer, answer, rule)
    return None


def short_answer(text: str) -> Optional[Found]:
    """`phrase_answer`, else the first line that is not blank."""
    if not text or not text.strip():
        return None
    found = phrase_answer(text)
    if found is not None:
        return found
    line = strip_answer(text.strip().split("\n", 1)[0])
    return Found(line, line, "first line") if line else None


def label_answer(text: str, labels: Iterable[str]) -> Optional[Found]:
    """Which of a closed set of labels (yes/no, true/false, neg/neutral/pos, …) a reply gives. `value` is the label.

    Rules, in order: the marked answer is a label, or begins with one as a word of its own; the first line is or begins
    with one; the last line is one. Two labels joined by "or" or "and" are no answer, and neither is a label
    somewhere in prose.
    """
    if not text or not text.strip():
        return None
    by_form = {normalise(label): label for label in labels}
    whole = [by_form.get(normalise(line)) for line in text.split("\n") if line.strip()]
    if None not in whole and len(set(whole)) > 1:
        # One label after the other: no answer.
        return None
    marked = phrase_answer(text)
    if marked is not None:
        label = _leading_label(marked.text, by_form)
        return None if label is None else Found(label, marked.text, marked.rule)
    lines = [line for line in text.strip().split("\n") if line.strip()]
    label = _leading_label(lines[0], by_form)
    if label is not None:
        return Found(label, strip_answer(lines[0])[:200], "first line")
    last = by_form.get(normalise(lines[-1]))
    return None if last is None else Found(last, strip_answer(lines[-1]), "last line")


def _leading_label(line: str, by_form: "dict[str, str]") -> Optional[str]:
    text = normalise(line).lstrip("*_-> \t\"'(")
    if text in by_form:
        return by_form[text]
    for form in sorted(by_form, key=len, reverse=True):
        if not text.startswith(form):
            continue
        rest = text[len(form) :]
        if rest[:1].isalnum() or rest[:1] in "-'_":
            continue
        other = re.match(r"[\s*_)\"']*(?:/|or\b|and\b|nor\b)\s*(.*)", rest)
        if other and any(other.group(1).startswith(f) for f in by_form if f != form):
            return None
        return by_form[form]
    return None

"""What a prompt (and the words of a review) say that decides a doubt."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runs.driver.rules.columns import plain
from runs.driver.rules.derivation import Hints

_QUOTED = "[\"'`“”‘’]?"
_LABEL = (
    re.compile(rf"\b(?:label|answer|target|reference)\s+(?:column|field)\s*(?:is|:|=)?\s*{_QUOTED}([\w .-]+)", re.I),
    re.compile(
        rf"{_QUOTED}([\w-]+){_QUOTED}\s+(?:is|holds|has|contains)\s+the\s+(?:right |correct )?(?:answer|label)", re.I
    ),
    re.compile(rf"(?:answer|label)s?\s+(?:is|are)\s+in\s+(?:the\s+)?(?:column\s+|field\s+)?{_QUOTED}([\w .-]+)", re.I),
)
_QUESTION = re.compile(rf"\b(?:question|input|prompt)\s+(?:column|field)\s*(?:is|:|=)?\s*{_QUOTED}([\w .-]+)", re.I)
_LABELS = re.compile(r"\b(?:labels|classes|class names)\s*(?:are|:|=)\s*([^.\n;]+)", re.I)
_BASE = re.compile(
    r"\b(?:index|indices|numbering|counting)\b[^.\n]{0,30}"
    r"\b(?:starts?|begins?|counts?|from|at|is|are)\s+(?:at |from )?([01])\b(?![.,]\d)"
    r"|\b([01])-based\b",
    re.IGNORECASE,
)


def read_hints(prompt: str, columns: Iterable[str]) -> Hints:
    """The hints of a prompt; a column counts as named only when there is one of that name."""
    by_plain = {plain(c): c for c in columns}
    label = next((c for c in (_named(p.search(prompt), by_plain) for p in _LABEL) if c), None)
    labels = _LABELS.search(prompt)
    base = _BASE.search(prompt)
    lowered = prompt.lower()
    return Hints(
        prompt=prompt,
        label=label,
        question=_named(_QUESTION.search(prompt), by_plain),
        labels=tuple(x for x in (p.strip(" \"'`“”") for p in re.split(r",|\band\b|\bor\b", labels.group(1))) if x)
        if labels
        else (),
        numeric=bool(re.search(r"\bnumeric|\bas (?:a )?numbers?\b|compare numbers", lowered)),
        exact=bool(re.search(r"\bexact(?:ly)?\b|\bexact match|\bas text\b|\bnormali[sz]ed", lowered)),
        any_of=bool(
            re.search(
                r"\bany (?:one )?of (?:the|them|these|those|several)\b|\baliases\b|\bone of the (?:answers|accepted)",
                lowered,
            )
        ),
        ordered=bool(
            re.search(r"\border matters\b|\bin (?:this |the same |that )?order\b(?! to)|\bordered\b", lowered)
        ),
        unordered=bool(
            re.search(r"\bany order\b|\bas a set\b|\border does(?:n't| not) matter|\bunordered\b|\bas sets\b", lowered)
        ),
        unproven=bool(re.search(r"\bwithout (?:an? |the )?(?:oracle|proof|solutions?|reference)", lowered)),
        index_base=int(base.group(1) or base.group(2)) if base else None,
    )


def _named(match: re.Match[str] | None, by_plain: dict[str, str]) -> str | None:
    if match is None:
        return None
    words = match.group(1).split()
    for length in range(len(words), 0, -1):
        found = by_plain.get(plain(" ".join(words[:length])))
        if found is not None:
            return found
    return None

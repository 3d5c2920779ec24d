"""Which option a reply chooses."""

import re
from typing import FrozenSet, Optional, Sequence

from .boxed import last_boxed, unwrap
from .found import Found
from .text import normalise, strip_answer

# A reply that marks its answer more often than this is noise; of what follows a mark the head decides.
_TRIED = 100
_HEAD_CHARACTERS = 2000

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# "Answer: B" on a line of its own outranks prose.
_LINE = re.compile(
    r"^[ \t>*_#-]*(?:the\s+)?(?:final\s+|correct\s+|best\s+|my\s+)?(?:answer|choice|option)[*_]*"
    r"\s*(?:[:=]|\s+is\b)[*_:]*[ \t]*(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PROSE = re.compile(
    r"(?:answer|choice|option)[*_]*\s*(?:is|would be|must be|[:=])[*_:]*\s*"
    r"(?:(?:clearly|therefore|thus|probably|option|choice|letter)\s+)*",
    re.IGNORECASE,
)
_SHORT = re.compile(r"^[ \t>*_#-]*A[*_]*:[*_]*[ \t]+(.*)$", re.MULTILINE)
_HEAD = re.compile(
    r"[\s*_`\"'$]*(?:(?:option|choice|letter|answer)\s+)?[*_`\"']*(?:"
    r"[(\[]\s*(?P<bracket>[A-Za-z])\s*[)\]]|\\?\(?(?:\\text\{)?\(?(?P<bare>[A-Za-z])(?![A-Za-z0-9'’]))(?P<rest>.*)",
    re.DOTALL,
)
_BRACKETED = re.compile(r"\(([A-Z])\)|\*\*\(?([A-Z])\)?[.:)]?\*\*")


def letters_for(count: int) -> str:
    """The letters of that many options: ABCD for four. Raises ValueError past 26."""
    if not 1 <= count <= len(LETTERS):
        raise ValueError(f"{count} options: letters go from A to Z")
    return LETTERS[:count]


def _leading_letter(text: str, letters: str, options: Sequence[str]) -> Optional[str]:
    """The letter at the head of a cut-out answer, as a token of its own and one of the valid ones."""
    line = text.split("\n", 1)[0]
    match = _HEAD.match(line)
    if match is None:
        return None
    raw = match.group("bracket") or match.group("bare")
    letter = raw.upper()
    if letter not in letters:
        return None
    rest = match.group("rest").strip(" \t*_`}")
    if match.group("bracket") or not rest:
        return letter
    if re.match(r"(?:and|or|&|,|/)\s*[(\[]?[A-Z](?![A-Za-z])", rest):
        # Two letters are no single choice.
        return None
    if rest[0] in ").:,;]-–—=\"'$":
        return letter
    if options and normalise(rest).startswith(normalise(options[letters.index(letter)])):
        return letter
    # "A dog" and "I think" are words; "B because it is bigger" and "C is right" are letters.
    if raw.islower() or letter in "AI":
        return letter if raw.isupper() and re.match(r"(?:is|because|since|as)\b", rest) else None
    return letter


def _by_text(answer: str, letters: str, options: Sequence[str]) -> Optional[str]:
    form = normalise(answer)
    hits = [letters[at] for at, option in enumerate(options) if form and normalise(option) == form]
    return hits[0] if len(hits) == 1 else None


def _enumerates(text: str, letters: str, options: Sequence[str]) -> bool:
    """A reply that is nothing but several options, one a line, chooses none of them."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not 2 <= len(lines) <= len(letters):
        return False
    heads = [_LINE.match(line) for line in lines]
    chosen = [_read(head.group(1) if head else line, letters, options) for head, line in zip(heads, lines)]  # noqa: B905
    return None not in chosen and len(set(chosen)) == len(lines)


def _read(answer: str, letters: str, options: Sequence[str]) -> Optional[str]:
    by_text = _by_text(strip_answer(answer.split("\n", 1)[0]), letters, options)
    return by_text or _leading_letter(answer, letters, options)


def choice_letter(text: str, letters: str, options: Sequence[str] = ()) -> Optional[Found]:
    r"""The one letter that a reply chooses among `letters`; with `options`, an option's whole text counts as well.

    Rules, in order: the last line "Answer: X" that holds a valid choice; the last `\boxed{X}`; the last "answer is X"
    in prose; a line "A: X"; a reply or first line that is or begins with a letter ("B", "(B)", "B) …"), or is an
    option's text; a last line that is one; a single letter in brackets or bold in the whole text. A letter counts
    only as a token of its own: "none apply" chooses nothing. No match is None, kept apart from a wrong choice.
    """
    if not text or not text.strip():
        return None
    text = text.strip()
    if _enumerates(text, letters, options):
        return None
    for match in reversed(list(_LINE.finditer(text))[-_TRIED:]):
        rest = match.group(1)
        if not rest.strip(" \t*_:"):
            rest = text[match.end() : match.end() + _HEAD_CHARACTERS].lstrip()
        letter = _read(rest, letters, options)
        if letter:
            return Found(letter, strip_answer(rest.split("\n", 1)[0])[:200], "answer line")
    box = last_boxed(text)
    if box:
        letter = _read(unwrap(box), letters, options)
        if letter:
            return Found(letter, box[:200], "boxed")
    for pattern, rule in ((_PROSE, "answer is"), (_SHORT, "answer line")):
        for match in reversed(list(pattern.finditer(text))[-_TRIED:]):
            rest = match.group(1) if pattern.groups else text[match.end() : match.end() + _HEAD_CHARACTERS]
            letter = _read(rest, letters, options)
            if letter:
                return Found(letter, strip_answer(rest.split("\n", 1)[0])[:200], rule)
    lines = [line for line in text.split("\n") if line.strip()]
    for line, rule in ((lines[0], "first line"), (lines[-1], "last line")):
        letter = _read(line, letters, options)
        if letter and (rule == "first line" or len(line.strip()) <= 3 or strip_answer(line)[:1] in "(["):
            return Found(letter, strip_answer(line)[:200], rule)
        by_text = _by_text(strip_answer(line), letters, options)
        if by_text:
            return Found(by_text, strip_answer(line)[:200], "option text")
    marked = {a or b for a, b in _BRACKETED.findall(text)} & set(letters)
    if len(marked) == 1:
        letter = marked.pop()
        return Found(letter, letter, "only letter")
    return None


def choice_letters(text: str, letters: str) -> Optional[Found]:
    """The set of letters that a reply to a several-answers question chooses. `value` is a frozenset.

    The last line "Answer: …" (else the whole reply) split on commas, "and", "&" and spaces; every part must be a
    valid letter, else there is no answer.
    """
    if not text or not text.strip():
        return None
    candidates = [(m.group(1), "answer line") for m in reversed(list(_LINE.finditer(text)))]
    candidates.append((text.strip().split("\n", 1)[0], "first line"))
    candidates.append((text.strip().rsplit("\n", 1)[-1], "last line"))
    for part, rule in candidates:
        chosen = _letter_set(strip_answer(part), letters)
        if chosen:
            return Found(chosen, strip_answer(part)[:200], rule)
    return None


def _letter_set(text: str, letters: str) -> Optional[FrozenSet[str]]:
    parts = [p.strip("()[]*_.\"' ") for p in re.split(r",|;|&|\band\b|\s", text, flags=re.IGNORECASE)]
    parts = [p for p in parts if p]
    if not parts or any(len(p) != 1 or p.upper() not in letters for p in parts):
        return None
    return frozenset(p.upper() for p in parts)

"""Numbers in prose, read exactly.

Values are fractions, so that 0.1 is 0.1 and 3/8 is 3/8. A token starts with a digit (or a sign, a currency sign, a
point before a digit); a comma joins digits only in groups of three; a comma and a space separate two numbers.
"""

import re
import unicodedata
from fractions import Fraction
from typing import Any, List, NamedTuple, Optional, Union

from .boxed import all_boxed
from .found import Found

CURRENCY = "$€£¥₹₽₩¢"
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_GAP = "\u00a0\u2009\u202f"
_GROUPED = r"\d{1,3}(?:(?:,|\{,\}|\\,|[" + _GAP + r"])\d{3}(?!\d))+|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"
_PLAIN = r"(?:" + _GROUPED + r"|\d+)(?:\.\d+)?|(?<![\d.])\.\d+"
_NUMBER = re.compile(
    r"(?P<sign1>[-+])?(?P<money1>\\?[" + re.escape(CURRENCY) + r"]\s?)?(?P<sign2>(?<![\w)])[-+])?"
    r"(?:"
    r"\\[dt]?frac\s*\{\s*(?P<num>-?\d{1,400})\s*\}\s*\{\s*(?P<den>-?\d{1,400})\s*\}"
    r"|(?P<whole>" + _PLAIN + r")"
    r"(?:(?P<exp>[eE][-+]?\d{1,4})(?![\w.])"
    r"|\s?(?:[x×*]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?(?P<pow>\{\s*[-+]?\d{1,4}\s*\}|[-+]?\d{1,4})"
    r"|\s?/\s?(?P<over>\d[\d,]*(?:\.\d+)?)(?![\d/]|\s?/\s?\d)"
    r"|[ ](?P<mixnum>\d{1,9})/(?P<mixden>\d{1,9})(?![\d/])"
    r")?"
    r")"
    r"(?P<percent>\s?\\?%|\s(?:percent|per cent)\b)?"
    r"(?P<scale>\s(?:thousand|million|billion|trillion)\b)?",
)
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5"}
_VULGAR.update({"⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8"})
_MAX_TOKEN = 2000
_TAIL = 4000


class Number(NamedTuple):
    """One number: its exact value as written, its unit ("%", a currency sign, "million" or ""), and its place."""

    value: Fraction
    unit: str
    text: str
    start: int
    end: int

    @property
    def scaled(self) -> Fraction:
        """The value with a scale word applied: 2 million is 2000000."""
        return self.value * 10 ** _SCALES.get(self.unit, 0)


def _plain_characters(text: str) -> str:
    """Same length where it can be: digits of any script and the odd minus signs become ASCII."""
    if text.isascii():
        return text
    out = []
    for char in text:
        if char in "\u2212\u2010\u2011\ufe63\uff0d\u2012":
            out.append("-")
        elif char in "\u2044\u2215":
            out.append("/")
        elif char == "\uff0e":
            out.append(".")
        elif char == "\uff05":
            out.append("%")
        elif char in _VULGAR:
            out.append((" " if out and out[-1].isdigit() else "") + _VULGAR[char])
        elif unicodedata.category(char) == "Nd":
            out.append(str(unicodedata.decimal(char)))
        else:
            out.append(char)
    return "".join(out)


def _bare(token: str) -> str:
    return re.sub(r"[,{}\\" + _GAP + r"]", "", token)


def _is_sign(text: str, at: int) -> bool:
    """A minus is a sign unless something stands before it that could be subtracted from (10-20, x-3, page 4-5)."""
    before = text[at - 1] if at else " "
    return not (before.isalnum() or before in ")]}%." or before == "-")


def _value(match: "re.Match[str]") -> Optional[Fraction]:
    if match.group("num"):
        bottom = int(match.group("den"))
        return Fraction(int(match.group("num")), bottom) if bottom else None
    value = Fraction(_bare(match.group("whole")))
    if match.group("exp"):
        power = int(match.group("exp")[1:])
    elif match.group("pow"):
        power = int(match.group("pow").strip("{} "))
    else:
        power = 0
    if abs(power) > 1000:
        return None
    if power:
        value *= Fraction(10) ** power
    if match.group("over"):
        bottom_value = Fraction(_bare(match.group("over").rstrip(",")))
        return value / bottom_value if bottom_value else None
    if match.group("mixnum"):
        top, bottom = int(match.group("mixnum")), int(match.group("mixden"))
        if 0 < top < bottom and value.denominator == 1:
            return value + Fraction(top, bottom)
        return None
    return value


def find_numbers(text: str) -> List[Number]:
    """Every number in the text, in order. Never raises, whatever the text holds."""
    plain = _plain_characters(text)
    out: List[Number] = []
    at = 0
    while True:
        match = _NUMBER.search(plain, at)
        if match is None:
            return out
        at = match.end()
        if match.end() - match.start() > _MAX_TOKEN:
            continue
        value, end = _value(match), match.end()
        if match.group("over") and plain[max(0, match.start() - 1) : match.start()] == "/":
            # The end of a date, 12/25/1937.
            value = None
        if value is None and match.group("whole"):
            # The tail made no sense (x/0, "2 5/3", an absurd power): the number before it still counts.
            end = at = match.end("whole")
            value = Fraction(_bare(match.group("whole")))
        if value is None:
            continue
        start = match.start()
        sign = match.group("sign1")
        if sign and not _is_sign(plain, start):
            sign, start = None, start + 1
        before = plain[start - 1] if start else " "
        if before.isalpha() and before.isascii() and not match.group("money1") and not sign:
            # x2, H2O, B12: part of a name.
            if match.group("whole") and start == match.start("whole"):
                continue
        if sign == "-" or match.group("sign2") == "-":
            value = -value
        tail_kept = end == match.end()
        unit = ""
        if tail_kept and match.group("percent"):
            unit = "%"
        elif tail_kept and match.group("scale"):
            unit = match.group("scale").strip()
        elif match.group("money1"):
            unit = match.group("money1").strip().lstrip("\\")
        out.append(Number(value, unit, plain[start:end].strip(), start, end))


def parse_number(text: Any) -> Optional[Number]:
    """The number that a text is, with at most a unit or a little punctuation around it; None when it says more.

    Numbers are taken as they are (a bool is not one).
    """
    if isinstance(text, bool):
        return None
    if isinstance(text, (int, float, Fraction)):
        try:
            return Number(Fraction(str(text)) if isinstance(text, float) else Fraction(text), "", str(text), 0, 0)
        except (ValueError, OverflowError):
            return None
    if not isinstance(text, str):
        return None
    stripped = text.strip()
    numbers = find_numbers(stripped)
    if len(numbers) != 1:
        return None
    number = numbers[0]
    plain = _plain_characters(stripped)
    rest = plain[: number.start] + plain[number.end :]
    return number if re.fullmatch(r"[\s$*_`\"'().=≈~\\{}°]*", rest) else None


def last_number(text: str) -> Optional[Number]:
    """The last number of a text. Reads from the end, so that a long text costs no more than a short one."""
    window = _TAIL
    while True:
        start = max(0, len(text) - window)
        # Begin where a word does, so that no number is cut in two.
        while start > 0 and window < _TAIL * 2 and not text[start - 1].isspace() and len(text) - start < 2 * window:
            start -= 1
        numbers = find_numbers(text[start:])
        if numbers:
            last = numbers[-1]
            return last._replace(start=last.start + start, end=last.end + start)
        if start == 0:
            return None
        window *= 8


_MARK = re.compile(
    r"####|(?:^|\n)[ \t>*_#-]*A[*_]*:"
    r"|\banswer\b[*_]*(?:\s+(?:is|was|equals|would be|will be|comes to)\b|\s*[:=])[*_:]*",
    re.IGNORECASE,
)
_REASON = re.compile(r"\b(?:because|since|as|where|if|when|with|so|given)\b|[(;]|[.,:]\s", re.IGNORECASE)


def _after_mark(rest: str) -> Optional[Number]:
    """The number that answers, in the text after a mark: on the first line that is not blank.

    Of a calculation "5 * 4 = 20" it is the result.
    """
    line = next((part for part in rest.split("\n")[:4] if part.strip(" \t*_:$")), "")
    numbers = find_numbers(line)
    if not numbers:
        return None
    result = line.rfind("=")
    if result > numbers[0].end and not _REASON.search(line[:result]):
        later = [n for n in numbers if n.start > result]
        if later:
            return later[0]
    return numbers[0]


def number_answer(text: str) -> Optional[Found]:
    r"""The number that a reply gives as its answer.

    Rules, in order: the last explicit mark ("####", "A:", "Answer:", "answer is", `\boxed{}`) that a number follows;
    a first line that is nothing but a number; the last number of the text. `value` is a Number.
    """
    if not text or not text.strip():
        return None
    marked: Optional[Found] = None
    marks = list(_MARK.finditer(text))
    for mark in reversed(marks[-50:]):
        number = _after_mark(text[mark.end() : mark.end() + 4000])
        if number is not None:
            marked = Found(number, number.text, "answer mark")
            break
    boxes = [box for box in all_boxed(text)[-20:] if find_numbers(box[:_TAIL])]
    if boxes and (marked is None or text.rfind("boxed") > mark.start()):
        box = boxes[-1][:_TAIL]
        number = parse_number(box) or find_numbers(box)[-1]
        return Found(number, number.text, "boxed")
    if marked is not None:
        return marked
    first = text.strip().split("\n", 1)[0]
    number = parse_number(first) if len(first) <= 200 else None
    if number is not None:
        return Found(number, number.text, "first line")
    number = last_number(text)
    return None if number is None else Found(number, number.text, "last number")


def same_number(
    left: Union[Number, int, float, Fraction, str, None],
    right: Union[Number, int, float, Fraction, str, None],
    *,
    rel_tol: float = 0.0,
    abs_tol: float = 0.0,
    percent_is_fraction: bool = False,
) -> bool:
    """Whether two numbers are equal, exactly unless tolerances are given (relative to the second, the gold one).

    "35%" equals 35 and "35%"; it equals 0.35 only with `percent_is_fraction`. "2 million" equals 2000000 and, where
    the question was in millions, 2.
    """
    first, second = _as_number(left), _as_number(right)
    if first is None or second is None:
        return False
    pairs = {(first.value, second.value), (first.scaled, second.scaled)}
    if first.unit in _SCALES and not second.unit:
        pairs.add((first.scaled, second.value))
    if percent_is_fraction and (first.unit == "%") != (second.unit == "%"):
        pairs.add((first.value / 100, second.value) if first.unit == "%" else (first.value, second.value / 100))
    for a, b in pairs:
        if a == b:
            return True
        gap = abs(a - b)
        if gap <= Fraction(abs_tol) or gap <= Fraction(rel_tol) * abs(b):
            return True
    return False


def _as_number(value: Any) -> Optional[Number]:
    if isinstance(value, Number):
        return value
    parsed = parse_number(value)
    if parsed is None and isinstance(value, str):
        return last_number(value)
    return parsed

"""Shapes told by the label's values: inline options, closed label sets, numbers, lists, short text.

They are tried in this order, each over the whole column. Where two fit equally, a person is asked.
"""

from __future__ import annotations

import re
from typing import Any

from runs.driver.rules.columns import Table, is_multi_turn, label_column, plain, question_columns, with_label
from runs.driver.rules.derivation import CannotTell, Hints, Match, Reference, Row
from runs.driver.rules.references import list_reference, text_reference

_OPTION = re.compile(r"^\s*[(\[]?([A-Z])[)\].:]\s+\S", re.MULTILINE)
_LETTER = re.compile(r"^\(?([A-Z])[).]?$")
_NUMBER = re.compile(
    r"^[-+\u2212]?\s?[$€£¥]?\s?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?(?:[eE][-+]?\d{1,3})?(?:\s?/\s?\d+)?\s?%?$"
)
_MARKED = re.compile(r"####\s*(.+?)\s*$|\\boxed\{([^{}]*)\}[.$\s]*$")
_YES_NO = {"yes", "no", "true", "false"}
_SET_NAMES = {"answer_set", "expected_items"}
_LIST_NAMES = {"answer_list"}
_ANY_NAMES = {"aliases", "accepted_answers", "accepted"}


def match(table: Table, hints: Hints) -> Match | CannotTell:
    """The shape of a table of questions and labels. Never None: what no shape fits is asked about."""
    turns = is_multi_turn(table)
    if turns is not None:
        return CannotTell(
            f"{table.name} holds conversations of several turns ({turns!r}) without one right answer each: such sets "
            "are scored by a judge.",
            "Choose a judge and its rubric, or give a file with one question and one right answer a row.",
        )
    label = label_column(table, hints)
    if isinstance(label, CannotTell):
        return label
    question = question_columns(table, {label}, hints)
    if isinstance(question, CannotTell):
        return question
    rows, notes = with_label(table, label)
    labels = [row[label] for row in rows]
    if any(isinstance(value, list) for value in labels):
        return _lists(table, rows, question, label, hints, notes)
    if any(isinstance(value, dict) for value in labels):
        return CannotTell(
            f"{table.name}: {label!r} holds objects, and it is not said how an answer compares with one.",
            "Name the column with the right answer (“label column: NAME”), or describe the comparison.",
        )
    for shape in (_inline, _closed, _numbers):
        found = shape(table, rows, question, label, hints, notes)
        if found is not None:
            return found
    return _texts(table, rows, question, label, notes, hints)


def _base(question: list[str], label: str, **more: Any) -> dict[str, Any]:
    return {"question": question, "label": label, **more}


def _inline(
    table: Table, rows: list[Row], question: list[str], label: str, hints: Hints, notes: list[str]
) -> Match | None:
    choices = []
    for row in rows:
        letters = _OPTION.findall(str(row[question[-1]]))
        target = _LETTER.match(str(row[label]).strip())
        if not target or len(letters) < 2 or len(set(letters)) != len(letters) or target.group(1) not in letters:
            return None
        choices.append([f"({letter})" for letter in letters])
    return Match(
        shape="multiple choice",
        template="inline_choices",
        values=_base(question, label),
        rows=rows,
        references=[text_reference(row[label]) for row in rows],
        choices=choices,
        field_map=_base(question, label),
        why=f"every question lists lettered options and {label!r} names one of them",
        notes=notes,
    )


def _closed(
    table: Table, rows: list[Row], question: list[str], label: str, hints: Hints, notes: list[str]
) -> Match | CannotTell | None:
    """Yes and no, true and false, or a handful of classes."""
    values = [row[label] for row in rows]
    distinct = sorted({str(v) for v in values})
    codes = all(re.fullmatch(r"\d{1,2}", d) for d in distinct) and not any(isinstance(v, float) for v in values)
    is_class = codes and len(distinct) <= 12 and len(rows) >= 8 * len(distinct) and distinct == [
        str(i) for i in range(len(distinct))
    ]  # fmt: skip
    if is_class and not hints.numeric and (plain(label) in ("label", "class", "gold_label") or len(distinct) == 2):
        if len(hints.labels) != len(distinct):
            return CannotTell(
                f"{table.name}: {label!r} holds only the numbers {', '.join(distinct)}. They may be numbers to be "
                "answered, or stand for classes whose names are not in the file.",
                "Say “numeric”, or name the classes in their order (“labels: negative, positive”).",
            )
        words = dict(zip(distinct, hints.labels, strict=True))
        return _labels(rows, question, label, list(hints.labels), words, notes, "numbers that stand for classes")
    if all(isinstance(v, bool) for v in values):
        words = {"True": "Yes", "False": "No"}
        return _labels(rows, question, label, ["Yes", "No"], words, notes, "true or false in every row")
    forms = {d.strip().casefold() for d in distinct}
    if forms <= _YES_NO:
        pair = ("Yes", "No") if forms <= {"yes", "no"} else ("True", "False") if forms <= {"true", "false"} else None
        if pair is None:
            return None
        first = {d.strip().casefold(): d.strip() for d in reversed(distinct)}
        shown = sorted(first.values(), key=lambda d: d.casefold() not in ("yes", "true"))
        if len(shown) < 2:
            shown = list(pair)
        why = f"every label is {pair[0].lower()} or {pair[1].lower()}"
        return _labels(rows, question, label, shown, {}, notes, why, yes_no=True)
    if (
        all(isinstance(v, str) for v in values)
        and 2 <= len(forms) <= 12
        and len(rows) >= 8 * len(forms)
        and all(len(d) <= 40 and any(c.isalpha() for c in d) for d in distinct)
        and not all(_NUMBER.match(d.strip()) for d in distinct)
    ):
        return _labels(rows, question, label, distinct, {}, notes, f"only {len(distinct)} different labels")
    return None


def _labels(
    rows: list[Row],
    question: list[str],
    label: str,
    labels: list[str],
    words: dict[str, str],
    notes: list[str],
    why: str,
    *,
    yes_no: bool = False,
) -> Match:
    constant = len({str(row[label]) for row in rows}) == 1
    if constant:
        notes = [*notes, f"every label is {rows[0][label]!r}: always answering that scores 1"]
    return Match(
        shape="yes/no" if yes_no or set(words) == {"True", "False"} else "closed labels",
        template="labels",
        values=_base(question, label, labels=labels, words=words),
        rows=rows,
        references=[Reference(text=words.get(str(row[label]), str(row[label]))) for row in rows],
        choices=[list(labels) for _ in rows],
        field_map=_base(question, label),
        why=f"{label!r}: {why}",
        notes=notes,
    )


def numeric(value: Any) -> bool:
    """Whether a label is a number, or ends in one that is marked as the answer (`####`, a box)."""
    if isinstance(value, bool):
        return False
    if isinstance(value, (int, float)):
        return True
    text = str(value).strip()
    marked = _MARKED.search(text)
    if marked:
        text = (marked.group(1) or marked.group(2) or "").strip().strip("$\\")
    return bool(_NUMBER.match(text.rstrip(".")))


def _numbers(
    table: Table, rows: list[Row], question: list[str], label: str, hints: Hints, notes: list[str]
) -> Match | CannotTell | None:
    fits = [numeric(row[label]) for row in rows]
    if not all(fits):
        if not hints.exact and sum(fits) >= 0.8 * len(rows) and len(rows) > 4:
            at = fits.index(False)
            return CannotTell(
                f"{table.name}: {sum(fits):,} of {len(rows):,} labels in {label!r} are numbers, but not all "
                f"(row {at}: {str(rows[at][label])[:60]!r}).",
                "Say “exact” to compare all as text, or mend those rows.",
            )
        return None
    # Whole numbers and fractions are compared exactly; a label with decimals stands for what it was rounded from.
    decimals = any("." in str(row[label]).split("####")[-1].strip().rstrip(".") for row in rows)
    if decimals:
        notes = [*notes, "labels with decimals: a difference of one part in a million is allowed"]
    return Match(
        shape="numeric answer",
        template="numbers",
        values=_base(question, label, rel_tol=1e-6 if decimals else 0.0),
        rows=rows,
        references=[text_reference(row[label]) for row in rows],
        choices=None,
        field_map=_base(question, label),
        why=f"every value of {label!r} is a number or ends in one marked as the answer",
        notes=notes,
    )


def _lists(
    table: Table, rows: list[Row], question: list[str], label: str, hints: Hints, notes: list[str]
) -> Match | CannotTell:
    values = [row[label] for row in rows]
    if not all(isinstance(v, list) and v and all(isinstance(i, (str, int, float)) for i in v) for v in values):
        return CannotTell(
            f"{table.name}: {label!r} holds lists in some rows and not in others, or lists of other things than text.",
            "Describe how an answer compares with them.",
        )
    name = plain(label)
    single = all(len(v) == 1 for v in values)
    if hints.any_of or name in _ANY_NAMES or single:
        why = "lists of one item" if single else "any one of the listed answers is right"
        return Match(
            shape="exact or normalised text",
            template="texts",
            values=_base(question, label),
            rows=rows,
            references=[text_reference(v[0]) for v in values],
            choices=None,
            field_map=_base(question, label),
            why=f"{label!r}: {why}",
            notes=notes,
        )
    ordered = hints.ordered or name in _LIST_NAMES
    unordered = hints.unordered or name in _SET_NAMES
    if ordered == unordered:
        return CannotTell(
            f"{table.name}: {label!r} holds lists. They can be answers of which any one is right, a set to be given "
            "whole, or a list whose order counts.",
            "Which is it? Say “any of”, “any order” or “order matters”.",
        )
    return Match(
        shape="list" if ordered else "set",
        template="lists",
        values=_base(question, label, order_matters=ordered),
        rows=rows,
        references=[list_reference(v) for v in values],
        choices=None,
        field_map=_base(question, label),
        why=f"{label!r} holds {'lists whose order counts' if ordered else 'sets to be given whole'}",
        notes=notes,
    )


def _texts(
    table: Table, rows: list[Row], question: list[str], label: str, notes: list[str], hints: Hints
) -> Match | CannotTell:
    values = [str(row[label]) for row in rows]
    long = [at for at, v in enumerate(values) if len(v) > 120 or "\n" in v.strip()]
    if len(long) > max(0, len(values) // 50) and not hints.exact:
        return CannotTell(
            f"{table.name}: {len(long):,} of {len(values):,} labels in {label!r} are long texts (row {long[0]}: "
            f"{len(values[long[0]])} characters). A right answer in other words would fail an exact comparison.",
            "Say “exact” if the very words are wanted; else this set needs a judge.",
        )
    return Match(
        shape="exact or normalised text",
        template="texts",
        values=_base(question, label),
        rows=rows,
        references=[text_reference(row[label]) for row in rows],
        choices=None,
        field_map=_base(question, label),
        why=f"{label!r} holds short texts",
        notes=notes,
    )

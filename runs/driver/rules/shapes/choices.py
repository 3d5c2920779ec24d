"""Multiple choice with the options in columns. Rows get `options` (in the order shown) and `letter` (the right one)."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from runs.driver.rules.columns import LABELS, Table, is_null, plain, question_columns
from runs.driver.rules.derivation import CannotTell, Hints, Match, Row
from runs.driver.rules.references import letter_reference

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LISTS = ("choices", "options", "endings", "candidates", "alternatives", "answer_choices", "mc1_targets")
_SERIES = re.compile(r"^(?:option|choice|opt?|ending|sol|answer|alternative)?_?([a-h]|[0-9])$")
_WRONG = ("incorrect_answers", "wrong_answers", "distractors", "incorrect_answer")
_RIGHT = ("best_answer", "correct_answer", "right_answer", "answer", "correct", "target")

Options = tuple[list[str], list[str] | None]
"""The texts, and the data's own names for them ("A", "1", …) where it has any."""


def match(table: Table, hints: Hints) -> Match | CannotTell | None:
    """Options as a list, a dict, lettered columns, or a right answer beside wrong ones."""
    wrong = [c for c in table.find(_WRONG) if table.full(c)] or _numbered(
        table, "(?:distractor|incorrect_answer|wrong_answer)"
    )
    right = table.one(*_RIGHT)
    if wrong and right is not None and table.full(right):
        if re.search(r"\bmc-?2\b|log-?prob|probability mass", hints.prompt, re.IGNORECASE):
            return CannotTell(
                f"{table.name}: MC2 weighs every right answer by the model's probabilities, which is not the same as "
                "choosing one option.",
                "Shall one option be chosen (MC1)? Say “MC1” and not the other.",
            )
        return _shuffled(table, right, wrong, hints)
    listed = next((c for c in table.find(LISTS) if table.full(c)), None)
    if listed is not None and all(_options(v) for v in table.values(listed)):
        if all(_marked(v) is not None for v in table.values(listed)):
            return _marked_right(table, listed, hints)
        return _labelled(table, [_must(_options(v)) for v in table.values(listed)], [listed], hints)
    series = _series(table)
    if series:
        options: list[Options] = []
        for row in table.rows:
            used = [c for c in series if not is_null(row.get(c))]
            options.append(([str(row[c]) for c in used], None))
        if all(len(texts) >= 2 for texts, _ in options):
            return _labelled(table, options, series, hints)
    return None


def _must(value: Options | None) -> Options:
    assert value is not None
    return value


def _options(value: Any) -> Options | None:
    if isinstance(value, dict):
        texts, names = value.get("text", value.get("choices")), value.get("label")
        if isinstance(texts, list) and len(texts) >= 2:
            own = [str(n) for n in names] if isinstance(names, list) and len(names) == len(texts) else None
            return [str(t) for t in texts], own
        if len(value) >= 2 and all(isinstance(v, (str, int, float)) for v in value.values()):
            return [str(v) for v in value.values()], [str(k) for k in value]
        return None
    if not isinstance(value, list) or len(value) < 2:
        return None
    if all(isinstance(v, dict) and "text" in v for v in value):
        names = [v.get("label", v.get("key")) for v in value]
        return [str(v["text"]) for v in value], None if None in names else [str(n) for n in names]
    return ([str(v) for v in value], None) if all(isinstance(v, (str, int, float)) for v in value) else None


def _marked(value: Any) -> int | None:
    """The place of the one right option in {"choices": [...], "labels": [0, 1, …]}."""
    labels = value.get("labels") if isinstance(value, dict) else None
    if isinstance(labels, list) and sorted(map(str, labels)) == ["0"] * (len(labels) - 1) + ["1"]:
        return [str(x) for x in labels].index("1")
    return None


def _series(table: Table) -> list[str]:
    """Columns A, B, C …, option_a …, choice1 …, in order, when there are at least two that belong together."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for column in table.columns:
        name = plain(column)
        found = _SERIES.match(name)
        if found:
            groups.setdefault(name[: found.start(1)], []).append((found.group(1), column))
    for members in groups.values():
        members.sort()
        keys = "".join(key for key, _ in members)
        if len(members) >= 2 and any(keys == run[: len(keys)] for run in ("abcdefgh", "012345678", "123456789")):
            return [column for _, column in members]
    return []


def _numbered(table: Table, stem: str) -> list[str]:
    return [c for c in table.columns if re.fullmatch(stem + r"_?\d", plain(c)) and table.full(c)]


def _order(question: str, texts: list[str]) -> list[int]:
    """A fixed order that does not depend on which option is right, nor on any library's idea of a shuffle."""
    return sorted(range(len(texts)), key=lambda at: hashlib.sha256(f"{question}\0{texts[at]}".encode()).hexdigest())


def _split(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(v).strip() for v in value if str(v).strip()]
    return [part.strip() for part in str(value).split(";") if part.strip()]


def _shuffled(table: Table, right: str, wrong: list[str], hints: Hints) -> Match | CannotTell:
    taken = {right, *wrong, *table.find(("correct_answers",))}
    question = question_columns(table, taken, hints)
    if isinstance(question, CannotTell):
        return question
    rows, letters, kept_out = [], [], 0
    for at, row in enumerate(table.rows):
        answer = str(row[right]).strip()
        others: list[str] = []
        for column in wrong:
            for text in _split(row[column]) if len(wrong) == 1 else [str(row[column]).strip()]:
                if text.casefold() == answer.casefold():
                    return CannotTell(
                        f"{table.name}, row {at}: the right answer is also among the wrong ones: {answer[:80]!r}.",
                        "Which of the two is meant? Mend the row and load the file again.",
                    )
                if text in others:
                    kept_out += 1
                else:
                    others.append(text)
        if not others or len(others) > 25:
            return CannotTell(
                f"{table.name}, row {at} has {len(others)} wrong answers; 1 to 25 can be shown as letters.",
                "Mend the row and load the file again.",
            )
        texts = [answer, *others]
        order = _order(" ".join(str(row.get(c)) for c in question), texts)
        letter = LETTERS[order.index(0)]
        rows.append({**row, "options": [texts[i] for i in order], "letter": letter})
        letters.append(letter)
    notes = ["the right answer comes first in the data: the order is shuffled, the same way every time"]
    if kept_out:
        notes.append(f"{kept_out} wrong answers that stood twice in a row are shown once")
    why = f"one right answer ({right!r}) beside wrong ones ({', '.join(repr(w) for w in wrong)})"
    return _match(rows, letters, question, {"label": right, "wrong": wrong}, why, notes)


def _marked_right(table: Table, listed: str, hints: Hints) -> Match | CannotTell:
    question = question_columns(table, {listed}, hints)
    if isinstance(question, CannotTell):
        return question
    rows, letters = [], []
    for row in table.rows:
        texts, right = _must(_options(row[listed]))[0], _marked(row[listed])
        assert right is not None
        order = _order(" ".join(str(row.get(c)) for c in question), texts)
        letters.append(LETTERS[order.index(right)])
        rows.append({**row, "options": [texts[i] for i in order], "letter": letters[-1]})
    notes = ["the options' order is shuffled, the same way every time: in such sets the right one often comes first"]
    return _match(
        rows, letters, question, {"label": listed, "options": [listed]}, f"{listed!r} marks one option", notes
    )


def _labelled(table: Table, options: list[Options], columns: list[str], hints: Hints) -> Match | CannotTell | None:
    too_many = next((at for at, (texts, _) in enumerate(options) if len(texts) > len(LETTERS)), None)
    if too_many is not None:
        return CannotTell(f"{table.name}, row {too_many} has more than 26 options.", "Only 26 can be shown as letters.")
    label = hints.label or next((c for c in table.find(LABELS) if c not in columns and table.columns[c]), None)
    if label is None:
        return CannotTell(
            f"{table.name} has options ({', '.join(columns)[:80]}) but no column says which one is right.",
            "Which column holds the right answer (say “label column: NAME”)?",
        )
    missing = len(table.rows) - table.columns[label]
    if missing:
        return CannotTell(
            f"{table.name}: {missing:,} of {len(table.rows):,} rows have no {label!r}.",
            "Give a split whose answers are published.",
        )
    read = _read_labels(table, label, options, hints)
    if isinstance(read, CannotTell):
        return read
    places, how, notes = read
    question = question_columns(table, {label, *columns}, hints)
    if isinstance(question, CannotTell):
        return question
    letters = [LETTERS[place] for place in places]
    rows = [
        {**row, "options": texts, "letter": letter}
        for row, (texts, _), letter in zip(table.rows, options, letters, strict=True)
    ]
    why = f"options in {', '.join(repr(c) for c in columns)}; {label!r} names the right one by {how}"
    return _match(rows, letters, question, {"label": label, "options": columns}, why, notes)


Read = tuple[list[int], str, list[str]]


def _read_labels(table: Table, label: str, options: list[Options], hints: Hints) -> Read | CannotTell:
    """The place of each row's right option. Every way of reading the whole column is tried; two that differ: ask."""
    values = table.values(label)
    named = _by_name(values, options)
    if named is not None:
        return named, "the data's own name for it", []
    ways: list[tuple[str, list[int] | None, list[str]]] = [
        ("its letter", _by_letter(values, options), []),
        ("its text", _by_text(values, options), []),
        *_by_index(values, options, hints),
    ]
    fitting = [(how, places, notes) for how, places, notes in ways if places is not None]
    if not fitting:
        bad = next((at for at, v in enumerate(values) if not _could_be(v, options[at])), 0)
        return CannotTell(
            f"{table.name}: {label!r} does not name one of the options in every row (row {bad}: "
            f"{str(values[bad])[:60]!r} of {len(options[bad][0])} options).",
            "Mend that row, or say which column holds the right answer (“label column: NAME”).",
        )
    how, places, notes = fitting[0]
    for other, others, _ in fitting[1:]:
        if others != places:
            return CannotTell(
                f"{table.name}: {label!r} can be read as {how} and as {other}, and the two differ.",
                "Which is meant? For numbers say “the index starts at 0” or “… at 1”.",
            )
    return places, how, notes


def _by_name(values: list[Any], options: list[Options]) -> list[int] | None:
    out = []
    for value, (_, names) in zip(values, options, strict=True):
        if names is None or str(value).strip() not in names:
            return None
        out.append(names.index(str(value).strip()))
    return out


def _by_letter(values: list[Any], options: list[Options]) -> list[int] | None:
    out = []
    for value, (texts, _) in zip(values, options, strict=True):
        letter = value.strip(" ().[]:").upper() if isinstance(value, str) else ""
        if len(letter) != 1 or letter not in LETTERS[: len(texts)]:
            return None
        out.append(LETTERS.index(letter))
    return out


def _by_text(values: list[Any], options: list[Options]) -> list[int] | None:
    out = []
    for value, (texts, _) in zip(values, options, strict=True):
        wanted = str(value).strip()
        if [t.strip() for t in texts].count(wanted) != 1:
            return None
        out.append([t.strip() for t in texts].index(wanted))
    return out


def _by_index(values: list[Any], options: list[Options], hints: Hints) -> list[tuple[str, list[int] | None, list[str]]]:
    numbers: list[int] = []
    for value in values:
        if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value).strip()):
            return []
        numbers.append(int(str(value).strip()))
    pairs = list(zip(numbers, (len(texts) for texts, _ in options), strict=True))
    from_zero = all(n < count for n, count in pairs)
    from_one = all(1 <= n <= count for n, count in pairs)
    if hints.index_base == 0:
        from_one = False
    elif hints.index_base == 1:
        from_zero = False
    out: list[tuple[str, list[int] | None, list[str]]] = []
    if from_zero:
        out.append(("its index from 0", numbers, []))
    if from_one:
        note = "the right option is given by numbers from 1"
        out.append(("its index from 1", [n - 1 for n in numbers], [note]))
    return out


def _could_be(value: Any, options: Options) -> bool:
    texts, names = options
    text = str(value).strip()
    if text in texts or (names is not None and text in names):
        return True
    if re.fullmatch(r"\d+", text):
        return int(text) <= len(texts)
    letter = text.strip("().[]: ").upper()
    return len(letter) == 1 and letter in LETTERS[: len(texts)]


def _match(
    rows: list[Row], letters: list[str], question: list[str], field_map: dict[str, Any], why: str, notes: list[str]
) -> Match:
    return Match(
        shape="multiple choice",
        template="choices",
        values={"question": question, "options": "options", "letter": "letter"},
        rows=rows,
        references=[letter_reference(letter) for letter in letters],
        choices=[list(LETTERS[: len(row["options"])]) for row in rows],
        field_map={"question": question, **field_map},
        why=why,
        notes=notes,
    )

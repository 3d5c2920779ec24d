"""Which column holds the question and which the right answer: by name, over the whole column, never by a first row."""

from __future__ import annotations

import re
from typing import Any

from runs.driver.rules.derivation import CannotTell, Hints, Row

QUESTIONS = (
    "question", "problem", "input", "prompt", "query", "question_text", "problem_statement", "question_stem",
    "sentence", "ctx", "text", "instruction", "task", "stem", "goal", "messages", "statement", "claim", "puzzle",
)  # fmt: skip
CONTEXTS = ("context", "passage", "story", "article", "document", "paragraph", "premise", "fact", "support", "body")
LABELS = (
    "answer", "target", "label", "gold", "expected", "answerkey", "answer_key", "correct_answer", "gold_answer",
    "expected_answer", "expected_output", "ground_truth", "final_answer", "correct", "best_answer", "reference_answer",
    "correct_option", "gold_label", "right_answer", "truth", "answers", "targets", "golds", "aliases",
    "accepted_answers", "answer_list", "answer_set", "expected_items", "accepted",
)  # fmt: skip
WEAK_LABELS = ("solution", "output", "reference", "response", "completion", "references")
_ID = re.compile(
    r"^(?:id|idx|index|uid|uuid|row|.*_id|.*_idx|source|url|link|split|category|type|level|subject|topic)$"
)

# Recorded answers of models are no questions.
_ANSWERED = re.compile(
    r"^(?:.*predictions?|responses?|completions?|outputs?|generat.*|model_.*|solutions?|explanations?)$"
)


def plain(name: str) -> str:
    """A column's name for comparing: "Best Answer" is "best_answer", "answerKey" stays "answerkey"."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


class Table:
    """The rows of one file with quick questions about its columns."""

    def __init__(self, name: str, rows: list[Row]) -> None:
        self.name = name
        self.rows = rows
        self.columns: dict[str, int] = {}
        for row in rows:
            for key, value in row.items():
                self.columns.setdefault(key, 0)
                if not is_null(value):
                    self.columns[key] += 1

    def values(self, column: str) -> list[Any]:
        """The column, None where a row lacks it."""
        return [row.get(column) for row in self.rows]

    def known(self, column: str) -> list[Any]:
        """The column's values that are there."""
        return [value for value in self.values(column) if not is_null(value)]

    def find(self, names: tuple[str, ...]) -> list[str]:
        """Columns whose plain name is one of these, in the order of these."""
        by_plain: dict[str, str] = {}
        for column in self.columns:
            by_plain.setdefault(plain(column), column)
        return [by_plain[name] for name in names if name in by_plain]

    def one(self, *names: str) -> str | None:
        """The first column with one of these plain names."""
        found = self.find(names)
        return found[0] if found else None

    def full(self, column: str) -> bool:
        """Whether every row has a value there."""
        return self.columns.get(column, 0) == len(self.rows) > 0

    def all_are(self, column: str, *types: type) -> bool:
        """Whether every value that is there is of one of these types (a bool is no int)."""
        values = self.known(column)
        return bool(values) and all(isinstance(v, types) and (bool in types or not isinstance(v, bool)) for v in values)


def is_null(value: Any) -> bool:
    """Nothing there: null, or text without a character in it."""
    return value is None or (isinstance(value, str) and not value.strip())


def label_column(table: Table, hints: Hints) -> str | CannotTell:
    """The column of the right answers. Two that fit equally, none, or one without values: ask."""
    if hints.label is not None:
        if hints.label in table.columns:
            return _with_values(table, hints.label)
        return CannotTell(
            f"{table.name} has no column {hints.label!r}; it has {_names(table)}.",
            "Which column holds the right answer?",
        )
    found = table.find(LABELS)
    if not found:
        found = table.find(WEAK_LABELS)
    used = [column for column in found if table.columns[column]]
    if not found:
        return CannotTell(
            f"{table.name} has no column of right answers: its columns are {_names(table)}.",
            "Which column holds the right answer (say “label column: NAME”)? Without one there is nothing to score "
            "against but a judge.",
        )
    if not used:
        return _with_values(table, found[0])
    while len(used) > 1 and _same(table, used[0], used[1]):
        del used[1]
    if len(used) > 1:
        return CannotTell(
            f"{table.name} has {len(used)} columns that could hold the right answer: {', '.join(used)}.",
            "Which one is it? Say “label column: NAME”.",
        )
    return _with_values(table, used[0])


def _with_values(table: Table, column: str) -> str | CannotTell:
    known, total = table.columns[column], len(table.rows)
    if not known:
        return CannotTell(
            f"Column {column!r} of {table.name} is null in all {total:,} rows: there are no right answers "
            "(hidden test sets look like this).",
            "Give a split whose answers are published.",
        )
    if total - known > max(1, total // 20):
        return CannotTell(
            f"Column {column!r} of {table.name} is null in {total - known:,} of {total:,} rows.",
            "Give a file in which every row has an answer, or name the column that holds it (“label column: NAME”).",
        )
    return column


def _same(table: Table, left: str, right: str) -> bool:
    return all(str(a) == str(b) for a, b in zip(table.values(left), table.values(right), strict=True))


def _names(table: Table) -> str:
    return ", ".join(list(table.columns)[:20])


def question_columns(table: Table, taken: set[str], hints: Hints) -> list[str] | CannotTell:
    """The columns that make the question, a passage before it. `taken`: columns that are known to be something else."""
    if hints.question is not None and hints.question in table.columns:
        return [hints.question]
    contexts = [c for c in table.find(CONTEXTS) if c not in taken and table.all_are(c, str)]
    main = [
        c for c in table.find(QUESTIONS)
        if c not in taken and table.full(c) and table.all_are(c, str, list) and _varies(table, [*contexts, c])
    ]  # fmt: skip
    if main:
        both = [c for c in main if plain(c) in ("instruction", "input")]
        if len(both) == 2:
            return ["instruction" if "instruction" in both else both[0], *[c for c in both if plain(c) == "input"]]
        return [*contexts, main[0]]
    texts = [
        c for c in table.columns
        if c not in taken and not _ID.match(plain(c)) and table.full(c) and table.all_are(c, str)
    ]  # fmt: skip
    texts = [c for c in texts if not _ANSWERED.match(plain(c)) and _varies(table, [c])]
    if len(texts) == 1:
        return texts
    return CannotTell(
        f"{table.name}: it is not clear which column is the question ({_names(table)}).",
        "Which one is it? Say “question column: NAME”.",
    )


def _varies(table: Table, columns: list[str]) -> bool:
    """Whether the rows ask different things. A column of a few values (a task's name) is no question."""
    asked = {str([row.get(c) for c in columns]) for row in table.rows}
    return 2 * len(asked) > len(table.rows)


def with_label(table: Table, label: str) -> tuple[list[Row], list[str]]:
    """Rows that have a label, and a note when some lack it."""
    rows = [row for row in table.rows if not is_null(row.get(label))]
    left = len(table.rows) - len(rows)
    return rows, [f"{left} of {len(table.rows):,} rows have no {label!r} and are left out"] if left else []


def is_multi_turn(table: Table) -> str | None:
    """The column of a conversation that has to be played turn by turn, if there is one."""
    turns = table.one("turns", "dialogue", "conversation", "conversations")
    return turns if turns is not None and table.all_are(turns, list) else None

"""Tool calls: functions described in the row, and the calls that are right."""

from __future__ import annotations

from typing import Any

from runs.driver.rules.columns import Table
from runs.driver.rules.derivation import CannotTell, Hints, Match, Row
from runs.driver.rules.references import calls_reference

FUNCTIONS = ("function", "functions", "tools")
EXPECTED = (
    "ground_truth", "expected_calls", "expected_call", "possible_answer", "calls", "tool_calls", "target", "answer",
    "answers",
)  # fmt: skip


def match(table: Table, hints: Hints) -> Match | CannotTell | None:
    """Function descriptions in every row make the shape; without expected calls it cannot be told what is right."""
    functions = table.one(*FUNCTIONS)
    if functions is None or not table.full(functions) or not all(_described(v) for v in table.values(functions)):
        return None
    expected = table.one(*EXPECTED)
    if expected is None or not table.columns[expected]:
        return CannotTell(
            f"{table.name} describes functions but not which calls are right. In sets of this kind the right answer "
            "can be to call nothing, so that an empty answer may be right and nothing proves a scorer.",
            "Give the file with the expected calls (joined by id), or say in your own words what a right answer does.",
        )
    question = table.one("question", "messages", "prompt", "query", "input", "instruction")
    if question is None or not table.full(question):
        return CannotTell(f"{table.name}: there is no question beside the functions.", "Which column holds it?")
    if any(len(q) > 1 and isinstance(q[0], list) for q in table.values(question) if isinstance(q, list)):
        return CannotTell(
            f"{table.name} holds conversations of several turns; each depends on what the calls before it returned.",
            "Name a single-turn subset.",
        )
    rows: list[Row] = []
    references = []
    for at, row in enumerate(table.rows):
        described = row[functions] if isinstance(row[functions], list) else [row[functions]]
        described = [f.get("function", f) if isinstance(f.get("function"), dict) else f for f in described]
        accepted = _accepted(row.get(expected))
        if accepted is None:
            return CannotTell(
                f"{table.name}: the expected calls of row {at} are not in a known form.",
                "Write them as [{function: {argument: [accepted values]}}] or [{“name”, “arguments”}].",
            )
        rows.append({**row, "functions": described, "accepted": accepted})
        references.append(calls_reference(accepted, described))
    return Match(
        shape="tool call JSON",
        template="tool_calls",
        values={"question": question, "functions": "functions", "accepted": "accepted"},
        rows=rows,
        references=references,
        choices=None,
        field_map={"question": [question], "functions": functions, "label": expected},
        why=f"{functions!r} describes functions and {expected!r} the calls that are right",
    )


def _described(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        isinstance(i, dict) and ("name" in i or isinstance(i.get("function"), dict)) for i in items
    )


def _accepted(value: Any) -> list[dict[str, dict[str, list[Any]]]] | None:
    """Expected calls in one form: [{function: {argument: [accepted values]}}]."""
    items = value if isinstance(value, list) else [value]
    out = []
    for item in items:
        if not isinstance(item, dict) or not item:
            return None
        if isinstance(item.get("name"), str) and isinstance(item.get("arguments", {}), dict):
            out.append({item["name"]: {k: [v] for k, v in (item.get("arguments") or {}).items()}})
            continue
        if len(item) != 1:
            return None
        (name, arguments), *_ = item.items()
        if not isinstance(arguments, dict) or not all(isinstance(v, list) for v in arguments.values()):
            return None
        out.append({name: arguments})
    return out or None

"""Code with tests: HumanEval's layout (prompt, test, entry_point) and MBPP's (text, test_list)."""

from __future__ import annotations

import ast
from typing import Any

from runs.driver.rules.columns import Table, question_columns
from runs.driver.rules.derivation import CannotTell, Hints, Match, Reference, Row
from runs.driver.rules.references import code_reference

TESTS = ("test", "tests", "test_list", "test_code", "unit_tests", "test_cases", "assertions")
SOLUTIONS = ("canonical_solution", "code", "solution", "reference_solution", "reference_code", "answer", "target")
ENTRY_POINTS = ("entry_point", "function_name", "fn_name", "entrypoint")
SETUPS = ("test_setup_code", "test_imports", "setup", "setup_code")


def match(table: Table, hints: Hints) -> Match | CannotTell | None:
    """Tests that are Python make the shape; a solution to prove the scorer with is asked for."""
    tests = table.one(*TESTS)
    if tests is None or not table.full(tests) or not _are_tests(table.values(tests)):
        return None
    broken = next((at for at, value in enumerate(table.values(tests)) if not _is_python(_joined(value))), None)
    if broken is not None:
        return CannotTell(
            f"{table.name}: the tests in column {tests!r} are not Python (row {broken}).",
            "Which language are they in, and how is a program run against them? Only Python is run by the rules.",
        )
    entry = table.one(*ENTRY_POINTS)
    if entry is not None and not table.full(entry):
        entry = None
    solution = table.one(*[name for name in SOLUTIONS if name != tests])
    if solution is None or not table.full(solution) or not table.all_are(solution, str):
        if not hints.unproven:
            return CannotTell(
                f"{table.name} has tests but no solutions, so the scorer cannot be proved by a right answer.",
                "Give the solutions too, or say “go on without solutions” to accept a scorer that is proved only by "
                "wrong answers failing.",
            )
        solution = None
    prompt = table.one("prompt")
    taken = {c for c in (tests, entry, solution) if c}
    if prompt and entry and all(f"def {row[entry]}" in str(row.get(prompt)) for row in table.rows):
        return _functions(table, prompt, tests, entry, solution)
    question = question_columns(table, taken, hints)
    if isinstance(question, CannotTell):
        return question
    setup = next((c for c in table.find(SETUPS) if c not in question), None)
    return Match(
        shape="code with tests",
        template="programs",
        values={"question": question, "tests": tests, "entry_point": entry, "setup": setup},
        rows=table.rows,
        references=_references(table.rows, solution, None),
        choices=None,
        field_map={"question": question, "tests": tests, "entry_point": entry, "solution": solution, "setup": setup},
        why=f"column {tests!r} holds Python tests for a program that {', '.join(question)} describes",
        notes=[] if solution else ["no solutions: no right answer could be tried"],
    )


def _functions(table: Table, prompt: str, tests: str, entry: str, solution: str | None) -> Match:
    return Match(
        shape="code with tests",
        template="functions",
        values={"prompt": prompt, "tests": tests, "entry_point": entry},
        rows=table.rows,
        references=_references(table.rows, solution, prompt),
        choices=None,
        field_map={"question": [prompt], "tests": tests, "entry_point": entry, "solution": solution},
        why=f"{prompt!r} holds the head of the function that {entry!r} names, and {tests!r} its tests",
        notes=[] if solution else ["no solutions: no right answer could be tried"],
    )


def _references(rows: list[Row], solution: str | None, prompt: str | None) -> list[Reference]:
    if solution is None:
        return [Reference() for _ in rows]
    out = []
    for row in rows:
        text = str(row[solution])
        # A body continues the prompt; a whole program stands alone.
        before = str(row[prompt]) if prompt and text[:1] in (" ", "\t", "\n") else ""
        out.append(code_reference(before, text))
    return out


def _joined(value: Any) -> str:
    return "\n".join(value) if isinstance(value, list) else str(value)


def _are_tests(values: list[Any]) -> bool:
    texts = [_joined(v) if isinstance(v, list) and all(isinstance(i, str) for i in v) else v for v in values]
    return all(isinstance(t, str) and ("assert" in t or "def check(" in t or "unittest" in t) for t in texts)


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True

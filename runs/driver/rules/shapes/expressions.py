"""Number puzzles such as the game of 24: no label in the file, but the right answers can be computed."""

from __future__ import annotations

import re
from fractions import Fraction

from runs.driver.rules.columns import Table
from runs.driver.rules.derivation import CannotTell, Hints, Match, Reference


def match(table: Table, hints: Hints) -> Match | CannotTell | None:
    """A column of puzzles, each four small numbers, and a prompt or file name that says what to make of them."""
    puzzle = table.one("puzzles", "puzzle", "numbers")
    if puzzle is None or not table.full(puzzle):
        return None
    if not all(re.fullmatch(r"\d{1,2}(?: \d{1,2}){2,4}", str(v).strip()) for v in table.values(puzzle)):
        return None
    named = re.search(
        r"\b(?:game of |make |get |reach |target |equals? )?(24|100|10)\b", f"{table.name} {hints.prompt}"
    )
    if named is None:
        return CannotTell(
            f"{table.name} holds sets of numbers without what to make of them.", "Say for example “make 24”."
        )
    target = int(named.group(1))
    references = []
    for at, row in enumerate(table.rows):
        found = solve([int(n) for n in str(row[puzzle]).split()], target)
        if found is None:
            return CannotTell(
                f"{table.name}, row {at}: {row[puzzle]} cannot make {target}.", "Mend the row, or say another target."
            )
        references.append(Reference(text=f"Answer: {found} = {target}"))
    return Match(
        shape="expression",
        template="expressions",
        values={"puzzle": puzzle, "target": target},
        rows=table.rows,
        references=references,
        choices=None,
        field_map={"question": [puzzle], "label": None},
        why=f"{puzzle!r} holds numbers to make {target} of; a right expression was found for each row",
    )


def solve(numbers: list[int], target: int) -> str | None:
    """An expression of + - * / that uses each number once and equals the target, or None when there is none."""
    return _solve([(Fraction(n), str(n)) for n in numbers], Fraction(target))


def _solve(items: list[tuple[Fraction, str]], target: Fraction) -> str | None:
    if len(items) == 1:
        return items[0][1] if items[0][0] == target else None
    for i, (a, left) in enumerate(items):
        for j, (b, right) in enumerate(items):
            if i == j:
                continue
            rest = [item for at, item in enumerate(items) if at not in (i, j)]
            made = [(a - b, "-")]
            if i < j:
                made += [(a + b, "+"), (a * b, "*")]
            if b:
                made.append((a / b, "/"))
            for value, sign in made:
                found = _solve([*rest, (value, f"({left} {sign} {right})")], target)
                if found:
                    return found
    return None

"""From files and a prompt to subsets with scorers, or to a question for a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from runs.driver.rules.columns import Table, plain
from runs.driver.rules.derivation import CannotTell, Derivation, Hints, Match, Row, SourceFile, SubsetDerivation
from runs.driver.rules.hints import read_hints
from runs.driver.rules.render import render
from runs.driver.rules.shapes import choices, code, expressions, tool_calls, values

SHAPES: tuple[Callable[[Table, Hints], Match | CannotTell | None], ...] = (
    code.match,
    tool_calls.match,
    expressions.match,
    choices.match,
    values.match,
)
_JOIN_KEYS = ("id", "task_id", "question_id", "qid", "uid", "idx")
_LABEL_FILES = re.compile(
    r"possible_?answer|ground_?truth|answers?\b|labels?\b|targets?\b|gold|solutions?\b|key\b", re.I
)
_SPLITS = ("test", "validation", "valid", "val", "dev", "train")


def recognise(files: Sequence[SourceFile], prompt: str) -> Derivation | CannotTell:
    """Every file (or split) is a subset of its own; a file of answers is joined to its questions by id.

    `prompt`: the launch's words, and after a review the person's answer behind them. CannotTell when no subset can be
    scored, or when the one that the prompt names cannot.
    """
    usable = [SourceFile(f.report, _flat(f.rows)) for f in files if not f.report.get("fatal")]
    if not usable:
        fatal = next((f.report["fatal"] for f in files if f.report.get("fatal")), None)
        reason = str(fatal["message"]) if fatal else "There are no files with rows."
        return CannotTell(reason, str(fatal["fix"]) if fatal else "Give a file: JSON Lines, JSON, CSV or TSV.")
    derived: list[SubsetDerivation] = []
    cannot: dict[str, CannotTell] = {}
    for name, table, sources, notes in _tables(usable):
        found = _derive(name, table, sources, notes, prompt)
        if isinstance(found, CannotTell):
            cannot[name] = found
        else:
            derived.append(found)
    if not derived:
        return _all_failed(cannot, prompt)
    return _choose(derived, cannot, prompt)


def _flat(rows: list[Row]) -> list[Row]:
    """A question that is an object ({"stem", "choices"}) becomes columns, where every row has one."""
    nested = all(isinstance(row.get("question"), dict) and "stem" in row["question"] for row in rows)
    if not rows or not nested:
        return rows
    return [{**{k: v for k, v in row.items() if k != "question"}, **row["question"]} for row in rows]


def _derive(
    name: str, table: Table, sources: list[str], notes: list[str], prompt: str
) -> SubsetDerivation | CannotTell:
    hints = read_hints(prompt, table.columns)
    if not table.rows:
        return CannotTell(f"{table.name} has no rows.", "Give a file with rows.")
    for shape in SHAPES:
        found = shape(table, hints)
        if found is None:
            continue
        if isinstance(found, CannotTell):
            return found
        about = f"Rows: {', '.join(sources)} ({len(found.rows):,}). Recognised because {found.why}."
        return SubsetDerivation(
            name=name,
            shape=found.shape,
            files=sources,
            rows=found.rows,
            field_map={**found.field_map, "shape": found.shape},
            impl_source=render(found.template, found.values, about=about),
            references=found.references,
            choices=found.choices,
            why=found.why,
            notes=[*notes, *found.notes],
        )
    return CannotTell(f"{table.name} has no shape that the rules know.", "Describe what a right answer is.")


def subset_name(file_name: str) -> str:
    """A file's name as a subset's: "data/BFCL_v4.json#test" is "bfcl_v4-test"."""
    path, _, split = file_name.partition("#")
    base = path.replace("\\", "/").rsplit("/", 1)[-1]
    for suffix in (".gz", ".zip", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab", ".txt"):
        base = base[: -len(suffix)] if base.lower().endswith(suffix) else base
    name = re.sub(r"[^a-z0-9_.]+", "-", base.lower()).strip("-._") or "rows"
    split = re.sub(r"[^a-z0-9_.]+", "-", split.lower()).strip("-._")
    return f"{name}-{split}"[:100] if split else name[:100]


def _tables(files: Sequence[SourceFile]) -> list[tuple[str, Table, list[str], list[str]]]:
    """(subset name, rows, the files they came from, notes), with answer files joined to their questions."""
    tables = [(f, Table(f.name, f.rows)) for f in files]
    used: set[int] = set()
    out: list[tuple[str, Table, list[str], list[str]]] = []
    for at, (file, table) in enumerate(tables):
        if at in used or _is_answers(file.name):
            continue
        partner = _partner(at, tables, used)
        if partner is None:
            out.append((subset_name(file.name), table, [file.name], []))
            continue
        used.add(partner)
        answers, key = tables[partner], _key(table, tables[partner][1])
        assert key is not None
        by_id = {str(row.get(key)): row for row in answers[1].rows}
        joined = [{**by_id.get(str(row.get(key)), {}), **row} for row in table.rows]
        note = f"{answers[0].name} is joined by {key!r}"
        out.append((subset_name(file.name), Table(file.name, joined), [file.name, answers[0].name], [note]))
    for at, (file, table) in enumerate(tables):
        if at not in used and _is_answers(file.name):
            out.append((subset_name(file.name), table, [file.name], []))
    taken: set[str] = set()
    named = []
    for name, table, sources, notes in out:
        unique, more = name, 2
        while unique in taken:
            unique, more = f"{name}-{more}", more + 1
        taken.add(unique)
        named.append((unique, table, sources, notes))
    return named


def _is_answers(name: str) -> bool:
    return bool(_LABEL_FILES.search(subset_name(name).replace("-", "_").replace("_", " ")) or _LABEL_FILES.search(name))


def _key(left: Table, right: Table) -> str | None:
    for name in _JOIN_KEYS:
        if name in left.columns and name in right.columns:
            return name
    return None


def _partner(at: int, tables: list[tuple[SourceFile, Table]], used: set[int]) -> int | None:
    """The answer file whose ids are exactly this file's (each once), the best-named one when there are several."""
    file, table = tables[at]
    found = []
    for other, (other_file, other_table) in enumerate(tables):
        if other == at or other in used or not _is_answers(other_file.name):
            continue
        key = _key(table, other_table)
        if key is None:
            continue
        ids, theirs = [str(v) for v in table.values(key)], [str(v) for v in other_table.values(key)]
        if len(set(theirs)) == len(theirs) and set(ids) == set(theirs):
            shared = len(set(_words(file.name)) & set(_words(other_file.name)))
            found.append((-shared, other))
    return min(found)[1] if found else None


def _words(text: str) -> list[str]:
    return [w for w in re.split(r"[^a-z0-9]+", text.lower()) if w and w not in ("json", "jsonl", "csv", "the", "v4")]


def _mentions(names: Sequence[str], prompt: str) -> list[str]:
    """The names that the prompt means best: most of the words that tell them apart."""
    said = set(_words(prompt))
    split = {name: set(_words(name.replace("_", " "))) for name in names}
    common = set.intersection(*split.values()) if len(split) > 1 else set()
    scores: dict[str, tuple[float, float]] = {}
    spaced = " ".join(_words(prompt))
    for name, words in split.items():
        telling = words - common
        hits = len(telling & said)
        whole = 1.0 if " ".join(_words(name.replace("_", " "))) in spaced else 0.0
        scores[name] = (whole, hits / max(1, len(telling)) if hits else 0.0)
    best = max(scores.values(), default=(0.0, 0.0))
    if best == (0.0, 0.0):
        return []
    top = [name for name, score in scores.items() if score == best]
    longest = max(len(name) for name in top) if best[0] else 0
    return [name for name in top if not best[0] or len(name) == longest]


def _choose(derived: list[SubsetDerivation], cannot: dict[str, CannotTell], prompt: str) -> Derivation | CannotTell:
    names = [d.name for d in derived]
    meant = _mentions([*names, *cannot], prompt) if len(names) + len(cannot) > 1 else names
    if len(meant) == 1 and meant[0] in cannot:
        return cannot[meant[0]]
    left = f" (not scored: {'; '.join(f'{n}: {c.reason}' for n, c in cannot.items())})" if cannot else ""
    candidates = [n for n in meant if n in names] or names
    if len(candidates) == 1:
        why = "the only subset" if len(names) == 1 else "the prompt names it"
        return Derivation(derived, cannot, candidates[0], None, why + left)
    for split in _SPLITS:
        of_split = [n for n in candidates if plain(n).split("_")[-1] == split or plain(n).split("_")[0] == split]
        if len(of_split) == 1:
            return Derivation(
                derived, cannot, of_split[0], None, f"its {split} split is what scores are given on{left}"
            )
    question = f"Which of the {len(candidates)} subsets is meant: {', '.join(candidates[:30])}? Answer with its name."
    return Derivation(derived, cannot, None, question, f"several subsets fit the prompt equally{left}")


def _all_failed(cannot: dict[str, CannotTell], prompt: str) -> CannotTell:
    meant = _mentions(list(cannot), prompt) if len(cannot) > 1 else list(cannot)
    if len(meant) == 1:
        return cannot[meant[0]]
    reasons = list(dict.fromkeys(c.reason for c in cannot.values()))
    questions = list(dict.fromkeys(c.question for c in cannot.values()))
    return CannotTell(" ".join(reasons[:5])[:1500], questions[0])

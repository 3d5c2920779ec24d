"""What the tests of rules and scorers share: files to derivations, and a scorer run without a sandbox."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SDK = str(ROOT / "sdk")
if SDK not in sys.path:
    sys.path.append(SDK)

from runs.driver.rules.derivation import CannotTell, Derivation, SourceFile, SubsetDerivation  # noqa: E402
from runs.driver.rules.recognise import recognise  # noqa: E402
from runs.guest.read_rows import read_files  # noqa: E402


def load(out_dir: Path, *paths: Path) -> list[SourceFile]:
    """Read files as the sandbox does."""
    reports = read_files(str(out_dir), [str(p) for p in paths])
    return [SourceFile(report, read_rows(out_dir, report)) for report in reports]


def read_rows(out_dir: Path, report: dict[str, Any]) -> list[dict[str, Any]]:
    """The canonical rows of one report."""
    if not report["out"]:
        return []
    with open(out_dir / report["out"], encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def source(name: str, rows: Iterable[dict[str, Any]]) -> SourceFile:
    """A source file without a file."""
    return SourceFile({"name": name, "fatal": None}, list(rows))


def derive(*files: SourceFile, prompt: str = "measure this") -> Derivation:
    """The derivation; fails the test when the rules cannot tell."""
    found = recognise(files, prompt)
    assert isinstance(found, Derivation), found
    return found


def chosen(*files: SourceFile, prompt: str = "measure this") -> SubsetDerivation:
    """The chosen subset."""
    return derive(*files, prompt=prompt).subset()


def refused(*files: SourceFile, prompt: str = "measure this") -> CannotTell:
    """What the rules ask; fails the test when they derive something."""
    found = recognise(files, prompt)
    assert isinstance(found, CannotTell), found
    return found


def make_impl(source_text: str) -> Any:
    """The TaskImpl of a scorer file."""
    module = types.ModuleType("task_impl")
    exec(compile(source_text, "task_impl.py", "exec"), module.__dict__)
    return module.TaskImpl()


def answer(text: str | None, tool_calls: Any = None, finish_reason: str = "stop") -> dict[str, Any]:
    """A response as `solve` leaves it in the log."""
    return {"text": text, "tool_calls": tool_calls or [], "finish_reason": finish_reason, "reasoning": None}


def score(impl: Any, row: dict[str, Any], response: Any) -> dict[str, Any]:
    """`score`, with the response read back from JSON as the log does."""
    result: dict[str, Any] = impl.score(row, json.loads(json.dumps(response)))
    json.dumps(result, allow_nan=False)
    return result


def control_rates(subset: SubsetDerivation) -> tuple[float, float]:
    """(score of the oracle, score of the empty control)."""
    impl = make_impl(subset.impl_source)
    oracle = empty = 0.0
    for row, reference in zip(subset.rows, subset.references, strict=True):
        impl.extract(row)
        calls = [{"id": "c", **call} for call in reference.tool_calls or []]
        oracle += score(impl, row, answer(reference.text or "", calls))["score"]
        empty += score(impl, row, answer(""))["score"]
    return oracle / len(subset.rows), empty / len(subset.rows)

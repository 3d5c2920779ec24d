"""The formats of an export, and the two plain ones: JSON Lines and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchwright.lib.clock import stamp
from benchwright.lib.inert import inert
from runs.exports.inspect_log import inspect_log, inspect_name
from runs.exports.results import results, verdicts
from runs.models import Run

USAGE = ("requests", "input", "output", "cached", "reasoning", "cost_usd", "model_served")
COLUMNS = (
    "index",
    "trial",
    "outcome",
    "score",
    "task_outcome",
    "task_score",
    "attempts",
    "extracted",
    "target",
    "rule",
    "no_answer",
    "prompt",
    "response",
    "finish_reason",
    "latency_ms",
    "score_ms",
    *(f"usage.{name}" for name in USAGE),
    "error",
    "at",
)
# A spreadsheet runs a cell that begins so, some also after spaces, some also the wide forms.
FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def jsonl_lines(run: Run) -> Iterator[str]:
    """One JSON object a line and trial, with everything that the log has of it."""
    settled = verdicts(run)
    for row in results(run):
        verdict = settled.get(row["index"], {})
        row.update(at=stamp(row["at"]), task_outcome=verdict.get("outcome"), task_score=verdict.get("score"))
        yield json.dumps({"run_id": str(run.pk), **row}) + "\n"


def csv_lines(run: Run) -> Iterator[str]:
    """A line with the names, then one for each trial. Empty is unknown. JSON values are in JSON."""
    yield _csv_line(COLUMNS)
    settled = verdicts(run)
    for row in results(run):
        verdict, usage = settled.get(row["index"], {}), row["usage"] or {}
        row.update(at=stamp(row["at"]), task_outcome=verdict.get("outcome"), task_score=verdict.get("score"))
        row.update({f"usage.{name}": usage.get(name) for name in USAGE})
        yield _csv_line([cell(row[name]) for name in COLUMNS])


def cell(value: Any) -> str | int | float:
    """A value as a spreadsheet may see it: text that would act as a formula is text again by its apostrophe."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = inert(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return f"'{text}" if text.lstrip().startswith(FORMULA) or text.startswith(("\t", "\n")) else text


def _csv_line(cells: Any) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


@dataclass(frozen=True)
class Format:
    """How a format is written and called."""

    write: Callable[[Run], Iterator[str]]
    content_type: str
    name: Callable[[Run], str]


FORMATS = {
    "jsonl": Format(jsonl_lines, "application/x-ndjson", lambda run: f"run-{run.pk}.jsonl"),
    "csv": Format(csv_lines, "text/csv; charset=utf-8", lambda run: f"run-{run.pk}.csv"),
    "inspect": Format(inspect_log, "application/json", inspect_name),
}

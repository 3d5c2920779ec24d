"""What people see: words, tables, the progress of a run. Text from models and data sets is made inert first."""

from __future__ import annotations

import json
import sys
import time
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from benchwright_client.client import Client, Run
from benchwright_client.errors import ClientError

EXIT = {"ok": 0, "running": 0, "error": 1, "halted": 3, "killed": 3, "waiting": 4, "paused": 4}
COLOURS = {"ok": "green", "error": "red", "killed": "red", "halted": "yellow", "waiting": "yellow", "paused": "yellow"}
EVERY_SECONDS = 1.0


def console() -> Console:
    """Made anew for each use, so that it writes to where standard output leads now."""
    return Console(highlight=False, emoji=False, markup=False, soft_wrap=True)


def inert(text: object) -> str:
    """Text in which nothing is invisible or acts on the terminal; line breaks and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(text))


def say(*lines: str) -> None:
    """Lines for people."""
    out = console()
    for line in lines:
        out.print(inert(line))


def say_json(value: Any) -> None:
    """JSON for programs: ASCII, so that it survives every pipe."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def complain(error: ClientError) -> None:
    """What went wrong, and what to do, on standard error."""
    out = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    field = getattr(error, "field", None)
    out.print(inert(f"{field}: {error.message}" if field and field not in error.message else error.message))
    if error.hint:
        out.print(inert(error.hint))
    if request_id := getattr(error, "request_id", None):
        out.print(inert(f"request {request_id}, code {getattr(error, 'code', '')}"), style="dim")


def percent(value: float | None) -> str:
    """A rate, or a dash."""
    return "–" if value is None else f"{value * 100:.1f} %"


def dollars(value: Decimal | None) -> str:
    """An amount; unknown is a word and never 0."""
    return "unknown" if value is None else f"${value:f}"


def score_words(run: Run) -> str:
    """The score with what stands beside it."""
    score = run.score
    if score is None or score.accuracy is None:
        return "no score" + (f", {score.errored} errored" if score else "")
    words = [percent(score.accuracy), f"n = {score.n}"]
    if score.interval:
        words.append(f"95 %: {percent(score.interval[0])} to {percent(score.interval[1])}")
    if score.coverage is not None and score.coverage < 1:
        words.append(f"coverage {percent(score.coverage)}")
    if score.errored:
        words.append(f"{score.errored} errored: {percent(score.band[0])} to {percent(score.band[1])}")
    return ", ".join(words)


def summary(run: Run) -> list[str]:
    """A run in a few lines."""
    lines = [f"{run.title}", f"  run     {run.id}", f"  status  {run.status}", f"  model   {run.model}"]
    lines += [f"  score   {score_words(run)}", f"  cost    {dollars(run.cost.incurred)}", f"  page    {run.url}"]
    if run.error:
        lines.append(f"  error   {run.error['phase']}: {run.error['type']}: {run.error['detail']}")
        if run.error.get("hint"):
            lines.append(f"          {run.error['hint']}")
    if run.raw.get("halt_reason"):
        lines.append(f"  halted  {run.raw['halt_reason']}")
    if run.question:
        lines.append(f"  asks    {run.question}")
    return lines


def table(names: list[str], rows: list[list[str]]) -> None:
    """A table that is as wide as the terminal; in a pipe, tabs between the cells."""
    out = console()
    if not out.is_terminal:
        for row in rows:
            sys.stdout.write("\t".join(" ".join(inert(cell).split()) for cell in row) + "\n")
        return
    grid = Table(*names, box=None, pad_edge=False)
    for row in rows:
        grid.add_row(*(Text(inert(c), COLOURS.get(c, "")) for c in row))
    out.print(grid)


def watch(client: Client, run_id: str, *, quiet: bool = False) -> Run:
    """Follows a run until it has ended or is parked. KeyboardInterrupt leaves it alone."""
    if quiet:
        return client.runs.wait(run_id)
    out = console()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, disable=not out.is_terminal, transient=True) as progress:
        bar, before = progress.add_task("", total=None), ""
        while True:
            run = client.runs.get(run_id)
            line = _progress_words(run)
            progress.update(bar, description=line, total=run.counts.selected or None, completed=run.counts.settled)
            if not out.is_terminal and line != before:
                out.print(f"{line} ({run.counts.settled} of {run.counts.selected})")
            if run.ended or run.parked:
                return run
            before = line
            time.sleep(EVERY_SECONDS)


def _progress_words(run: Run) -> str:
    phase = next((p["phase"] for p in run.raw.get("phases", []) if p["status"] == "running"), run.status)
    accuracy = percent(run.score.accuracy) if run.score else "–"
    return inert(f"{phase}  {accuracy}  {dollars(run.cost.incurred)}")

"""`benchwright runs`: look at runs and change them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from benchwright_client import models
from benchwright_client.cli import screen
from benchwright_client.cli.launch import follow, show
from benchwright_client.cli.session import Session, with_session


@click.group("runs")
def runs() -> None:
    """Look at runs and change them."""


@runs.command("list")
@with_session
@click.option("--most", default=20, show_default=True, help="Only so many.")
@click.option("--status", help="running, ok, error, killed, paused, waiting, halted.")
@click.option("--benchmark")
@click.option("--subset")
@click.option("--impl")
@click.option("--model")
@click.option("--group")
@click.option("--visibility")
@click.option("--q", help="Words of the title or the prompt.")
def list_runs(session: Session, most: int, **filters: Any) -> int:
    """Newest first."""
    with session.client() as client:
        found = list(client.runs.list(most=most, **filters))
    if session.as_json:
        screen.say_json([run.raw for run in found])
        return 0
    rows = []
    for r in found:
        accuracy = screen.percent(r.score.accuracy if r.score else None)
        rows.append([r.id, r.status, accuracy, screen.dollars(r.cost.incurred), r.model, r.title])
    screen.table(["run", "status", "accuracy", "cost", "model", "title"], rows)
    return 0


@runs.command("show")
@with_session
@click.argument("run")
def show_run(session: Session, run: str) -> int:
    """One run. The exit code says how it stands."""
    with session.client() as client:
        return show(session, client.runs.get(run))


@runs.command("watch")
@with_session
@click.argument("run")
def watch_run(session: Session, run: str) -> int:
    """Follow a run until it ends. Ctrl-C detaches; the run goes on."""
    with session.client() as client:
        return follow(session, client, run)


@runs.command("events")
@with_session
@click.argument("run")
@click.option("--follow", "-f", "live", is_flag=True, help="Go on until the run ends.")
@click.option("--after", default=-1, help="Only those with a greater seq.")
@click.option("--types", default="", help="Only these, with commas between.")
def events(session: Session, run: str, live: bool, after: int, types: str) -> int:
    """The log. With --json one event a line."""
    wanted = tuple(t for t in types.split(",") if t)
    with session.client() as client:
        found = client.runs.events(run, after) if live else client.runs.log(run, after, wanted)
        try:
            for event in found:
                if not wanted or event.type in wanted:
                    _say_event(session, event)
        except KeyboardInterrupt:
            click.echo(f"\nDetached; the run goes on. benchwright runs events {run} --follow", err=True)
            return 130
    return 0


def _say_event(session: Session, event: models.Event) -> None:
    if session.as_json:
        given = {"seq": event.seq, "type": event.type, "at": event.at.isoformat(), "data": event.data}
        sys.stdout.write(json.dumps({**given, "digest": event.digest}) + "\n")
        sys.stdout.flush()
        return
    text = json.dumps(event.data, ensure_ascii=False)
    screen.say(f"{event.seq:>6}  {event.at:%H:%M:%S}  {event.type}  {text[:160]}{'…' if len(text) > 160 else ''}")


@runs.command("tasks")
@with_session
@click.argument("run")
@click.argument("index", required=False, type=int)
@click.option("--outcome", type=click.Choice(["pass", "fail", "err", "running"]))
def tasks(session: Session, run: str, index: int | None, outcome: str | None) -> int:
    """The tasks of the latest sweep, or one of them with prompt and response."""
    with session.client() as client:
        if index is not None:
            found = client.runs.task(run, index)
            if session.as_json:
                screen.say_json(found)
            else:
                screen.say(json.dumps(found, ensure_ascii=False, indent=2))
            return 0
        rows = list(client.runs.tasks(run, outcome))
    if session.as_json:
        screen.say_json([row.raw for row in rows])
    else:
        cells = [[str(t.index), t.outcome, "–" if t.score is None else f"{t.score:g}"] for t in rows]
        screen.table(["index", "outcome", "score"], cells)
    return 0


def _verb(name: str, words: str) -> None:
    @runs.command(name, help=words)
    @with_session
    @click.argument("run")
    def act(session: Session, run: str) -> int:
        with session.client() as client:
            done = getattr(client.runs, name)(run)
        if session.as_json:
            screen.say_json(done.raw)
        else:
            screen.say(f"{done.id} is {done.status}.")
        return 0


_verb("pause", "Park a run until it is resumed.")
_verb("resume", "Go on with a paused run.")
_verb("halt", "Stop a run for good; what is settled stays.")


@runs.command("receipt")
@with_session
@click.argument("run")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write receipt.json there, not to the screen.")
@click.option("--events", "log", type=click.Path(path_type=Path), help="Write events.jsonl there as well.")
def receipt(session: Session, run: str, output: Path | None, log: Path | None) -> int:
    """The signed receipt, and the log to check it against."""
    with session.client() as client:
        text = json.dumps(client.runs.receipt(run), indent=2) + "\n"
        if log is not None:
            log.write_bytes(client.runs.artifact(run, "events.jsonl"))
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")
        click.echo(f"{output}: benchwright verify {output}{f' {log}' if log else ''}", err=True)
    return 0


@runs.command("export")
@with_session
@click.argument("run")
@click.option("--format", "kind", default="jsonl", show_default=True, help="jsonl, csv or inspect.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write it to this file or into this folder.")
def export(session: Session, run: str, kind: str, output: Path | None) -> int:
    """The results as a file."""
    with session.client() as client:
        if output is not None and output.is_dir():
            click.echo(client.runs.save_export(run, kind, output))
            return 0
        found = client.runs.export(run, kind)
    if output is None:
        sys.stdout.write(found.decode("utf-8"))
    else:
        output.write_bytes(found)
    return 0

"""`benchwright run`: launch, and follow if asked to."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from benchwright_client.cli import screen
from benchwright_client.cli.session import Session, with_session
from benchwright_client.client import Client


class Pair(click.ParamType[Any]):
    """`name=value`; the value is JSON where it is JSON, else text. `exact`: always text, for a float holds no money."""

    name = "name=value"

    def __init__(self, *, exact: bool = False) -> None:
        self.exact = exact

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        name, sign, text = str(value).partition("=")
        if not sign or not name:
            self.fail(f"{value!r} is not name=value", param, ctx)
        if self.exact:
            return name, text
        try:
            return name, json.loads(text)
        except ValueError:
            return name, text


class Limit(Pair):
    """`level.quantity=number`."""

    name = "level.quantity=number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        place, number = super().convert(value, param, ctx)
        level, dot, quantity = place.rpartition(".")
        if not dot or not level or not quantity:
            self.fail(f"{value!r} is not level.quantity=number, for example run.cost=5", param, ctx)
        return level, quantity, number


@click.command("run")
@with_session
@click.option("--prompt", help="What to measure, in words.")
@click.option("--benchmark", help="A registered benchmark: id or name.")
@click.option("--subset", help="Its subset.")
@click.option("--impl", help="A scorer by id, or latest:official.")
@click.option("--file", "files", multiple=True, type=click.Path(exists=True, dir_okay=False), help="Data to upload.")
@click.option("--source", help="URL of the data.")
@click.option("--replay", help="A run whose benchmark and scorer to use again.")
@click.option("--model", required=True, help="The system under test: openai/gpt-4o-mini, control/oracle, …")
@click.option("--endpoint", help="Base URL of an OpenAI-compatible server that has the model.")
@click.option("--model-key-env", help="Name of the variable here that holds the model's key.")
@click.option("--param", "params", multiple=True, type=Pair(), help="Sampling: temperature=0.")
@click.option("--price", "prices", multiple=True, type=Pair(exact=True), help="Dollars: input_per_token=0.0000001.")
@click.option("--trials", type=int, help="How often each task is tried.")
@click.option("--aggregator", help="How trials become a verdict; any_pass without it.")
@click.option("--sample", type=int, help="Only so many tasks.")
@click.option("--limit", "limits", multiple=True, type=Limit(), help="A ceiling: run.cost=5.")
@click.option("--metadata", multiple=True, type=Pair(), help="A note of yours: team=search.")
@click.option("--driver", help="Who works on the phases.")
@click.option("--harness", help="How tasks are executed.")
@click.option("--compute", help="Sandbox backend.")
@click.option("--concurrency", type=int, help="Tasks in flight.")
@click.option("--visibility", type=click.Choice(["private", "unlisted", "public"]))
@click.option("--title", help="How the run is called in lists.")
@click.option("--watch", is_flag=True, help="Follow it until it ends. Ctrl-C detaches; the run goes on.")
def run(session: Session, watch: bool, **given: Any) -> int:
    """Launch a run."""
    body = _body(given)
    with session.client() as client:
        if given["files"]:
            body["files"] = [client.files.upload(Path(name)).id for name in given["files"]]
        launched = client.runs.create(**body)
        return follow(session, client, launched.id) if watch else show(session, launched)


def show(session: Session, found: Any) -> int:
    """A run, once. Exit 0 while it goes on."""
    if session.as_json:
        screen.say_json(found.raw)
    else:
        screen.say(*screen.summary(found))
    return screen.EXIT.get(found.status, 1)


def follow(session: Session, client: Client, run_id: str) -> int:
    """Watches a run to its end. Ctrl-C only ends the watching."""
    try:
        return show(session, screen.watch(client, run_id, quiet=session.as_json))
    except KeyboardInterrupt:
        click.echo(f"\nDetached; the run goes on. benchwright runs watch {run_id}", err=True)
        return 130


def _body(given: dict[str, Any]) -> dict[str, Any]:
    """The body of the launch. Raises UsageError for what can't be sent."""
    plain = ("prompt", "benchmark", "subset", "impl", "source", "replay", "driver", "harness", "compute")
    body = {name: given[name] for name in (*plain, "concurrency", "visibility", "title") if given[name] is not None}
    body["model"] = _model(given)
    trials: dict[str, Any] = {}
    if given["trials"] is not None:
        trials["plan"] = {"k": given["trials"]}
    if given["aggregator"]:
        trials["aggregator"] = {"name": given["aggregator"]}
    limits: dict[str, dict[str, Any]] = {}
    for level, quantity, number in given["limits"]:
        limits.setdefault(level, {})[quantity] = number
    sample = {"limit": given["sample"]} if given["sample"] is not None else {}
    parts = {"trials": trials, "limits": limits, "sample": sample, "metadata": dict(given["metadata"])}
    return body | {name: part for name, part in parts.items() if part}


def _model(given: dict[str, Any]) -> str | dict[str, Any]:
    model: dict[str, Any] = {"identifier": given["model"]}
    if given["endpoint"]:
        model |= {"source": "endpoint", "base_url": given["endpoint"]}
    else:
        model["source"] = "control" if given["model"].startswith("control/") else "litellm"
    if variable := given["model_key_env"]:
        if not os.environ.get(variable):
            raise click.UsageError(f"{variable} is not set here.")
        model["api_key"] = os.environ[variable]
    if given["params"]:
        model["params"] = dict(given["params"])
    if given["prices"]:
        model["price"] = dict(given["prices"])
    return model

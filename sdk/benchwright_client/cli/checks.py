"""`benchwright login`, `verify`, `doctor`, `registry`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

import click
import httpx

from benchwright_client import verify as receipts
from benchwright_client.calls import VERSION
from benchwright_client.cli import screen
from benchwright_client.cli.session import Session, config_path, store, stored, with_session
from benchwright_client.client import Client
from benchwright_client.errors import ClientError, NotLoggedIn
from benchwright_client.transport import options

FAR_CLOCK_SECONDS = 60


@click.command("login")
@click.option("--url", help="Address of Benchwright.")
@click.pass_obj
def login(session: Session, url: str | None) -> int:
    """Keep an address and a key for later. The key is asked for, or read from standard input."""
    url = (url or click.prompt("Address", default="http://127.0.0.1:8800")).rstrip("/")
    key = click.prompt("API key", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    key = key.strip()
    if not key:
        raise NotLoggedIn("There is no key.", hint="Settings, API keys on the page; or pipe it in.")
    with Client(url, key, transport=session.transport) as client:
        next(client.runs.list(most=1), None)
    screen.say(f"{url} accepts the key. Kept in {store(url, key)}, for your eyes only.")
    return 0


@click.command("verify")
@click.argument("receipt", type=click.Path())
@click.argument("events", type=click.Path(), required=False)
@click.option("--key", help="The public key (base64) that you trust, from GET /v1/receipt-key.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def verify(receipt: str, events: str | None, key: str | None, as_json: bool) -> int:
    """Check a receipt offline, with or without its log. Nothing is asked of a server."""
    try:
        document = receipts.read_receipt(receipt)
        checks = receipts.verify(document, receipts.read_events(events) if events else None, key=key)
    except receipts.Unreadable as e:
        raise click.UsageError(str(e)) from None
    holds = all(check.ok for check in checks)
    if as_json:
        screen.say_json({"holds": holds, "checks": [vars(check) | {"ok": check.ok} for check in checks]})
    else:
        screen.say(*receipts.words(checks, document, events is not None))
    return 0 if holds else 1


@click.group("registry")
def registry() -> None:
    """Look at what can be measured."""


@registry.command("list")
@with_session
def list_benchmarks(session: Session) -> int:
    """Benchmarks that are public or yours."""
    with session.client() as client:
        found = client.registry.benchmarks()
    if session.as_json:
        screen.say_json([b.raw for b in found])
    else:
        rows = [[b.id, b.name, ", ".join(f"{s['name']} ({s['count'] or '?'})" for s in b.subsets)] for b in found]
        screen.table(["id", "name", "subsets"], rows)
    return 0


@registry.command("show")
@with_session
@click.argument("benchmark")
def show_benchmark(session: Session, benchmark: str) -> int:
    """One benchmark with its subsets and scorers."""
    with session.client() as client:
        found = client.registry.benchmark(benchmark)
    if session.as_json:
        screen.say_json(found.raw)
        return 0
    screen.say(f"{found.name} ({found.id}, {found.visibility})", found.description)
    screen.say(*(f"  subset  {s['id']}: {s['count'] or '?'} tasks" for s in found.subsets))
    screen.say(*(f"  scorer  {i['id']}{' (official)' if i['official'] else ''}" for i in found.raw.get("impls", [])))
    return 0


@click.command("doctor")
@with_session
def doctor(session: Session) -> int:
    """Look at the way from here to the server, and say how to mend it. Exit 1 when something is wrong."""
    found: list[tuple[bool, str, str]] = []

    def look(name: str, how: Callable[[], str]) -> bool:
        try:
            found.append((True, name, how()))
        except (ClientError, httpx.HTTPError) as e:
            hint = getattr(e, "hint", None)
            found.append((False, name, f"{e}{' ' + hint if hint else ''}"))
        return found[-1][0]

    look("client", lambda: f"{VERSION}, Python {sys.version.split()[0]}")
    if look("login", lambda: _login(session)) and look("server", lambda: _server(session)):
        look("key", lambda: _key(session))
        look("receipts", lambda: f"signed with key {session.client().receipt_key()['key_id']}")
    if session.as_json:
        screen.say_json([{"ok": ok, "name": name, "words": words} for ok, name, words in found])
    else:
        screen.say(*(f"{'ok   ' if ok else 'WRONG'} {name}: {words}" for ok, name, words in found))
        screen.say("Sandboxes, services and providers' keys are the server's: ./bw doctor there.")
    return 0 if all(ok for ok, _, _ in found) else 1


def _login(session: Session) -> str:
    url, key = session.address()
    path = config_path()
    if stored() and path.stat().st_mode & 0o077:
        raise NotLoggedIn(f"{path} can be read by others.", hint=f"chmod 600 {path}")
    if not key:
        raise NotLoggedIn(f"No key for {url} is known.", hint="benchwright login, or set BENCHWRIGHT_API_KEY.")
    return f"{url}, key {key[:6]}…"


def _server(session: Session) -> str:
    url, _ = session.address()
    with httpx.Client(**options(url, None, 10), transport=session.transport) as http:
        began = time.monotonic()
        alive = http.get("/healthz")
        took = (time.monotonic() - began) * 1000
        ready = http.get("/readyz")
    if alive.status_code != 200:
        raise ClientError(f"/healthz answers {alive.status_code}.", hint="Is this the address of Benchwright?")
    if ready.status_code != 200:
        raise ClientError("The server is up and its database is not.", hint="./bw doctor on the server says more.")
    skew = abs(time.time() - parsedate_to_datetime(alive.headers["Date"]).timestamp()) if "Date" in alive.headers else 0
    if skew > FAR_CLOCK_SECONDS:
        raise ClientError(f"The clocks are {skew:.0f} s apart.", hint="Set the clock here or there.")
    return f"up and ready, {took:.0f} ms away"


def _key(session: Session) -> str:
    with session.client() as client:
        next(client.runs.list(most=1), None)
    return "accepted"

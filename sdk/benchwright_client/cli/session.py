"""Where the server is and who asks: options, then environment, then what `benchwright login` stored."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import httpx

from benchwright_client.client import Client
from benchwright_client.errors import NotLoggedIn


def config_path() -> Path:
    """`$XDG_CONFIG_HOME/benchwright/login.json`, else under `~/.config`."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "benchwright" / "login.json"


def stored() -> dict[str, str]:
    """What is stored; empty when nothing is. Raises NotLoggedIn when the file can't be read."""
    path = config_path()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as e:
        raise NotLoggedIn(f"{path} can't be read: {e}", hint="Run benchwright login again.") from None
    return {k: str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def store(url: str, key: str) -> Path:
    """Keeps address and key in a file that only its owner may read."""
    path = config_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        json.dump({"url": url, "key": key}, out)
    fresh.replace(path)
    return path


@dataclass
class Session:
    """One call of the command. `transport` stands for the network in tests."""

    url: str | None = None
    key: str | None = None
    as_json: bool = False
    transport: httpx.BaseTransport | None = None

    def address(self) -> tuple[str, str | None]:
        """URL and key. Raises NotLoggedIn when there is no URL."""
        url, key = self.url or os.environ.get("BENCHWRIGHT_URL"), self.key or os.environ.get("BENCHWRIGHT_API_KEY")
        kept = stored() if not (url and key) else {}
        if key is None and (url is None or url.rstrip("/") == kept.get("url")):
            key = kept.get("key")  # a key is only ever sent to the address that it was stored for
        url = url or kept.get("url")
        if not url:
            raise NotLoggedIn(
                "No address is known.", hint="benchwright login, or set BENCHWRIGHT_URL and BENCHWRIGHT_API_KEY."
            )
        return url.rstrip("/"), key

    def client(self) -> Client:
        """A client for this address."""
        url, key = self.address()
        if not key:
            raise NotLoggedIn(f"No key for {url} is known.", hint="benchwright login, or set BENCHWRIGHT_API_KEY.")
        return Client(url, key, transport=self.transport)


def with_session(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `--url`, `--key` and `--json`, and the session that they make."""

    @click.option("--url", help="Address of Benchwright; else BENCHWRIGHT_URL, else as stored by login.")
    @click.option("--key", help="API key; else BENCHWRIGHT_API_KEY, else as stored by login.")
    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    @click.pass_context
    def wrapped(context: click.Context, /, url: str | None, key: str | None, as_json: bool, **given: Any) -> Any:
        session = context.obj
        session.url, session.key, session.as_json = url or session.url, key or session.key, as_json
        return context.invoke(command, session, **given)

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    # Options that were put on the command itself belong to the wrapped one.
    wrapped.__click_params__ = [*wrapped.__click_params__, *getattr(command, "__click_params__", [])]  # type: ignore[attr-defined]
    return wrapped

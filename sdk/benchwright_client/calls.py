"""The requests of API v1 as data: what is sent and which answers may be asked for again. The clients only send them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

VERSION = "0.1.0"
PAGE = 200


@dataclass(frozen=True)
class Call:
    """One request. `safe`: the same request twice does no more than once."""

    method: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    json: Any = None
    file: tuple[str, bytes] | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def safe(self) -> bool:
        """Whether it may be sent again when the answer got lost."""
        return self.method == "GET" or "Idempotency-Key" in self.headers


def run_path(run_id: str, more: str = "") -> str:
    """The path of a run; whatever is given as id stays one part of it."""
    return f"/runs/{quote(run_id, safe='')}{more}"


def create(body: dict[str, Any], idempotency_key: str | None) -> Call:
    """A launch. Without a key it gets one, so that an answer that got lost launches nothing twice."""
    given = {name: value for name, value in body.items() if value is not None}
    return Call("POST", "/runs", json=given, headers={"Idempotency-Key": idempotency_key or uuid.uuid4().hex})


def get(run_id: str) -> Call:
    """One run."""
    return Call("GET", run_path(run_id))


def runs(cursor: str | None, filters: dict[str, Any]) -> Call:
    """A page of the list."""
    given = {name: value for name, value in {**filters, "cursor": cursor}.items() if value is not None}
    return Call("GET", "/runs", params={"limit": PAGE, **given})


def verb(run_id: str, name: str) -> Call:
    """pause, resume or halt."""
    return Call("POST", run_path(run_id, f"/{name}"))


def change(run_id: str, changes: dict[str, Any]) -> Call:
    """visibility, metadata or review_resolution."""
    return Call("PATCH", run_path(run_id), json=changes)


def log(run_id: str, after: int, types: tuple[str, ...]) -> Call:
    """A page of the log."""
    params: dict[str, Any] = {"after": after, "limit": PAGE}
    return Call("GET", run_path(run_id, "/events"), params=params | ({"types": ",".join(types)} if types else {}))


def tasks(run_id: str, after: int, outcome: str | None) -> Call:
    """A page of tasks."""
    params: dict[str, Any] = {"after": after, "limit": PAGE}
    return Call("GET", run_path(run_id, "/tasks"), params=params | ({"outcome": outcome} if outcome else {}))


def export(run_id: str, format: str) -> Call:
    """The results as a file."""
    return Call("GET", run_path(run_id, "/export"), {"format": format})


def upload(file: str | Path | tuple[str, bytes]) -> Call:
    """A file from disk, or (name, bytes)."""
    given = file if isinstance(file, tuple) else (Path(file).name, Path(file).read_bytes())
    return Call("POST", "/files", file=given)


def benchmark(benchmark_id: str) -> Call:
    """One benchmark."""
    return Call("GET", f"/registry/benchmarks/{quote(benchmark_id, safe='')}")

"""A person with a key, and nobody who works on runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchwright_client import Client

from billing.actions import make_key
from billing.models import Account, User
from tests.factories.runs import make_person
from tests.sdk.door import Door

URL = "https://bench.example"


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.pipeline.dispatch.dispatch", lambda run_id: None)


@pytest.fixture(autouse=True)
def _no_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the reader of these tests stored is not ours to use."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("BENCHWRIGHT_URL", "BENCHWRIGHT_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchwright_client.sse.MOST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("benchwright_client.transport.FIRST_PAUSE_SECONDS", 0.0)


@pytest.fixture
def person(db: None) -> tuple[User, Account]:
    return make_person()


@pytest.fixture
def key(person: tuple[User, Account]) -> str:
    return make_key(*person, "test")


@pytest.fixture
def client(key: str) -> Iterator[Client]:
    """That person's client."""
    with Client(URL, key, transport=Door()) as made:
        yield made

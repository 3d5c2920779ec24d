"""What every test gets: its tier as a mark, no way out to the network, and the shared data when they are there."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stack import Stack

TESTS = Path(__file__).resolve().parent
TIERS = {"unit", "db", "sdk", "flows", "sandbox", "contracts", "browser"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data", help="folder of the shared data sets (default: $BENCHWRIGHT_DATA, then ../shared/data)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test's folder is its tier."""
    for item in items:
        tier = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if tier in TIERS:
            item.add_marker(tier)


@pytest.fixture(scope="session")
def shared_data(request: pytest.FixtureRequest) -> Path:
    """The folder of data sets and recorded anchors; where it is not, tests that need it are skipped with the reason."""
    given = request.config.getoption("--data") or os.environ.get("BENCHWRIGHT_DATA")
    folder = Path(given) if given else TESTS.parents[1] / "shared" / "data"
    if not folder.is_dir():
        if given:
            pytest.fail(f"the data folder {folder} is not there")
        pytest.skip("no shared data here: ./bw test --data PATH")
    return folder.resolve()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """`./bw up` on the embedded defaults, with a state of its own, for all tests that ask."""
    with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Any:
    """A test that reaches out fails at once and says where to, instead of passing only where there is a network."""
    real = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex")}

    def guarded(name: str) -> Any:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6) and not _local(str(address[0])):
                raise OSError(f"a test tried to reach {address[0]}:{address[1]}")
            return real[name](self, address)

        return connect

    patch = pytest.MonkeyPatch()
    for name in real:
        patch.setattr(socket.socket, name, guarded(name))
    yield
    patch.undo()


def _local(host: str) -> bool:
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False

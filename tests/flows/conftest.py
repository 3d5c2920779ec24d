"""A whole Benchwright with a state of its own, once for this folder."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from benchmarks.client import Api
from tests.browser.stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """`./bw up` on the embedded defaults."""
    with Stack(tmp_path_factory.mktemp("flows")) as running:
        yield running


@pytest.fixture(scope="session")
def api(stack: Stack) -> Api:
    """API v1 of that stack, as its admin."""
    told = json.loads(stack.manage("bootstrap", "--json").strip().splitlines()[-1])
    return Api(stack.url, told["api_key"])

"""API v1 of the whole Benchwright that the tests share."""

from __future__ import annotations

import json

import pytest

from benchmarks.client import Api
from tests.stack import Stack


@pytest.fixture(scope="session")
def api(stack: Stack) -> Api:
    """API v1 of that stack, as its admin."""
    told = json.loads(stack.manage("bootstrap", "--json").strip().splitlines()[-1])
    return Api(stack.url, told["api_key"])

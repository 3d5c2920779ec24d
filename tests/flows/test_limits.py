"""Limits in whole runs: the exact reason, what is settled stays, and the money is never passed."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest

from benchmarks.client import Api
from benchmarks.materialize import prepare
from benchwright.embedded.client import ApiFailed
from tests.fakes.provider import FakeProvider, Reply
from tests.stack import Stack

TASKS = 200
PRICE = {"input_per_token": "0.0001", "output_per_token": "0.0001"}
USAGE = {"prompt_tokens": 60, "completion_tokens": 40}  # a cent


@pytest.fixture(scope="module")
def pinned(api: Api) -> dict[str, Any]:
    """A task list and its scorer."""
    return dict(prepare(api, TASKS))


def run(api: Api, pinned: dict[str, Any], provider: FakeProvider, **body: Any) -> dict[str, Any]:
    """The ended run of a priced model."""
    model = {
        "source": "endpoint", "identifier": "m", "base_url": provider.base_url, "price": PRICE,
        "params": {"max_tokens": 40},
    }  # fmt: skip
    return api.wait(api.launch(model=model, concurrency=64, **{**pinned, **body})["id"], 60)


def test_model_spend_at_64_in_flight_never_passes_run_cost_and_the_log_knows_all_of_it(
    stack: Stack, api: Api, pinned: dict[str, Any]
) -> None:
    with FakeProvider(answers=lambda _: Reply("1", usage=USAGE), latency_s=0.05) as provider:
        ended = run(api, pinned, provider, limits={"run": {"cost": 1.0}})
        asked = len(provider.requests)
    assert (ended["display_status"], ended["halt_reason"]) == ("halted", "limit_exceeded:run.cost")
    paid = Decimal(asked) / 100
    assert Decimal("0.8") < paid <= 1
    assert Decimal(ended["cost"]["model_usd"]) == paid
    assert 0 < ended["tasks"]["settled"] < TASKS and ended["tasks"]["errored"] == 0
    stack.manage("verify_run", ended["id"])


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"run": {"duration": 4}}, "run.duration"),
        ({"phase:materialize": {"duration": 1}}, "phase:materialize.duration"),
        ({"run": {"tokens": 500}}, "run.tokens"),
        ({"phase": {"cost": 0.05}}, "phase.cost"),
    ],
)
def test_a_run_over_a_limit_is_halted_by_name_within_seconds_and_keeps_what_is_settled(
    stack: Stack, api: Api, pinned: dict[str, Any], limits: dict[str, Any], reason: str
) -> None:
    with FakeProvider(answers=lambda _: Reply("1", usage=USAGE), latency_s=0.3) as provider:
        began = time.monotonic()
        ended = run(api, pinned, provider, limits=limits, trials={"plan": {"k": 20}})
    assert (ended["display_status"], ended["halt_reason"]) == ("halted", f"limit_exceeded:{reason}")
    assert time.monotonic() - began < 15
    assert api.events(ended["id"], "MaterializeTaskResult")
    stack.manage("verify_run", ended["id"])


@pytest.mark.parametrize(
    ("limits", "latency"),
    [
        ({"attempt": {"tokens": 50}}, 0.0),
        ({"attempt": {"cost": 0.001}}, 0.0),
        ({"task": {"cost": 0.001}}, 0.0),
        ({"task": {"duration": 0.3}}, 0.6),
        ({"attempt": {"duration": 0.3}}, 0.6),
    ],
)
def test_a_task_over_its_limit_is_an_error_that_is_not_tried_again_and_the_run_ends_ok(
    api: Api, pinned: dict[str, Any], limits: dict[str, Any], latency: float
) -> None:
    level = next(iter(limits))
    limits = {**limits, "task": {**limits.get("task", {}), "attempts": 1 if level == "attempt" else 3}}
    with FakeProvider(answers=lambda _: Reply("1", usage=USAGE), latency_s=latency) as provider:
        ended = run(api, pinned, provider, limits=limits, sample={"limit": 5})
        asked = len(provider.requests)
    assert (ended["display_status"], ended["tasks"]["errored"]) == ("ok", 5), ended["error"]
    assert asked == 6  # one call proved the model live
    errors = [e["data"]["error"] for e in api.events(ended["id"], "MaterializeTaskResult")]
    assert {e["type"] for e in errors} <= {"ceiling", "timeout", "Timeout"}
    assert not api.events(ended["id"], "AttemptFailed")


@pytest.mark.parametrize("act", ["limit", "halt", "pause"])
def test_a_run_that_waits_for_one_long_command_is_stopped_all_the_same(
    api: Api, pinned: dict[str, Any], act: str
) -> None:
    with FakeProvider(answers="1", latency_s=40) as provider:
        model = {"source": "endpoint", "identifier": "m", "base_url": provider.base_url}
        limits = {"run": {"duration": 4}} if act == "limit" else {}
        launched = api.launch(model=model, limits=limits, **pinned)
        until = time.monotonic() + 20
        while not provider.requests and time.monotonic() < until:
            time.sleep(0.1)
        began = time.monotonic()
        if act != "limit":
            api.call("POST", f"/runs/{launched['id']}/{act}")
        while not api.events(launched["id"], "SandboxKilled") and time.monotonic() < began + 20:
            time.sleep(0.2)
        assert time.monotonic() - began < 8
    run = api.call("GET", f"/runs/{launched['id']}")
    assert run["display_status"] == {"limit": "halted", "halt": "killed", "pause": "paused"}[act]
    assert {e["data"]["reason"] for e in api.events(run["id"], "SandboxKilled")} == {"halted"}
    assert not api.events(run["id"], "PhaseFailed")


def test_a_cost_limit_without_a_price_is_refused_before_there_is_a_run(api: Api, pinned: dict[str, Any]) -> None:
    model = {"source": "endpoint", "identifier": "m", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(ApiFailed) as refused:
        api.launch(model=model, limits={"task": {"cost": 1}}, **pinned)
    assert refused.value.code == "price_unknown"

"""Ceilings at the gateway: money set aside before a call leaves, tasks and attempts that have used theirs up."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import httpx
import pytest

from sandboxes.model_proxy.ceilings import read_ceilings
from sandboxes.model_proxy.config import RouteRefused
from tests.fakes.gateway import RunningGateway, endpoint
from tests.fakes.provider import FakeProvider, Reply

# A dollar for a thousand tokens, both ways: 10 + 5 tokens of an answer are $0.015.
PRICE = {"input_per_token": "0.001", "output_per_token": "0.001"}
BIG = Reply("x", usage={"prompt_tokens": 100, "completion_tokens": 900})


def gateway(provider: FakeProvider, limits: dict[str, Any], **route: Any) -> RunningGateway:
    route = {"price": PRICE, "params": {"max_tokens": 900}, **route}
    return RunningGateway(endpoint(provider.base_url, **route), limits=limits, max_concurrency=64, timeout_s=30)


def spent(running: RunningGateway) -> Decimal:
    return sum((Decimal(c["cost_usd"] or 0) for c in running.calls()), Decimal(0))


def post(running: RunningGateway, index: int = 0, **key: Any) -> httpx.Response:
    try:
        return running.post(prompt="hi", key=running.key(index, **key))
    except httpx.TimeoutException:
        return httpx.Response(0)


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def test_with_64_calls_at_once_the_model_spend_never_passes_the_ceiling() -> None:
    with FakeProvider(answers=lambda _: BIG, latency_s=0.02) as provider:
        with gateway(provider, {"run": {"cost": "10.5"}}) as running:
            running.http.timeout = httpx.Timeout(1.5)
            with ThreadPoolExecutor(64) as pool:
                codes = [a.status_code for a in pool.map(lambda n: post(running, n), range(64))]
            told = [line for line in running.synced() if line["t"] == "ceiling"]
            assert (spent(running), codes.count(200)) == (Decimal(10), 10)
            assert [t["limit"] for t in told] == ["run.cost"]
            assert len(provider.requests) == 10


def test_a_provider_that_counts_more_than_the_text_is_believed_from_its_first_answer_on() -> None:
    counted = Reply("x", usage={"prompt_tokens": 600, "completion_tokens": 400})
    with FakeProvider(answers=lambda _: counted, latency_s=0.02) as provider:
        with gateway(provider, {"run": {"cost": "10.5"}}, params={"max_tokens": 10}) as running:
            running.http.timeout = httpx.Timeout(1.0)
            assert post(running, -1).status_code == 200
            with ThreadPoolExecutor(64) as pool:
                list(pool.map(lambda n: post(running, n), range(64)))
            assert spent(running) == Decimal(10)


def test_an_answer_without_a_bound_is_bounded_to_what_is_left_and_not_handed_on_when_it_is_cut() -> None:
    def answer(request: Any) -> Reply:
        most = request.body.get("max_tokens")
        if request.last_user == "long":
            return Reply("x", finish_reason="length", usage={"prompt_tokens": 10, "completion_tokens": most})
        return Reply("fine", usage={"prompt_tokens": 10, "completion_tokens": 5})

    with FakeProvider(answers=answer) as provider, gateway(provider, {"run": {"cost": "1"}}, params={}) as running:
        running.http.timeout = httpx.Timeout(1.5)
        assert running.ask("short")["choices"][0]["message"]["content"] == "fine"
        with pytest.raises(httpx.TimeoutException):
            running.ask("long")
        assert provider.requests[0].body["max_tokens"] > 500
        assert spent(running) <= 1
        assert [c["error"] and c["error"]["kind"] for c in running.calls()] == [None, "ceiling"]


def test_what_the_run_had_spent_before_counts() -> None:
    with FakeProvider() as provider, gateway(provider, {"run": {"cost": "5"}, "spent": "4.99"}) as running:
        assert error(running.post(prompt="hi", key=running.key(-1))) == (402, "ceiling")
        assert not provider.requests


@pytest.mark.parametrize(
    ("limits", "again"),
    [
        ({"attempt": {"tokens": "1000"}}, {"attempt": 2}),
        ({"attempt": {"cost": "1"}}, {"attempt": 2}),
        ({"task": {"cost": "1"}}, {"trial": 1}),
    ],
)
def test_an_attempt_or_task_that_has_used_up_its_share_gets_no_more_calls_and_others_do(
    limits: dict[str, Any], again: dict[str, int]
) -> None:
    with FakeProvider(answers=lambda _: BIG) as provider, gateway(provider, limits) as running:
        assert post(running).status_code == 200
        assert error(post(running)) == (402, "ceiling")
        assert (post(running, 1).status_code, post(running, **again).status_code) == (200, 200)
        assert len(provider.requests) == 3
        refused = [c for c in running.calls() if c["error"]]
        assert [(c["attempts"], c["error"]["kind"]) for c in refused] == [(0, "ceiling")]


def test_a_task_over_its_ceiling_gets_no_call_with_another_attempt_either() -> None:
    with FakeProvider(answers=lambda _: BIG) as provider, gateway(provider, {"task": {"cost": "1"}}) as running:
        post(running)
        assert error(post(running, attempt=2)) == (402, "ceiling")


def test_the_answer_that_passes_a_ceiling_is_paid_and_not_handed_on() -> None:
    with FakeProvider(answers=lambda _: BIG) as provider, gateway(provider, {"attempt": {"tokens": "999"}}) as running:
        assert error(post(running)) == (402, "ceiling")
        (call,) = running.calls()
        assert (call["cost_usd"], call["usage"]["output"], call["error"]["kind"]) == ("1", 900, "ceiling")


def test_usage_that_a_provider_keeps_silent_about_is_not_taken_for_nothing() -> None:
    with FakeProvider(answers=lambda _: Reply("x", usage=None)) as provider:
        with gateway(provider, {"attempt": {"tokens": "1000"}}) as running:
            assert error(post(running)) == (402, "ceiling")


def test_a_task_out_of_time_gets_no_more_calls() -> None:
    with FakeProvider() as provider, gateway(provider, {"task": {"duration": "0.5"}}) as running:
        assert post(running).status_code == 200
        time.sleep(0.6)
        assert error(post(running)) == (402, "ceiling")


@pytest.mark.parametrize(
    "limits", [{"runs": {}}, {"run": {"tokens": "1"}}, {"run": {"cost": 1.0}}, {"task": {"cost": "x"}}]
)
def test_a_ceiling_that_the_gateway_does_not_know_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(RouteRefused):
        read_ceilings(limits)

"""The endpoint route, end to end: a real gateway process in front of a real HTTP server."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from tests.fakes.gateway import RunningGateway, endpoint
from tests.fakes.provider import FakeProvider, Reply, Wrong, html_page, rate_limited, unsupported

KEY = "sk-real-0123456789abcdef"
PRICE = {"input_per_token": "0.000001", "output_per_token": "0.00000333"}
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 500,
    "prompt_tokens_details": {"cached_tokens": 200},
    "completion_tokens_details": {"reasoning_tokens": 300},
}


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[FakeProvider, RunningGateway]]:
    with (
        FakeProvider(key=KEY) as provider,
        RunningGateway(
            endpoint(provider.base_url, api_key=KEY, params={"temperature": 0.2}, price=PRICE), timeout_s=1.5
        ) as gateway,
    ):
        yield provider, gateway


@pytest.fixture
def provider(shared: tuple[FakeProvider, RunningGateway]) -> Iterator[FakeProvider]:
    fake = shared[0]
    fake.answers, fake.latency_s = "ok", 0.0
    fake.requests.clear()
    yield fake
    fake.script.clear()


@pytest.fixture
def gateway(shared: tuple[FakeProvider, RunningGateway], provider: FakeProvider) -> RunningGateway:
    shared[1].synced()
    shared[1].lines.clear()
    return shared[1]


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["type"]


def test_a_call_is_answered_and_recorded_with_usage_and_exact_cost(
    gateway: RunningGateway, provider: FakeProvider
) -> None:
    provider.answers = lambda _: Reply("4", usage=USAGE, model="fake-1-2026")
    answer = gateway.post(prompt="2 + 2?", model="whatever", key=gateway.key(7, trial=2, attempt=3, invocation=4))
    assert answer.json()["choices"][0]["message"]["content"] == "4"
    [call] = gateway.calls()
    assert call["key"] == {"invocation": 4, "index": 7, "trial": 2, "attempt": 3}
    assert call["usage"] == {"input": 1000, "output": 500, "cached": 200, "reasoning": 300}
    assert call["cost_usd"] == "0.002665"
    assert call["price_source"] == "override"
    assert (call["model_requested"], call["model_served"]) == ("whatever", "fake-1-2026")
    assert (call["status"], call["attempts"], call["finish_reason"], call["error"]) == (200, 1, "stop", None)
    sent = provider.requests[0]
    assert sent.body["model"] == "fake-1" and sent.body["temperature"] == 0.2
    assert sent.headers["Authorization"] == f"Bearer {KEY}"


def test_missing_usage_stays_unknown_and_is_never_zero(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.answers = lambda _: Reply("x", usage=None)
    gateway.ask("hi")
    [call] = gateway.calls()
    assert call["usage"] == {"input": None, "output": None, "cached": None, "reasoning": None}
    assert call["cost_usd"] is None


def test_junk_in_usage_is_unknown(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.answers = lambda _: Reply("x", usage={"prompt_tokens": -5, "completion_tokens": "many"})
    gateway.ask("hi")
    assert gateway.calls()[0]["usage"]["input"] is None
    assert gateway.calls()[0]["usage"]["output"] is None


def test_the_record_is_out_before_the_last_byte_of_the_answer(gateway: RunningGateway) -> None:
    for n in range(20):
        gateway.ask(f"question {n}")
        # No sync: the pipe already holds the line; the reader thread only needs to be scheduled.
        gateway.wait_for(lambda line, n=n: line.get("key") is not None and len(gateway.lines) > n, 1)
    assert len(gateway.lines) == 20


def test_a_streamed_answer_is_passed_on_with_usage_on_record(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.answers = "a longer answer in pieces"
    data = gateway.stream("hi")
    assert data[-1] == "[DONE]"
    chunks = [json.loads(d) for d in data[:-1]]
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == "a longer answer in pieces"
    assert provider.requests[0].body["stream_options"] == {"include_usage": True}
    [call] = gateway.calls()
    assert (call["usage"]["input"], call["usage"]["output"]) == (10, 5)
    assert call["cost_usd"] == "0.00002665"
    assert call["finish_reason"] == "stop" and call["stream"] is True
    assert 0 < call["ttft_ms"] <= call["latency_ms"]


def test_a_caller_that_did_not_ask_for_usage_gets_no_chunk_without_choices(gateway: RunningGateway) -> None:
    assert all(json.loads(d)["choices"] for d in gateway.stream("hi")[:-1])
    asked = [json.loads(d) for d in gateway.stream("hi", stream_options={"include_usage": True})[:-1]]
    assert asked[-1]["usage"]["prompt_tokens"] == 10


def test_tool_calls_pass_through_whole_and_streamed(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.answers = lambda _: Reply(None, tool_calls=[{"name": "add", "arguments": {"a": 1}}])
    tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    answer = gateway.ask("hi", tools=tools, tool_choice="auto")
    assert answer["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert provider.requests[0].body["tools"] == tools
    chunks = [json.loads(d) for d in gateway.stream("hi", tools=tools)[:-1]]
    assert any(c["choices"][0]["delta"].get("tool_calls") for c in chunks)
    assert [c["finish_reason"] for c in gateway.calls()] == ["tool_calls", "tool_calls"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"temperature": 0}, "temperature"),
        ({"max_tokens": 5}, "max_tokens"),
        ({"seed": 1}, "seed"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"n": 2}, "n"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_a_scorer_may_not_set_sampling(
    gateway: RunningGateway, provider: FakeProvider, body: dict[str, Any], named: str
) -> None:
    response = gateway.post(prompt="hi", **body)
    assert error_of(response) == (400, "parameter_refused")
    assert response.json()["error"]["param"] == named and named in response.json()["error"]["message"]
    assert provider.requests == []
    assert gateway.calls()[0]["error"]["kind"] == "parameter_refused"


def test_a_scorer_may_set_what_belongs_to_the_task(gateway: RunningGateway, provider: FakeProvider) -> None:
    body: dict[str, Any] = {
        "stop": ["\n"],
        "logprobs": True,
        "top_logprobs": 2,
        "response_format": {"type": "json_object"},
        "n": 1,
    }
    assert gateway.post(prompt="hi", temperature=None, **body).status_code == 200
    assert provider.requests[0].body["stop"] == ["\n"]
    assert provider.requests[0].body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"null", b'{"messages": "x"}', b'{"messages": []}', b"\xff"])
def test_a_request_that_is_none_is_refused_by_name(gateway: RunningGateway, content: bytes) -> None:
    headers = {"Authorization": f"Bearer {gateway.key()}"}
    assert error_of(gateway.http.post("/chat/completions", content=content, headers=headers)) == (
        400,
        "parameter_refused",
    )


def test_a_forged_or_foreign_key_is_refused(gateway: RunningGateway, provider: FakeProvider) -> None:
    good = gateway.key(3)
    other_task = good.replace("-3-", "-4-", 1)
    for key in (other_task, good[:-1] + ("0" if good[-1] != "0" else "1"), KEY, "bw-", "x" * 5000):
        assert error_of(gateway.post(prompt="hi", key=key)) == (401, "invalid_key")
    assert provider.requests == []


def test_models_lists_the_one_model_of_the_route(gateway: RunningGateway) -> None:
    answer = gateway.http.get("/models", headers={"Authorization": f"Bearer {gateway.key()}"})
    assert [m["id"] for m in answer.json()["data"]] == ["fake-1"]
    assert gateway.http.get("/models").status_code == 401


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_a_passing_failure_is_tried_again(gateway: RunningGateway, provider: FakeProvider, status: int) -> None:
    provider.script = [Wrong(status=status), Wrong(status=status)]
    assert gateway.post(prompt="hi").status_code == 200
    [call] = gateway.calls()
    assert call["attempts"] == 3 and call["usage"]["input"] == 10
    assert [(r["attempt"], r["error"]["status"]) for r in gateway.retries()] == [(1, status), (2, status)]


@pytest.mark.parametrize("status", [400, 402, 404, 413, 422])
def test_a_lasting_failure_is_not_tried_again(gateway: RunningGateway, provider: FakeProvider, status: int) -> None:
    provider.script = [Wrong(status=status, message="no")]
    response = gateway.post(prompt="hi")
    assert response.status_code == status and response.headers["x-should-retry"] == "false"
    assert len(provider.requests) == 1 and gateway.calls()[0]["attempts"] == 1


def test_retries_end_and_say_what_the_provider_said(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.script = [rate_limited() for _ in range(4)]
    response = gateway.post(prompt="hi")
    assert error_of(response) == (429, "rate_limited") and "Rate limit reached." in response.text
    [call] = gateway.calls()
    assert call["attempts"] == 4 and call["usage"]["input"] is None and call["cost_usd"] is None


def test_retry_after_in_seconds_is_waited_for(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.script = [rate_limited("0.4")]
    assert gateway.post(prompt="hi").status_code == 200
    first, second = provider.requests
    assert second.at - first.at >= 0.4


def test_retry_after_as_a_date_is_waited_for(gateway: RunningGateway, provider: FakeProvider) -> None:
    until = datetime.now(UTC) + timedelta(seconds=1.2)
    provider.script = [rate_limited(format_datetime(until, usegmt=True))]
    before = time.time()
    assert gateway.post(prompt="hi").status_code == 200
    # An HTTP date has whole seconds.
    assert time.time() >= int(until.timestamp()) > before - 1


def test_a_retry_after_beyond_the_timeout_gives_up_at_once(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.script = [rate_limited("3600")]
    assert error_of(gateway.post(prompt="hi")) == (429, "rate_limited")
    assert len(provider.requests) == 1


def test_an_empty_account_is_not_asked_again(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.script = [Wrong(status=429, message="You exceeded your quota.", code="insufficient_quota")]
    assert error_of(gateway.post(prompt="hi")) == (429, "rate_limited")
    assert len(provider.requests) == 1


@pytest.mark.parametrize("kind", ["cut", "truncated"])
def test_a_cut_connection_is_tried_again(gateway: RunningGateway, provider: FakeProvider, kind: str) -> None:
    provider.script = [Wrong(kind=kind), Wrong(kind=kind)]
    assert gateway.post(prompt="hi").status_code == 200
    assert gateway.calls()[0]["attempts"] == 3


def test_a_cut_connection_every_time_is_a_clean_error(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.script = [Wrong(kind="truncated") for _ in range(4)]
    assert error_of(gateway.post(prompt="hi")) == (502, "upstream_error")


def test_a_provider_that_hangs_is_a_timeout(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.script = [Wrong(kind="hang")]
    assert gateway.post(prompt="hi").status_code == 200
    assert gateway.retries()[0]["error"]["kind"] == "timeout"
    assert gateway.retries()[0]["latency_ms"] >= 1500


@pytest.mark.parametrize(
    "wrong",
    [
        html_page(200),
        Wrong(kind="raw", status=200, body=b'{"choices": [{"mess', content_type="application/json"),
        Wrong(kind="raw", status=200, body=b""),
        Wrong(kind="raw", status=200, body=b"[]"),
        Wrong(kind="raw", status=200, body=b'{"choices": []}'),
        Wrong(kind="raw", status=200, body=b'{"choices": [null]}'),
        Wrong(kind="raw", status=200, body=b"[" * 5000),
        Wrong(kind="raw", status=200, body=b'{"error": {"message": "no capacity", "code": "x"}}'),
        Wrong(kind="raw", status=302, body=b"", headers={"Location": "http://127.0.0.1:1/"}),
        Wrong(kind="raw", status=204, body=b""),
    ],
)
def test_what_is_no_answer_becomes_a_clean_error(gateway: RunningGateway, provider: FakeProvider, wrong: Wrong) -> None:
    provider.script = [wrong]
    assert error_of(gateway.post(prompt="hi")) == (502, "upstream_error")
    assert len(provider.requests) == 1
    [call] = gateway.calls()
    assert call["status"] == 502 and call["usage"]["output"] is None
    assert "<" not in call["error"]["message"]


def test_an_error_inside_a_200_counts_as_the_status_it_names(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.script = [Wrong(kind="raw", status=200, body=b'{"error": {"message": "busy", "code": 429}}')]
    assert gateway.post(prompt="hi").status_code == 200
    assert gateway.calls()[0]["attempts"] == 2


def test_a_wrong_real_key_and_an_unknown_model_are_named(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.script = [
        Wrong(status=401, message=f"Incorrect API key provided: {KEY}"),
        Wrong(status=404, message="The model `fake-1` does not exist", code="model_not_found"),
    ]
    denied = gateway.post(prompt="hi")
    assert error_of(denied) == (401, "upstream_auth")
    assert "Incorrect API key provided: [redacted]" in denied.text
    assert error_of(gateway.post(prompt="hi")) == (404, "model_not_found")


def test_a_stream_that_fails_before_its_first_event_is_tried_again(
    gateway: RunningGateway, provider: FakeProvider
) -> None:
    provider.script = [Wrong(status=503), Wrong(kind="cut")]
    assert gateway.stream("hi")[-1] == "[DONE]"
    assert gateway.calls()[0]["attempts"] == 3


def test_a_stream_that_breaks_half_way_ends_with_an_error_event(
    gateway: RunningGateway, provider: FakeProvider
) -> None:
    provider.answers = "x" * 400
    provider.script = [Wrong(kind="cut_stream")]
    data = gateway.stream("hi")
    assert json.loads(data[-1])["error"]["type"] == "upstream_error"
    [call] = gateway.calls()
    assert call["error"]["kind"] == "upstream_error" and call["usage"]["input"] is None
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("body", "last"),
    [
        (b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n', "[DONE]"),
        (b'data: {"choices": [{"delta": {}, "finish_reason": null}]}\n\n', None),
        (b'data: {"choices": [{"delta": {}}]}\n\ndata: {oops\n\ndata: [DONE]\n\n', None),
        (b'data: {"choices": [{"delta": {}}]}\r\n\r\n: ping\r\n\r\ndata: [DONE]\r\n\r\n', "[DONE]"),
        (b'data: {"choices": [{"delta": {}}]}\n\ndata: {"error": {"message": "overloaded"}}\n\n', None),
    ],
)
def test_a_stream_of_odd_shape_ends_whole_or_in_an_error(
    gateway: RunningGateway, provider: FakeProvider, body: bytes, last: str | None
) -> None:
    provider.script = [Wrong(kind="raw", status=200, body=body, content_type="text/event-stream")]
    data = gateway.stream("hi")
    if last is None:
        assert json.loads(data[-1])["error"]["type"] == "upstream_error"
    else:
        assert data[-1] == last and gateway.calls()[0]["error"] is None


def test_a_caller_that_leaves_a_stream_is_still_on_record_with_usage(
    gateway: RunningGateway, provider: FakeProvider
) -> None:
    provider.answers = "word " * 2000
    headers = {"Authorization": f"Bearer {gateway.key()}"}
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    with gateway.http.stream("POST", "/chat/completions", json=body, headers=headers) as response:
        next(response.iter_lines())
    call = gateway.wait_for(lambda line: line["t"] == "call", 5)
    assert call["usage"]["output"] == 5


def test_a_caller_that_does_not_wait_for_its_answer_is_still_charged(
    gateway: RunningGateway, provider: FakeProvider
) -> None:
    provider.latency_s = 0.4
    with pytest.raises(httpx.ReadTimeout):
        headers = {"Authorization": f"Bearer {gateway.key()}"}
        body = {"messages": [{"role": "user", "content": "hi"}]}
        gateway.http.post("/chat/completions", json=body, headers=headers, timeout=0.1)
    call = gateway.wait_for(lambda line: line["t"] == "call", 5)
    assert call["usage"]["output"] == 5 and call["cost_usd"] is not None


def test_nobody_is_retried_for_who_has_left(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.latency_s = 0.3
    provider.script = [Wrong(status=500) for _ in range(4)]
    with pytest.raises(httpx.ReadTimeout):
        headers = {"Authorization": f"Bearer {gateway.key()}"}
        body = {"messages": [{"role": "user", "content": "hi"}]}
        gateway.http.post("/chat/completions", json=body, headers=headers, timeout=0.1)
    gateway.wait_for(lambda line: line["t"] == "call", 5)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    "said",
    [
        b'"half a pair \\ud83d"',
        b'"latin \xe9"',
        b'"x", "logprobs": {"content": [{"logprob": NaN}, {"logprob": -Infinity}]}',
    ],
)
def test_an_answer_that_is_not_quite_json_is_an_answer(
    gateway: RunningGateway, provider: FakeProvider, said: bytes
) -> None:
    usage = b'"usage": {"prompt_tokens": 1, "completion_tokens": 2}'
    body = b'{"choices": [{"message": {"content": ' + said + b'}, "finish_reason": "stop"}], ' + usage + b"}"
    provider.script = [Wrong(kind="raw", status=200, body=body)]
    response = gateway.post(prompt="hi")
    assert response.status_code == 200 and json.loads(response.text)["choices"][0]["message"]["content"]
    assert gateway.calls()[0]["usage"]["output"] == 2


def test_completions_responses_and_embeddings_are_served(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.answers = "ok"
    assert gateway.post("/completions", prompt="once").json()["choices"][0]["text"] == "ok"
    assert gateway.post("/responses", input="hi").json()["output"][0]["content"][0]["text"] == "ok"
    assert len(gateway.post("/embeddings", input=["a", "b"]).json()["data"]) == 2
    usages = [(c["usage"]["input"], c["usage"]["output"]) for c in gateway.calls()]
    assert usages == [(10, 5), (10, 5), (6, None)]
    assert [c["cost_usd"] for c in gateway.calls()] == ["0.00002665", "0.00002665", "0.000006"]
    assert "temperature" not in provider.requests[2].body


def test_a_streamed_response_object_is_recorded_from_its_last_event(gateway: RunningGateway) -> None:
    headers = {"Authorization": f"Bearer {gateway.key()}"}
    body = {"input": "hi", "stream": True}
    with gateway.http.stream("POST", "/responses", json=body, headers=headers) as response:
        events = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]
    assert [e["type"] for e in events] == ["response.created", "response.output_text.delta", "response.completed"]
    [call] = gateway.calls()
    assert (call["usage"]["input"], call["usage"]["output"], call["finish_reason"]) == (10, 5, "stop")


def test_a_large_request_and_answer_go_through(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.answers = "y" * 3_000_000
    answer = gateway.ask("x" * 3_000_000)
    assert len(answer["choices"][0]["message"]["content"]) == 3_000_000


def test_no_more_calls_are_in_flight_than_allowed() -> None:
    with (
        FakeProvider(latency_s=0.05) as provider,
        RunningGateway(endpoint(provider.base_url), max_concurrency=3) as gateway,
        ThreadPoolExecutor(12) as pool,
    ):
        statuses = list(pool.map(lambda n: gateway.post(prompt=f"q{n}").status_code, range(12)))
        assert statuses == [200] * 12
        assert provider.max_in_flight == 3
        assert max(c["wait_ms"] for c in gateway.calls()) > 40


def test_a_refused_parameter_is_dropped_once_remembered_and_on_record() -> None:
    params = {"temperature": 0.7, "max_tokens": 9, "seed": 1}
    with (
        FakeProvider(refuses=["seed", "max_tokens", "temperature"]) as provider,
        RunningGateway(endpoint(provider.base_url, params=params)) as gateway,
    ):
        assert gateway.post(prompt="first").status_code == 200
        tries = len(provider.requests)
        assert gateway.post(prompt="second").status_code == 200
        assert len(provider.requests) == tries + 1
        sent = provider.requests[-1].body
        assert sent["max_completion_tokens"] == 9 and not {"seed", "max_tokens", "temperature"} & sent.keys()
        for call in gateway.calls():
            assert set(call["adapted"]) == {"-seed", "-temperature", "max_tokens→max_completion_tokens"}
        assert all(r["adapting"] for r in gateway.retries())


def test_a_wrong_value_is_not_taken_for_an_unsupported_parameter() -> None:
    wrong = unsupported("max_tokens", "max_tokens is too large: 999999. This model supports at most 4096 tokens.")
    with (
        FakeProvider(script=[wrong]) as provider,
        RunningGateway(endpoint(provider.base_url, params={"max_tokens": 999999})) as gateway,
    ):
        response = gateway.post(prompt="hi")
        assert error_of(response) == (400, "upstream_error") and "too large" in response.text
        assert len(provider.requests) == 1


def test_nobody_there_is_unreachable() -> None:
    with RunningGateway(endpoint("http://127.0.0.1:9/v1")) as gateway:
        assert error_of(gateway.post(prompt="hi")) == (502, "upstream_unreachable")
        assert gateway.calls()[0]["attempts"] == 4


def test_an_endpoint_without_a_price_costs_an_unknown_amount() -> None:
    with FakeProvider() as provider, RunningGateway(endpoint(provider.base_url, model="gpt-4o")) as gateway:
        gateway.ask("hi")
        assert gateway.calls()[0]["cost_usd"] is None and gateway.calls()[0]["usage"]["input"] == 10


def test_the_real_key_is_nowhere_in_what_the_gateway_says() -> None:
    header_secret = "hdr-secret-9876543210"

    def leak(request: object) -> Reply:
        return Reply(f"you sent {KEY} and {header_secret}")

    script = [Wrong(status=500, message=f"cannot use {KEY}"), Wrong(status=400, message=f"{header_secret}: bad")]
    route = endpoint("", api_key=KEY, headers={"x-extra": header_secret})
    with FakeProvider(leak, key=KEY, script=script) as provider:
        route["base_url"] = provider.base_url
        with RunningGateway(route) as gateway:
            said = [gateway.post(prompt="hi").text, gateway.post(prompt="hi").text, "".join(gateway.stream("hi"))]
            gateway.stop()
        everything = "".join(said) + gateway.raw.decode() + gateway.stderr
        assert "[redacted]" in everything
        assert KEY not in everything and header_secret not in everything
        assert provider.requests[0].headers["x-extra"] == header_secret


def test_calls_under_way_when_a_sync_comes_do_not_delay_it(gateway: RunningGateway, provider: FakeProvider) -> None:
    provider.latency_s = 0.8
    thread = threading.Thread(target=lambda: gateway.ask("slow"))
    thread.start()
    time.sleep(0.1)
    began = time.monotonic()
    assert gateway.calls() == []
    assert time.monotonic() - began < 0.5
    thread.join()
    assert len(gateway.calls()) == 1


def test_a_gateway_told_to_stop_exits_cleanly() -> None:
    with RunningGateway(endpoint("http://127.0.0.1:9/v1")) as gateway:
        assert gateway.stop() == 0
        assert gateway.stderr == ""


def ask_and_be_cut_off(gateway: RunningGateway) -> None:
    with contextlib.suppress(httpx.HTTPError):
        gateway.post(prompt="slow")


def test_a_call_under_way_when_the_gateway_stops_is_on_record() -> None:
    with FakeProvider(latency_s=5) as provider, RunningGateway(endpoint(provider.base_url)) as gateway:
        thread = threading.Thread(target=ask_and_be_cut_off, args=[gateway])
        thread.start()
        while not provider.requests:
            time.sleep(0.01)
        assert gateway.stop() == 0
        thread.join()
        [call] = [line for line in gateway.lines if line["t"] == "call"]
        assert call["error"]["kind"] == "upstream_error" and call["usage"]["input"] is None

"""The LiteLLM route at the wire: OpenAI's protocol and Anthropic's, before a server that misbehaves on cue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.gateway import RunningGateway
from tests.fakes.provider import FakeProvider, Reply, Request, Wrong, html_page, rate_limited, unsupported

KEY = "sk-real-litellm-0123456789"
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
Pair = tuple[FakeProvider, RunningGateway]


def reply(request: Request) -> Reply:
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    if "tools" in request.body:
        return Reply(None, tool_calls=[{"name": "add", "arguments": {"a": 1}}], usage=usage)
    return Reply("hello there", usage=usage)


def serve(provider: FakeProvider, model: str, base_url: str) -> RunningGateway:
    params = {"temperature": 0, "max_tokens": 50}
    route = {"kind": "litellm", "model": model, "base_url": base_url, "api_key": KEY, "params": params}
    return RunningGateway(route, env={"HTTP_PROXY": provider.url, "http_proxy": provider.url, "NO_PROXY": ""})


@pytest.fixture(scope="module")
def openai() -> Iterator[Pair]:
    with FakeProvider(key=KEY) as provider, serve(provider, "openai/gpt-4o", "http://model.example/v1") as gateway:
        yield provider, gateway


@pytest.fixture(scope="module")
def anthropic() -> Iterator[Pair]:
    model = "anthropic/claude-sonnet-4-5"
    with FakeProvider(key=KEY) as provider, serve(provider, model, "http://model.example") as gateway:
        yield provider, gateway


@pytest.fixture(params=["openai", "anthropic"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return fresh(request.getfixturevalue(request.param))


def fresh(pair: Pair) -> Pair:
    provider, gateway = pair
    provider.answers = reply
    provider.script.clear()
    provider.requests.clear()
    gateway.synced()
    gateway.lines.clear()
    return pair


def delta_text(data: list[str]) -> str:
    chunks = [json.loads(d) for d in data[:-1]]
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])


def test_usage_and_cost_are_recorded_whole_and_streamed(pair: Pair) -> None:
    provider, gateway = pair
    assert gateway.ask("hi")["choices"][0]["message"]["content"] == "hello there"
    data = gateway.stream("hi")
    assert delta_text(data) == "hello there" and data[-1] == "[DONE]"
    whole, streamed = gateway.calls()
    expected = {"openai": "0.00045", "anthropic": "0.0006"}[whole["provider"]]
    for call in (whole, streamed):
        assert (call["usage"]["input"], call["usage"]["output"], call["cost_usd"]) == (100, 20, expected)
        assert call["price_source"].startswith("litellm ") and call["finish_reason"] == "stop"
    assert streamed["ttft_ms"] is not None
    assert provider.requests[0].body["max_tokens"] == 50


def test_tool_calls_come_back_in_openai_shape(pair: Pair) -> None:
    _, gateway = pair
    choice = gateway.ask("hi", tools=TOOLS)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"a": 1}
    chunks = [json.loads(d)["choices"][0]["delta"] for d in gateway.stream("hi", tools=TOOLS)[:-1]]
    parts = [t["function"].get("arguments") or "" for c in chunks for t in c.get("tool_calls", [])]
    assert json.loads("".join(parts)) == {"a": 1}


def test_one_layer_of_retries_and_retry_after(pair: Pair) -> None:
    provider, gateway = pair
    provider.script = [Wrong(status=500), rate_limited("0.3")]
    assert gateway.post(prompt="hi").status_code == 200
    assert len(provider.requests) == 3 and provider.requests[2].at - provider.requests[1].at >= 0.3
    assert gateway.calls()[0]["attempts"] == 3


@pytest.mark.parametrize(
    ("wrong", "status", "kind"),
    [
        (Wrong(status=401, message=f"bad key {KEY}"), 401, "upstream_auth"),
        (Wrong(status=404, message="no such model"), 404, "model_not_found"),
        (Wrong(status=400, message="too long"), 400, "upstream_error"),
        (html_page(200), 502, "upstream_error"),
    ],
)
def test_lasting_failures_are_named_and_not_tried_again(pair: Pair, wrong: Wrong, status: int, kind: str) -> None:
    provider, gateway = pair
    provider.script = [wrong]
    response = gateway.post(prompt="hi")
    assert (response.status_code, response.json()["error"]["type"]) == (status, kind)
    assert len(provider.requests) == 1 and KEY not in response.text


def test_a_cut_connection_is_tried_again_and_a_cut_stream_is_not(pair: Pair) -> None:
    provider, gateway = pair
    provider.script = [Wrong(kind="cut")]
    assert gateway.post(prompt="hi").status_code == 200
    provider.script = [Wrong(kind="cut_stream")]
    data = gateway.stream("hi")
    assert "error" in json.loads(data[-1])
    last = gateway.calls()[-1]
    assert last["error"] is not None and last["usage"]["output"] is None and last["cost_usd"] is None


def test_a_refused_parameter_is_adapted(pair: Pair) -> None:
    provider, gateway = pair
    provider.script = [unsupported("temperature")]
    assert gateway.post(prompt="hi").status_code == 200
    assert gateway.calls()[0]["adapted"] == ["-temperature"]
    assert "temperature" not in provider.requests[-1].body


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 7}])
def test_usage_that_litellm_makes_up_is_not_recorded(openai: Pair, usage: dict[str, Any] | None) -> None:
    provider, gateway = fresh(openai)
    provider.answers = lambda _: Reply("hello there", usage=usage)
    assert gateway.ask("hi")["usage"] is None
    assert gateway.calls()[0]["usage"]["output"] is None and gateway.calls()[0]["cost_usd"] is None
    if usage is None:
        gateway.stream("hi")
        assert gateway.calls()[1]["usage"] == {"input": None, "output": None, "cached": None, "reasoning": None}


def test_cached_and_written_prompt_tokens_have_their_own_price(anthropic: Pair) -> None:
    provider, gateway = fresh(anthropic)
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 200,
    }
    provider.answers = lambda _: Reply("x", usage=usage)
    gateway.ask("hi")
    [call] = gateway.calls()
    assert (call["usage"]["input"], call["usage"]["cached"], call["usage"]["cache_written"]) == (1300, 1000, 200)
    # 100 at 3, 1000 at 0.3, 200 at 3.75, 10 at 15 dollars a million.
    assert call["cost_usd"] == "0.0015"


def test_the_other_doors_of_the_openai_protocol(openai: Pair) -> None:
    _, gateway = fresh(openai)
    assert gateway.post("/completions", prompt="x").json()["choices"][0]["text"] == "hello there"
    assert gateway.post("/responses", input="x").json()["output"][0]["content"][0]["text"] == "hello there"
    assert len(gateway.post("/embeddings", input=["x"]).json()["data"]) == 1
    assert [c["usage"]["input"] for c in gateway.calls()] == [100, 100, 3]


def test_the_real_key_stays_out_of_records_and_stderr(pair: Pair) -> None:
    _, gateway = pair
    assert KEY not in gateway.raw.decode()

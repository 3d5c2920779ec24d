"""Controls through the gateway: what a scorer must score 1, 0 and like a guess."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandboxes.model_proxy.keys import proof_index
from tests.fakes.gateway import RunningGateway

REFERENCES = [
    {"index": 0, "reference": {"text": "42", "tool_calls": None}, "choices": ["A", "B", "C", "D"]},
    {"index": 1, "reference": {"text": None, "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}, "choices": None},
    {"index": 2, "reference": None, "choices": None},
]


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("control") / "references.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in REFERENCES))
    return path


@pytest.fixture(scope="module")
def oracle(references: Path) -> Iterator[RunningGateway]:
    route = {"kind": "control", "control": "oracle"}
    with RunningGateway(route, references=str(references)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def chance(references: Path) -> Iterator[RunningGateway]:
    route = {"kind": "control", "control": "random", "seed": 7, "references": str(references)}
    with RunningGateway(route) as gateway:
        yield gateway


def test_the_oracle_answers_by_the_key_and_never_by_the_prompt(oracle: RunningGateway) -> None:
    for prompt in ("what is it?", "task 1 please"):
        answer = oracle.ask(prompt, key=oracle.key(0))
        assert answer["choices"][0]["message"] == {"role": "assistant", "content": "42"}
    call = oracle.calls()[-1]
    assert (call["provider"], call["price_source"], call["cost_usd"]) == ("control", "control", None)
    assert call["usage"] == {"input": None, "output": None, "cached": None, "reasoning": None}
    assert call["model_served"] == "control/oracle"


def test_the_oracle_calls_the_reference_tools_and_then_stops(oracle: RunningGateway) -> None:
    key = oracle.key(1)
    choice = oracle.ask("add", key=key)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1}'}
    messages = [{"role": "user", "content": "add"}, {"role": "tool", "tool_call_id": "x", "content": "2"}]
    again = oracle.post(messages=messages, key=key).json()["choices"][0]
    assert again["finish_reason"] == "stop" and "tool_calls" not in again["message"]


def test_the_oracle_says_so_when_there_is_no_reference(oracle: RunningGateway) -> None:
    for index in (2, 99):
        response = oracle.post(prompt="?", key=oracle.key(index))
        assert response.status_code == 422 and f"task {index}" in response.json()["error"]["message"]


def test_a_proof_run_gets_the_reference_of_its_row_and_a_probe_gets_a_word(oracle: RunningGateway) -> None:
    assert oracle.ask("?", key=oracle.key(proof_index(0)))["choices"][0]["message"]["content"] == "42"
    assert oracle.ask("?", key=oracle.key(-1))["choices"][0]["message"]["content"] == "ready"


def test_the_oracle_streams_and_answers_at_every_door(oracle: RunningGateway) -> None:
    data = oracle.stream("?")
    assert data[-1] == "[DONE]"
    chunks = [json.loads(d)["choices"][0] for d in data[:-1]]
    assert "".join(c["delta"].get("content") or "" for c in chunks) == "42"
    assert oracle.post("/completions", prompt="?").json()["choices"][0]["text"] == "42"
    assert oracle.post("/responses", input="?").json()["output"][0]["content"][0]["text"] == "42"
    assert oracle.post("/embeddings", input="?").status_code == 400


def test_the_empty_control_says_nothing() -> None:
    with RunningGateway({"kind": "control", "control": "empty"}) as gateway:
        choice = gateway.ask("?")["choices"][0]
        assert choice["message"]["content"] == "" and choice["finish_reason"] == "stop"
        assert gateway.calls()[0]["finish_reason"] == "stop"


def test_chance_is_repeatable_and_differs_between_trials(chance: RunningGateway) -> None:
    def say(index: int, trial: int, attempt: int = 1) -> str:
        key = chance.key(index, trial=trial, attempt=attempt)
        text: str = chance.ask("?", key=key)["choices"][0]["message"]["content"]
        return text

    picks = [say(0, trial) for trial in range(20)]
    assert set(picks) <= {"A", "B", "C", "D"} and len(set(picks)) > 1
    assert picks == [say(0, trial, attempt=2) for trial in range(20)]
    assert say(2, 0) == say(2, 0) != say(2, 1)


def test_references_that_cannot_be_read_are_refused_before_ready(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"index": 0}\n{"no": 1}\n')
    route = {"kind": "control", "control": "oracle", "references": str(path)}
    with pytest.raises(TimeoutError, match="Line 2 of the references"), RunningGateway(route):
        pass

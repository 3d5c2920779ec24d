"""The client and the command against a whole Benchwright: launch, follow live, check the receipt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchwright_client import AsyncClient, Client
from benchwright_client.cli.main import main

from benchmarks.client import Api

LAUNCH = {"benchmark": "sample-arithmetic", "sample": {"limit": 6}}


def test_a_run_is_followed_from_its_first_event_to_its_last(api: Api) -> None:
    with Client(api.url, api.key) as client:
        run = client.runs.create(model="control/oracle", **LAUNCH)
        events = list(run.events())
        ended = run.wait()
    assert [e.seq for e in events] == list(range(ended.raw["last_seq"] + 1))
    assert events[-1].type == "PipelineFinished" and events[-1].digest == ended.raw["head_digest"]
    assert ended.score is not None and ended.score.accuracy == 1.0


async def test_the_awaited_client_follows_the_same(api: Api) -> None:
    async with AsyncClient(api.url, api.key) as client:
        run = await client.runs.create(model="control/empty", **LAUNCH)
        last = [event async for event in run.events()][-1]
        ended = await run.wait()
    assert last.digest == ended.raw["head_digest"]
    assert ended.score is not None and ended.score.accuracy == 0.0


def test_the_command_launches_watches_and_its_receipt_holds(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCHWRIGHT_URL", api.url)
    monkeypatch.setenv("BENCHWRIGHT_API_KEY", api.key)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    launch = ["run", "--benchmark", "sample-arithmetic", "--model", "control/random", "--sample", "4", "--trials", "2"]
    assert main([*launch, "--watch", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    receipt, log = tmp_path / "receipt.json", tmp_path / "events.jsonl"
    assert main(["runs", "receipt", run["id"], "--output", str(receipt), "--events", str(log)]) == 0
    assert main(["verify", str(receipt), str(log)]) == 0
    told = json.loads(receipt.read_text())["receipt"]
    assert told["log"]["head_digest"] == run["head_digest"]
    assert {box["isolation"] for box in told["sandboxes"]} == {"namespaces"}
    assert main(["doctor"]) == 0

"""Kill it anywhere: a run goes on, loses nothing settled and pays for nothing twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.client import ENDED, Api
from benchmarks.materialize import prepare
from tests.fakes.provider import FakeProvider, Request
from tests.stack import Stack

TASKS, KILLS, IN_FLIGHT = 1000, 5, 16


def workers() -> set[int]:
    """Process groups of Celery workers on this machine."""
    found = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            if b"celery" in line and b" worker " in line:
                found.add(os.getpgid(int(folder.name)))
        except OSError:
            continue
    return found


def of_stack(stack: Stack) -> set[int]:
    """Those of this stack: they carry its state folder in their environment."""
    mine = set()
    for group in workers():
        try:
            if str(stack.folder / "state").encode() in Path(f"/proc/{group}/environ").read_bytes():
                mine.add(group)
        except OSError:
            continue
    return mine


def answer(request: Request) -> str:
    """The sum that the prompt asks for."""
    words = request.prompt.split("What is ", 1)[-1].split("?")[0].split(" + ")
    return f"#### {int(words[0]) + int(words[1])}" if len(words) == 2 and words[0].isdigit() else "OK"


@pytest.mark.timeout(300)
def test_five_killed_workers_cost_no_settled_result_and_no_second_call(stack: Stack, api: Api) -> None:
    pinned = prepare(api, TASKS)
    dice = random.Random(7)
    with FakeProvider(answers=answer, latency_s=0.3) as provider:
        model = {"source": "endpoint", "identifier": "slow", "base_url": provider.base_url}
        run = api.launch(model=model, concurrency=IN_FLIGHT, **pinned)
        killed = 0
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            now = api.call("GET", f"/runs/{run['id']}")
            if now["display_status"] in ENDED:
                break
            if killed < KILLS and now["tasks"]["settled"] >= TASKS * killed // (KILLS + 1):
                groups = of_stack(stack)
                if groups:
                    time.sleep(dice.uniform(0, 1))  # the moment of the kill is random on purpose
                    for group in groups:
                        os.killpg(group, signal.SIGKILL)
                    killed += 1
            time.sleep(0.2)
        requests = len(provider.requests)
    now = api.call("GET", f"/runs/{run['id']}")
    assert (now["display_status"], killed) == ("ok", KILLS)
    results = api.events(run["id"], "MaterializeTaskResult")
    seen = Counter((e["data"]["index"], e["data"]["trial"]) for e in results)
    assert len(seen) == TASKS and set(seen.values()) == {1}
    assert len(api.events(run["id"], "MaterializeTaskAggregated")) == TASKS
    assert now["score"]["accuracy"] == 1.0
    assert requests <= TASKS + 1 + KILLS * IN_FLIGHT  # one call proved the model live
    leases = [e["data"]["epoch"] for e in api.events(run["id"], "PipelineStarted")]
    assert leases == sorted(set(leases)) and len(leases) > 1
    stack.manage("verify_run", run["id"])

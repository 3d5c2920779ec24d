"""Replays and forks in whole runs: what is taken over, what runs again, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.client import Api
from benchwright.embedded.client import ApiFailed
from tests.flows.test_bad_input import GOOD, ended, lines
from tests.stack import Stack

PHASES = ["find", "fetch", "analyze", "setup", "attach", "atomize", "materialize"]
KINDS = ("FetchArtifact", "AnalyzeArtifact", "DatasetTasksArtifact", "SetupArtifact", "AtomizeArtifact")


@pytest.fixture(scope="module")
def parent(api: Api, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An ended run over half of a file's rows."""
    folder: Path = tmp_path_factory.mktemp("reentry")
    return ended(api, folder, "reentry.jsonl", lines(GOOD), sample={"limit": 20, "seed": 3}, trials={"plan": {"k": 2}})


def started(api: Api, run: dict[str, Any]) -> list[str]:
    """The phases that worked, in order."""
    return [e["data"]["phase"] for e in api.events(run["id"], "PhaseStarted")]


def origins(api: Api, run: dict[str, Any]) -> dict[str, str]:
    """Where each artifact comes from."""
    return {e["type"]: e["data"]["origin"] for e in api.events(run["id"], ",".join(KINDS))}


def test_a_replay_of_the_same_model_is_the_same_experiment_and_only_measures_again(
    stack: Stack, api: Api, parent: dict[str, Any]
) -> None:
    run = api.wait(api.launch(replay=parent["id"])["id"], 60)
    assert run["display_status"] == "ok", run["error"]
    assert (run["fingerprint"], run["comparability_key"]) == (parent["fingerprint"], parent["comparability_key"])
    assert (run["tasks"]["selected"], run["trials"]) == (20, parent["trials"])
    assert started(api, run) == ["attach", "materialize"]
    assert set(origins(api, run).values()) == {"inherited"}
    assert run["parent_id"] == parent["id"]
    stack.manage("verify_run", run["id"])


def test_a_replay_keeps_the_task_list_of_its_reference_when_the_subset_has_moved_on(
    api: Api, parent: dict[str, Any], stack: Stack
) -> None:
    code = (
        "from registry.models import Subset; from registry.actions import save_subset;"
        f"s = Subset.objects.get(pk={parent['subset_id']!r});"
        "save_subset(s.benchmark, s.name, [{'row': {'question': 'new', 'answer': '1'}, 'reference': None,"
        " 'choices': None}], field_map=s.field_map)"
    )
    stack.manage("shell", "-c", code)
    run = api.wait(api.launch(replay=parent["id"], model="control/empty")["id"], 60)
    assert (run["display_status"], run["tasks"]["selected"]) == ("ok", 20), run["error"]
    assert run["comparability_key"] == parent["comparability_key"] and run["fingerprint"] != parent["fingerprint"]


@pytest.mark.parametrize("phase", PHASES)
def test_a_fork_does_the_rewound_phase_and_what_follows_and_takes_the_rest_over(
    stack: Stack, api: Api, parent: dict[str, Any], phase: str
) -> None:
    run = api.wait(api.launch(fork=parent["id"], rewind_to=phase, instructions="Small sums, please.")["id"], 60)
    assert run["display_status"] == "ok", run["error"] or run["halt_reason"]
    assert (run["score"]["accuracy"], run["parent_id"]) == (1.0, parent["id"])
    log = api.events(run["id"])
    assert [e["seq"] for e in log] == list(range(len(log))) and log[0]["type"] == "RunLaunched"
    again = PHASES[PHASES.index(phase) :]
    expected = ["fork", *sorted({*again, "attach", "materialize"}, key=PHASES.index)]
    assert started(api, run) == expected
    kept = Counter(origins(api, run).values())["inherited"]
    assert kept == {"find": 0, "fetch": 0, "analyze": 1, "setup": 3, "attach": 4, "atomize": 4, "materialize": 5}[phase]
    stack.manage("verify_run", run["id"])


def test_a_fork_of_a_fork_with_overrides_measures_other_rows_and_another_model(
    api: Api, parent: dict[str, Any]
) -> None:
    first = api.wait(api.launch(fork=parent["id"], rewind_to="atomize")["id"], 60)
    overrides = {"model": "control/empty", "sample": {"indices": [1, 2, 3]}, "trials": {"plan": {"k": 1}}}
    run = api.wait(api.launch(fork=first["id"], overrides=overrides)["id"], 60)
    assert (run["display_status"], run["tasks"]["selected"], run["score"]["accuracy"]) == ("ok", 3, 0.0)
    (resolved,) = api.events(run["id"], "ForkResolved")
    assert resolved["data"]["rewind_to"] == "materialize"
    assert set(resolved["data"]["overrides"]) == set(overrides)


def test_a_run_in_error_is_forked_where_it_failed_and_not_later(api: Api, tmp_path: Path) -> None:
    lost = {"source": "endpoint", "identifier": "m", "base_url": "http://127.0.0.1:9/v1"}
    failed = ended(api, tmp_path, "lost.jsonl", lines(GOOD), model=lost)
    assert (failed["display_status"], failed["error"]["phase"]) == ("error", "attach")
    with pytest.raises(ApiFailed, match="never finished atomize"):
        api.launch(replay=failed["id"])
    run = api.wait(api.launch(fork=failed["id"], model="control/oracle")["id"], 60)
    assert (run["display_status"], run["score"]["accuracy"]) == ("ok", 1.0)
    assert started(api, run) == ["fork", "attach", "atomize", "materialize"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"fork": "", "rewind_to": "atomise"}, "atomize"),
        ({"replay": "", "sample": {"limit": 3}}, "from its reference"),
        ({"replay": "", "rewind_to": "setup"}, "goes with fork"),
        ({"fork": "", "overrides": {"modle": "control/empty"}}, "Did you mean 'model'"),
        ({"fork": "", "overrides": {"sample": {"indices": [900]}}}, "no index 900"),
        ({"fork": "", "source": "https://example.com/x.csv", "rewind_to": "fetch"}, "rewind_to to 'find'"),
        ({"fork": "", "prompt": "other words"}, "instructions"),
    ],
)
def test_what_a_reference_pins_is_refused_by_name(
    api: Api, parent: dict[str, Any], body: dict[str, Any], says: str
) -> None:
    given = {k: v or parent["id"] for k, v in body.items()}
    with pytest.raises(ApiFailed, match=says):
        api.launch(**given)

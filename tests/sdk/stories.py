"""Runs with a whole story in their log, for receipts, exports and the client."""

from __future__ import annotations

from typing import Any

from runs.events.log import append
from runs.events.types.artifact import AtomizeArtifact, DatasetTasksArtifact, FetchArtifact, SetupArtifact
from runs.events.types.base import Usage
from runs.events.types.materialize import MaterializeResponse
from runs.events.types.run import PipelineFinished, PipelineStarted
from runs.events.types.sandbox import SandboxCreated, SandboxKilled
from runs.models import Run
from tests.factories.runs import make_run, settled, sweep_started

SCORES = (1.0, 0.0, 1.0, None, 1.0, 0.5)


def told_run(cost: str | None = "0.000123", **given: Any) -> Run:
    """An ended run of eight tasks with six settled: three passed, two failed, one error. `cost`: of each call."""
    return tell(make_run(**given), cost)


def tell(run: Run, cost: str | None = "0.000123") -> Run:
    """The same story in the log of a launched run."""
    setup = SetupArtifact(
        python="3.11.7", scoring_version="1", scoring_digest="d" * 64, requirements=[], snapshot_id=None
    )
    scorer = AtomizeArtifact(
        invocation=1, impl_id="sums:default:1", sha256="a" * 64, source="class TaskImpl: ...", proof={}
    )
    box = SandboxCreated(
        sandbox_id=f"box-{run.pk}",
        backend="local",
        size={},
        metadata={"benchwright_role": "work", "isolation": "namespaces"},
    )
    append(
        run.pk,
        [
            PipelineStarted(epoch=1),
            FetchArtifact(sources=[{"name": "sums.jsonl", "sha256": "b" * 64, "bytes": 10}]),
            DatasetTasksArtifact(subset_id="sums/default", snapshot_digest="c" * 64, count=8, selected=None),
            setup,
            scorer,
            box,
            sweep_started(8),
        ],
    )
    append(run.pk, [MaterializeResponse(invocation=1, index=0, trial=0, attempt=1, prompt="?", response="1",
                                        usage=_usage(cost))])  # fmt: skip
    for index, score in enumerate(SCORES):
        said: dict[str, Any] = {
            "prompt": [{"role": "user", "content": f"=cmd|'/C calc'!A{index} \x1b[31m"}],
            "response": {"text": f"@answer {index}\ud800", "tool_calls": None},
            "target": "+1",
            "extracted": index,
            "rule": "last number",
            "usage": None if index == 0 else _usage(cost),
            "error": None if score is not None else {"kind": "scorer", "type": "KeyError", "message": "-x"},
        }
        append(run.pk, settled(index, score, **said))
    killed = SandboxKilled(
        sandbox_id=f"box-{run.pk}", duration_ms=1500, reason="ended", usage=Usage(pays="sandbox", cost_usd="0")
    )
    append(run.pk, [killed, PipelineFinished(status="ok", duration_ms=2500)])
    run.refresh_from_db()
    return run


def _usage(cost: str | None) -> Usage:
    return Usage(
        pays="model",
        requests=1,
        input=10,
        output=5,
        cost_usd=cost,
        unknown_cost_calls=0 if cost is not None else 1,
        priced_at="table-1",
        model_served="m-1",
    )

"""The stored projections, moved on by each batch of events in the transaction that adds them.

`rebuild` feeds the whole log through the same function, so stored and rebuilt can't differ by design; `verify_run`
checks that they don't.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from runs.vocabulary import Outcome

Row = tuple[int, str, dict[str, Any]]  # (seq, type, data)


def project(cursor: CursorWrapper, run_id: UUID, rows: Sequence[Row], at: datetime) -> None:
    """Applies the events to `traces`, `trace_tasks`, `sandboxes` and `snapshots`. Costs are the database trigger's."""
    fields: dict[str, Any] = {}
    tasks: dict[tuple[int, int], dict[str, Any]] = {}
    for seq, kind, data in rows:
        match kind:
            case "MaterializeTaskResult":
                task = tasks.setdefault((data["invocation"], data["index"]), {"trials": []})
                task["trials"].append(
                    {"trial": data["trial"], "seq": seq, "score": data["score"], "outcome": data["outcome"]}
                )
                task["latency"] = data["latency_ms"]
            case "MaterializeTaskAggregated":
                task = tasks.setdefault((data["invocation"], data["index"]), {"trials": []})
                task["outcome"], task["score"] = data["outcome"], data["score"]
            case "SandboxCreated":
                cursor.execute(
                    "INSERT INTO sandboxes (id, run_id, role, backend, size, created_at, reason)"
                    " VALUES (%s,%s,%s,%s,%s,%s,'') ON CONFLICT (id) DO NOTHING",
                    [
                        data["sandbox_id"],
                        run_id,
                        data["metadata"].get("benchwright_role", ""),
                        data["backend"],
                        json.dumps(data["size"]),
                        at,
                    ],
                )
            case "SandboxKilled":
                cost = (data["usage"] or {}).get("cost_usd")
                cursor.execute(
                    "UPDATE sandboxes SET killed_at = created_at + %s * interval '1 millisecond',"
                    " reason = %s, cost_usd = %s WHERE id = %s",
                    [data["duration_ms"], data["reason"][:200], cost, data["sandbox_id"]],
                )
            case "SnapshotCreated":
                cursor.execute(
                    "INSERT INTO snapshots (id, run_id, phase, digest, size, created_at) VALUES (%s,%s,%s,%s,%s,%s)"
                    " ON CONFLICT (id) DO NOTHING",
                    [data["snapshot_id"], run_id, data["phase"], data["digest"], data["bytes"], at],
                )
            case _:
                _run_fields(kind, data, fields, at)
        if kind == "MaterializeStarted":
            fields.update(
                invocation=data["invocation"],
                tasks_selected=data["tasks"],
                tasks_passed=0,
                tasks_failed=0,
                tasks_errored=0,
                score_sum=0.0,
                score_squares=0.0,
            )
    if fields:
        assignments = ", ".join(f"{name} = %s" for name in fields)
        cursor.execute(f"UPDATE traces SET {assignments} WHERE id = %s", [*fields.values(), run_id])
    if tasks:
        _tasks(cursor, run_id, tasks)


def _run_fields(kind: str, data: dict[str, Any], fields: dict[str, Any], at: datetime) -> None:
    match kind:
        case "PhaseStarted":
            fields["phase"] = data["phase"]
        case "PipelineFinished":
            fields.update(status=data["status"], finished_at=at)
        case "PipelineStarted":
            fields.update(status="running", finished_at=None)
        case "HaltRequested":
            fields.update(halted=True, halt_reason=data["reason"])
        case "HaltCleared":
            fields.update(halted=False, halt_reason="", status="running", finished_at=None)
        case "VisibilityChanged":
            fields["visibility"] = data["visibility"]
        case "BenchmarkResolved":
            fields["benchmark_id"] = data["benchmark_id"]
        case "DatasetTasksArtifact":
            fields.update(
                subset_id=data["subset_id"],
                tasks_selected=len(data["selected"]) if data["selected"] is not None else data["count"],
            )
        case "AtomizeArtifact":
            fields["impl_id"] = data["impl_id"]


def _tasks(cursor: CursorWrapper, run_id: UUID, tasks: dict[tuple[int, int], dict[str, Any]]) -> None:
    keys = list(tasks)
    values = [tasks[k] for k in keys]
    cursor.execute(
        """
        WITH given AS (
          SELECT * FROM unnest(%s::int[], %s::int[], %s::text[], %s::float8[], %s::jsonb[], %s::float8[])
            AS g(invocation, index, outcome, score, trials, latency)
        )
        INSERT INTO trace_tasks AS t (run_id, invocation, index, outcome, score, trials, latency_ms)
        SELECT %s, invocation, index, coalesce(outcome, 'running'), score, trials, latency FROM given
        ON CONFLICT (run_id, invocation, index) DO UPDATE SET
          outcome = CASE WHEN EXCLUDED.outcome = 'running' THEN t.outcome ELSE EXCLUDED.outcome END,
          score = CASE WHEN EXCLUDED.outcome = 'running' THEN t.score ELSE EXCLUDED.score END,
          trials = t.trials || EXCLUDED.trials, latency_ms = coalesce(EXCLUDED.latency_ms, t.latency_ms)
        """,
        [
            [k[0] for k in keys],
            [k[1] for k in keys],
            [v.get("outcome") for v in values],
            [v.get("score") for v in values],
            [json.dumps(v["trials"]) for v in values],
            [v.get("latency") for v in values],
            run_id,
        ],
    )
    settled = [v for v in values if "outcome" in v]
    if settled:
        scores = [v["score"] for v in settled if v["score"] is not None]
        cursor.execute(
            "UPDATE traces SET tasks_passed = tasks_passed + %s, tasks_failed = tasks_failed + %s,"
            " tasks_errored = tasks_errored + %s, score_sum = score_sum + %s, score_squares = score_squares + %s"
            " WHERE id = %s",
            [
                sum(v["outcome"] == Outcome.PASS for v in settled),
                sum(v["outcome"] == Outcome.FAIL for v in settled),
                sum(v["outcome"] == Outcome.ERR for v in settled),
                sum(scores),
                sum(s * s for s in scores),
                run_id,
            ],
        )

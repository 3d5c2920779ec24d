"""The JSON of v1, written by hand: the shape of the API does not move when a model does."""

from __future__ import annotations

from typing import Any

from benchwright.lib.clock import stamp
from benchwright.lib.money import text
from runs.events.log import LogRow
from runs.models import Run, TaskRow
from runs.projections.phases import PhaseView
from runs.projections.receipt import score_json
from runs.queries.run_detail import CostView, RunDetail, cost_view, model_view, score_of
from runs.queries.task_detail import TaskDetail


def run_json(d: RunDetail, base_url: str) -> dict[str, Any]:
    """One run in full."""
    return {
        "id": str(d.id),
        "title": d.title,
        "url": f"{base_url}{d.url}",
        "status": d.status,
        "display_status": d.display_status,
        "halt_reason": d.halt_reason or None,
        "mode": d.mode,
        "parent_id": str(d.parent_id) if d.parent_id else None,
        "rewind_to": d.rewind_to or None,
        "prompt": d.prompt or None,
        "created_at": stamp(d.created_at),
        "finished_at": stamp(d.finished_at) if d.finished_at else None,
        "duration_ms": d.duration_ms,
        "model": {
            "source": d.model.source,
            "identifier": d.model.identifier,
            "label": d.model.label,
            "control": d.model.control,
            "base_url": d.model.base_url,
            "params": d.model.params,
        },
        "driver": d.driver,
        "harness": d.harness,
        "backend": d.backend,
        "benchmark_id": d.benchmark.id if d.benchmark else None,
        "subset_id": d.subset.id if d.subset else None,
        "impl_id": d.impl.id if d.impl else None,
        "visibility": d.visibility,
        "concurrency": d.concurrency,
        "trials": {"k": d.trials.k, "aggregator": d.trials.aggregator},
        "limits": d.limits,
        "metadata": d.metadata,
        "phases": [phase_json(p) for p in d.phases],
        "tasks": {
            "total": d.tasks.total,
            "selected": d.tasks.selected,
            "settled": d.tasks.settled,
            "passed": d.tasks.passed,
            "failed": d.tasks.failed,
            "errored": d.tasks.errored,
            "running": d.tasks.running,
        },
        "score": score_json(d.score),
        "cost": cost_json(d.cost),
        "fingerprint": d.fingerprint or None,
        "fingerprint_sha256": d.fingerprint_sha256 or None,
        "comparability_key": d.comparability_key or None,
        "head_digest": d.head_digest,
        "last_seq": d.last_seq,
        "review_reason": d.review_reason or None,
        "error": {"phase": d.error.phase, "type": d.error.type, "detail": d.error.detail, "hint": d.error.hint}
        if d.error
        else None,
    }


def run_row_json(run: Run, base_url: str) -> dict[str, Any]:
    """One run in a list."""
    m = model_view(run)
    return {
        "id": str(run.pk),
        "title": run.title,
        "url": f"{base_url}/runs/{run.pk}/",
        "status": run.status,
        "display_status": run.display_status.value,
        "halt_reason": run.halt_reason or None,
        "mode": run.mode,
        "created_at": stamp(run.created_at),
        "finished_at": stamp(run.finished_at) if run.finished_at else None,
        "model": {"source": m.source, "identifier": m.identifier, "label": m.label, "control": m.control},
        "benchmark_id": run.benchmark_id,
        "subset_id": run.subset_id,
        "impl_id": run.impl_id,
        "visibility": run.visibility,
        "score": score_json(score_of(run)),
        "cost": cost_json(cost_view(run)),
        "metadata": run.metadata,
    }


def phase_json(p: PhaseView) -> dict[str, Any]:
    """One phase."""
    return {
        "phase": p.name,
        "status": p.status,
        "duration_ms": p.duration_ms,
        "started_at": stamp(p.started_at) if p.started_at else None,
        "cache_hit": p.cache_hit,
        "restarts": p.restarts,
        "invocation": p.invocation,
        "note": p.note or None,
    }


def cost_json(c: CostView) -> dict[str, Any]:
    """Dollars as exact text; null is unknown."""
    names = ("driver", "model", "sandbox", "narration", "judge", "billed", "incurred", "proxy_linger")
    return {
        **{f"{n}_usd": text(getattr(c, n)) for n in names},
        "unknown": c.unknown,
        "unknown_calls": c.unknown_calls,
        "tokens_in": c.tokens_in,
        "tokens_out": c.tokens_out,
        "requests": c.requests,
    }


def event_json(row: LogRow) -> dict[str, Any]:
    """One event, exact."""
    return {"seq": row.seq, "type": row.type, "at": stamp(row.at), "data": row.data, "digest": row.digest}


def task_row_json(row: TaskRow) -> dict[str, Any]:
    """One task in a list."""
    return {
        "index": row.index,
        "invocation": row.invocation,
        "outcome": row.outcome,
        "score": row.score,
        "trials": [
            {"trial": t["trial"], "score": t["score"], "outcome": t["outcome"], "seq": t["seq"]} for t in row.trials
        ],
        "latency_ms": row.latency_ms,
    }


def task_json(d: TaskDetail) -> dict[str, Any]:
    """One task in full."""
    from dataclasses import asdict

    return {
        "index": d.index,
        "invocation": d.invocation,
        "outcome": d.outcome,
        "score": d.score,
        "aggregator": d.aggregator,
        "trials": [asdict(t) for t in d.trials],
    }

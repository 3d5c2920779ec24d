"""Throw the stored rows away and fold again; and say where stored and folded differ."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from django.db import connection, transaction

from benchwright.lib.money import usd
from runs.events.chain import broken_links
from runs.events.log import raw, read
from runs.fingerprints.identity import identity_of
from runs.models import Run, SandboxRow, SnapshotRow, TaskRow
from runs.projections.apply import project

PROJECTED = (
    "status",
    "halted",
    "halt_reason",
    "phase",
    "invocation",
    "benchmark_id",
    "subset_id",
    "impl_id",
    "visibility",
    "tasks_selected",
    "tasks_passed",
    "tasks_failed",
    "tasks_errored",
    "score_sum",
    "score_squares",
    "cost_driver",
    "cost_model",
    "cost_sandbox",
    "cost_narration",
    "cost_judge",
    "cost_proxy_linger",
    "unknown_cost_calls",
    "tokens_in",
    "tokens_out",
    "requests",
    "finished_at",
)
_FRESH: dict[str, Any] = {
    "status": "running",
    "halted": False,
    "halt_reason": "",
    "phase": "",
    "invocation": 0,
    "benchmark_id": None,
    "subset_id": None,
    "impl_id": None,
    "tasks_selected": None,
    "tasks_passed": 0,
    "tasks_failed": 0,
    "tasks_errored": 0,
    "score_sum": 0.0,
    "score_squares": 0.0,
    "finished_at": None,
}
_COLUMN = {
    "driver": "cost_driver",
    "model": "cost_model",
    "sandbox": "cost_sandbox",
    "narration": "cost_narration",
    "judge": "cost_judge",
    "proxy_linger": "cost_proxy_linger",
}


@transaction.atomic
def rebuild(run: Run) -> None:
    """Every projection of this run, from its log alone."""
    Run.objects.select_for_update().get(pk=run.pk)
    for model in (TaskRow, SandboxRow, SnapshotRow):
        model.objects.filter(run_id=run.pk).delete()
    fresh = dict(_FRESH)
    fresh.update(
        dict.fromkeys(_COLUMN.values(), Decimal(0)), unknown_cost_calls=0, tokens_in=0, tokens_out=0, requests=0
    )
    Run.objects.filter(pk=run.pk).update(**fresh)
    sums: dict[str, Any] = {name: Decimal(0) for name in _COLUMN.values()}
    counts = dict.fromkeys(("unknown_cost_calls", "tokens_in", "tokens_out", "requests"), 0)
    batch: list[tuple[int, str, dict[str, Any]]] = []
    artifacts: list[tuple[str, dict[str, Any]]] = []
    at = None
    with connection.cursor() as cursor:
        for row in read(run.pk):
            if at is not None and row.at != at:
                project(cursor, run.pk, batch, at)
                batch = []
            at = row.at
            batch.append((row.seq, row.type, row.data))
            _add_usage(row.data.get("usage"), sums, counts)
            if row.type.endswith("Artifact"):
                artifacts.append((row.type, row.data))
        if at is not None:
            project(cursor, run.pk, batch, at)
    update: dict[str, Any] = {**sums, **counts}
    row_now = Run.objects.get(pk=run.pk)
    if row_now.status != "running":
        identity = identity_of(artifacts, trials=run.trials_config, limits=run.limits)
        update.update(
            fingerprint=identity.fingerprint[:12],
            fingerprint_sha256=identity.fingerprint,
            comparability_key=identity.comparability_key,
        )
    Run.objects.filter(pk=run.pk).update(**update)


def _add_usage(usage: Any, sums: dict[str, Any], counts: dict[str, int]) -> None:
    if not isinstance(usage, dict):
        return
    column = _COLUMN.get(usage.get("pays", ""))
    if column:
        sums[column] += usd(usage.get("cost_usd")) or Decimal(0)
    for name, key in (
        ("unknown_cost_calls", "unknown_cost_calls"),
        ("tokens_in", "input"),
        ("tokens_out", "output"),
        ("requests", "requests"),
    ):
        counts[name] += usage.get(key) or 0


def differences(run: Run) -> Iterator[str]:
    """Every way in which the log is broken or a stored projection is not what its log says."""
    yield from broken_links(raw(run.pk))
    stored = _picture(run)
    with transaction.atomic():
        point = transaction.savepoint()
        rebuild(run)
        folded = _picture(run)
        transaction.savepoint_rollback(point)
    for name in stored:
        if not _same(stored[name], folded[name]):
            yield f"{name}: stored {_brief(stored[name])}, from the log {_brief(folded[name])}"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-9 * max(1.0, abs(a))
    return bool(a == b)


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) < 200 else text[:200] + "…"


def _picture(run: Run) -> dict[str, Any]:
    row = Run.objects.get(pk=run.pk)
    out = {name: getattr(row, name) for name in (*PROJECTED, "fingerprint", "fingerprint_sha256", "comparability_key")}
    out["tasks"] = list(
        TaskRow.objects.filter(run_id=run.pk)
        .order_by("invocation", "index")
        .values_list("invocation", "index", "outcome", "score", "trials")
    )
    out["sandboxes"] = list(
        SandboxRow.objects.filter(run_id=run.pk).order_by("id").values_list("id", "role", "killed_at", "cost_usd")
    )
    out["snapshots"] = list(
        SnapshotRow.objects.filter(run_id=run.pk).order_by("id").values_list("id", "phase", "digest")
    )
    return out

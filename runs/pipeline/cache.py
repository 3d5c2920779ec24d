"""Phases that others already did: look a cell up, copy it in, record a new one."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from benchwright.lib.canonical import digest
from registry.vocabulary import Visibility
from runs.events.log import LogRow, read_one
from runs.models import PhaseCell
from runs.phases.base import Done
from runs.pipeline.context import Context


def cell_key(ctx: Context, phase: str, inputs: Any) -> str:
    """The hash of a phase's inputs. The backend is in it, for a snapshot of one is worth nothing to another."""
    return digest({"phase": phase, "backend": ctx.run.backend, "inputs": inputs})


def look_up(ctx: Context, phase: str, key: str) -> tuple[PhaseCell, LogRow] | None:
    """The newest cell of a public run or of this account, with the artifact event it points at."""
    cells = PhaseCell.objects.filter(
        Q(account_id=ctx.run.account_id) | Q(run__visibility=Visibility.PUBLIC), phase=phase, input_hash=key
    ).order_by("-created_at")
    for cell in cells[:3]:
        row = read_one(cell.run_id, cell.seq)
        if row is not None:
            return cell, row
    return None


def record(ctx: Context, phase: str, outcome: Done, seq: int) -> None:
    """Keeps the finished phase for others; a copied one is already kept."""
    if outcome.cell is None or outcome.cache_hit is not None or outcome.artifact is None:
        return
    PhaseCell.objects.create(
        phase=phase,
        input_hash=outcome.cell,
        account_id=ctx.run.account_id,
        run=ctx.run,
        seq=ctx.state.artifact_seqs[outcome.artifact],
        snapshot_id=ctx.state.snapshots.get(phase, ""),
    )


def hit(cell: PhaseCell) -> dict[str, Any]:
    """What `PhaseCompleted.cache_hit` says."""
    return {"run": str(cell.run_id), "seq": cell.seq}

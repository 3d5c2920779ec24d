"""The loop: the next phase from the log, run it, repeat. It keeps nothing in memory that matters."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from uuid import UUID

from django.db import Error

from benchwright.lib.errors import BenchwrightError
from runs.errors import StaleWorker
from runs.events.types.phase import PhaseCompleted, PhaseFailed
from runs.events.types.run import PipelineFinished, PipelineStarted
from runs.limits.halt import request_halt
from runs.models import Run
from runs.phases.base import Work
from runs.phases.table import PHASES
from runs.pipeline.cache import record
from runs.pipeline.context import Context, Halted, NeedsReview
from runs.pipeline.lease import Lease, claim
from runs.pipeline.seal import seal_identity
from runs.vocabulary import PAUSE_REASON, WAIT_REASONS, RunStatus, halt_is

log = logging.getLogger(__name__)


def run_pipeline(run_id: UUID) -> None:
    """Works on the run until it has ended or is halted. Returns at once when another worker holds it."""
    epoch = claim(run_id)
    if epoch is None:
        return
    run = Run.objects.select_related("account", "user").get(pk=run_id)
    with Lease(run_id, epoch) as lease, contextlib.suppress(StaleWorker):
        _work(Context(run, lease))


def _work(ctx: Context) -> None:
    parked = ctx.lease.look()
    if parked and halt_is(parked, (PAUSE_REASON, *WAIT_REASONS)):
        return
    ctx.emit(PipelineStarted(epoch=ctx.lease.epoch))
    try:
        for phase, work in PHASES:
            if phase in ctx.state.done:
                continue
            ctx.lease.look()
            ctx.stop_if_halted()
            _phase(ctx, phase, work)
        ctx.close("finished")
        _end(ctx, RunStatus.OK)
    except Halted as halted:
        _halt(ctx, halted.reason)
    except NeedsReview as ask:
        with contextlib.suppress(BenchwrightError):
            request_halt(ctx.run, f"agent_review: {ask.reason}", by="driver", epoch=ctx.lease.epoch)
        ctx.close("waiting")
    except (StaleWorker, Error):
        raise  # another worker goes on, or this one does when the database is back
    except BenchwrightError as e:
        _fail(ctx, e.code, e.message, e.hint, None)
    except Exception as e:
        log.exception("run %s failed", ctx.run.pk)
        _fail(
            ctx,
            type(e).__name__,
            str(e) or type(e).__name__,
            "This is a fault of Benchwright, not of your run.",
            traceback.format_exc(limit=12),
        )


def _phase(ctx: Context, phase: str, work: Work) -> None:
    started = time.monotonic()
    outcome = work(ctx)
    if outcome is None:
        return  # nothing to do in this kind of run: the log stays silent
    ms = (time.monotonic() - started) * 1000
    seq = ctx.emit(PhaseCompleted(phase=phase, duration_ms=round(ms, 1), cache_hit=outcome.cache_hit))
    record(ctx, phase, outcome, seq)


def _end(ctx: Context, status: RunStatus) -> None:
    """The last event, after the identity is on the row."""
    seal_identity(ctx)
    age = (time.time() - ctx.run.created_at.timestamp()) * 1000
    ctx.emit(PipelineFinished(status=status.value, duration_ms=round(age, 1)))


def _halt(ctx: Context, reason: str) -> None:
    """A pause keeps its snapshots and can go on; anything else ends the run with what is settled."""
    ctx.close("halted")
    if not halt_is(reason, (PAUSE_REASON, *WAIT_REASONS)):
        _end(ctx, RunStatus.ERROR)


def _fail(ctx: Context, kind: str, detail: str, hint: str | None, stack: str | None) -> None:
    phase = ctx.state.started or ctx.run.phase or "find"
    ctx.emit(PhaseFailed(phase=phase, error_type=kind, detail=detail[:4000], hint=hint, stack_trace=stack))
    try:
        ctx.close("failed")
    except BenchwrightError as e:
        log.warning("run %s: sandboxes are left to the reaper (%s)", ctx.run.pk, e.message)
    _end(ctx, RunStatus.ERROR)

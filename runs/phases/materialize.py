"""Materialize: k trials of every task, in the sandbox, into the log."""

from __future__ import annotations

import json
from typing import Any

from benchwright.lib.canonical import canonical
from registry.queries import snapshot_rows
from runs.errors import PhaseFailed
from runs.events.bodies import unfold_body
from runs.events.log import read
from runs.events.types.materialize import MaterializeStarted
from runs.phases.atomize import IMPL_PATH
from runs.phases.attach import connect
from runs.phases.base import Done
from runs.phases.setup import SITE
from runs.phases.tasks import snapshot_of
from runs.pipeline.context import Context, Halted
from runs.scorer.mode import scorer_mode
from runs.scorer.sweep import Plan, Sweep
from runs.vocabulary import Phase
from sandboxes.backends.base import Exec, Sandbox
from sandboxes.errors import ExecNotFound, SandboxLost
from sandboxes.model_proxy.keys import make_key

MAX_GUESTS = 20  # times the runner inside may end early before the run is given up
ATTEMPTS_PER_GUEST = (
    100  # each new runner numbers its attempts on from here, so that calls are never taken for another's
)


def materialize(ctx: Context) -> Done | None:
    """Sweeps what the log does not have yet. Raises Halted with everything settled written down."""
    trials = ctx.run.trials_config
    tasks = ctx.state.artifacts["DatasetTasksArtifact"]
    indices = tasks["selected"] if tasks["selected"] is not None else range(tasks["count"])
    if ctx.state.sweeping:
        invocation = ctx.state.invocation
    else:
        ctx.start(Phase.MATERIALIZE)
        invocation = ctx.state.invocation + 1
        ctx.emit(
            MaterializeStarted(
                invocation=invocation,
                mode=scorer_mode(ctx.run.harness, ctx.run.backend),
                tasks=len(indices),
                trials=trials["plan"]["k"],
                concurrency=ctx.run.concurrency,
            )
        )
    plan = _plan(ctx, invocation, set(indices))
    sweep = Sweep(plan, ctx.emit, ctx.stop_if_halted, ctx.halt_at)
    for _ in range(MAX_GUESTS):
        if plan.complete:
            break
        try:
            work, gateway = connect(ctx)
            if _follow_guests(ctx, sweep, work, gateway):
                break
        except SandboxLost:
            for live in list(ctx.state.sandboxes.values()):
                _check_alive(ctx, live.id)
    else:
        raise PhaseFailed(
            f"The runner inside the sandbox ended {MAX_GUESTS} times with tasks left.",
            code="runner_failed",
            hint="See the scorer's log; memory is the usual reason.",
        )
    sweep.finish_aggregates()
    return Done()


def _plan(ctx: Context, invocation: int, indices: set[int]) -> Plan:
    """What the log says is settled; a dead worker's results count, its unwritten ones are read from the sandbox
    again.
    """
    plan = Plan(invocation, indices, ctx.run.trials_config["plan"]["k"], ctx.run.trials_config["aggregator"])
    kinds = ("MaterializeTaskResult", "MaterializeTaskAggregated", "MaterializeResponse")
    for row in read(ctx.run.pk, types=kinds):
        data = row.data
        if data["invocation"] != invocation:
            continue
        if row.type == "MaterializeTaskResult":
            key = (data["index"], data["trial"])
            plan.responses.pop(key, None)
            plan.settled[key] = {
                "trial": data["trial"],
                "score": data["score"],
                "outcome": data["outcome"],
                "meta": unfold_body(data["score_meta"]) or {},
                "extracted": unfold_body(data["extracted"]),
            }
        elif row.type == "MaterializeTaskAggregated":
            plan.aggregated.add(data["index"])
        else:
            plan.responses[(data["index"], data["trial"])] = {
                "attempt": data["attempt"],
                "prompt": unfold_body(data["prompt"]),
                "response": unfold_body(data["response"]),
                "finish_reason": data["finish_reason"],
                "latency_ms": data["latency_ms"],
            }
    return plan


def _follow_guests(ctx: Context, sweep: Sweep, work: Sandbox, gateway: Exec) -> bool:
    """First what earlier runners of this sandbox left on their spools, then a new one for the rest."""
    number, guest = 0, None
    try:
        while True:
            number += 1
            guest = _reattach(work, _guest_id(sweep.plan, number))
            if guest is None:
                break
            if _follow(sweep, guest, gateway, number):
                return True
        guest = _start(ctx, sweep.plan, work, number)
        return _follow(sweep, guest, gateway, number)
    except Halted as halted:
        if guest is not None:
            guest.kill()
        sweep.close(gateway, halted.reason)
        raise


def _follow(sweep: Sweep, guest: Exec, gateway: Exec, number: int) -> bool:
    try:
        return sweep.follow(guest, gateway, base_attempt=(number - 1) * ATTEMPTS_PER_GUEST)
    finally:
        if not guest.ended:
            guest.close()


def _reattach(work: Sandbox, exec_id: str) -> Exec | None:
    try:
        return work.reattach(exec_id)
    except ExecNotFound:
        return None


def _guest_id(plan: Plan, number: int) -> str:
    return f"sweep-{plan.invocation}-{number}"


def _start(ctx: Context, plan: Plan, work: Sandbox, number: int) -> Exec:
    """A runner for what is left. Stored responses travel along: they are only scored."""
    folder = f"/workspace/.bw/{_guest_id(plan, number)}"
    rows = {}
    wanted = {i for i, _ in plan.left}
    for index, task in enumerate(snapshot_rows(snapshot_of(ctx))):
        if index in wanted:
            rows[index] = task["row"]
    attempts = int(ctx.run.limits.get("task", {}).get("attempts", 1))
    secret, run = bytes(ctx.run.key_secret), str(ctx.run.pk)
    base = (number - 1) * ATTEMPTS_PER_GUEST
    lines = []
    for index, trial in plan.left:
        line: dict[str, Any] = {
            "index": index,
            "trial": trial,
            "row": rows[index],
            "keys": [make_key(secret, run, plan.invocation, index, trial, base + a) for a in range(1, attempts + 4)],
        }
        if (stored := plan.responses.get((index, trial))) is not None:
            line["response"] = {**stored, "attempt": 1}
        lines.append(canonical(line))
    work.write(f"{folder}/tasks.jsonl", "\n".join(lines).encode())
    work.write(IMPL_PATH, ctx.state.artifacts["AtomizeArtifact"]["source"].encode())
    attempt_seconds = ctx.run.limits.get("attempt", {}).get("duration", 600)
    job = {
        "impl": IMPL_PATH,
        "tasks": f"{folder}/tasks.jsonl",
        "concurrency": ctx.run.concurrency,
        "base_url": "http://127.0.0.1:4000/v1",
        "attempt_seconds": attempt_seconds,
        # Programs under test run a few at a time; with many in flight the last one waits for the others.
        "score_seconds": max(60, 4 * ctx.run.concurrency),
        "memory_mb": 900,
        "invocation": plan.invocation,
        "max_attempts": attempts,
        "task_seconds": ctx.run.limits.get("task", {}).get("duration"),
        "path": ["/opt/benchwright", SITE],
    }
    work.write(f"{folder}/job.json", json.dumps(job).encode())
    return work.start(
        ["/bin/sh", "-c", f'exec "$BW_PYTHON" -I /opt/benchwright/guest/run_tasks.py {folder}/job.json'],
        exec_id=_guest_id(plan, number),
    )


def _check_alive(ctx: Context, sandbox_id: str) -> None:
    try:
        ctx.backend.attach(sandbox_id)
    except SandboxLost:
        ctx.lost(sandbox_id)

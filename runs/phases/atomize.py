"""Atomize: the scorer, written by the Driver and accepted on proof; or the pinned one."""

from __future__ import annotations

import json
import random
from typing import Any

from benchwright.lib.canonical import sha256
from registry.actions import publish_impl
from registry.models import Benchmark, Impl, Subset
from registry.models.blob import get_blob
from registry.queries import snapshot_rows
from runs.errors import PhaseFailed
from runs.events.types.artifact import AtomizeArtifact
from runs.events.types.driver import ToolCallEvent, ToolResultEvent
from runs.phases.base import Done
from runs.phases.fork import inherited_scorer
from runs.phases.setup import SITE
from runs.phases.tasks import snapshot_of
from runs.pipeline.cache import cell_key, hit, look_up
from runs.pipeline.context import Context, NeedsReview
from runs.vocabulary import Phase
from sandboxes.backends.base import Sandbox

IMPL_PATH = "/workspace/task_impl.py"
PROOF_DIR = "/workspace/.bw/proof"
PROOF_ROWS = 40
PROOF_SECONDS = 600


def atomize(ctx: Context) -> Done | None:
    """Publishes the scorer as an immutable impl. Pinned and resolved: the artifact is copied and nothing is done."""
    if "AtomizeArtifact" in ctx.state.artifacts:
        return Done() if ctx.state.started == Phase.ATOMIZE else None
    if (taken_over := inherited_scorer(ctx)) is not None:
        ctx.emit(taken_over)
        return None
    pinned = ctx.state.launched["impl_id"]
    if pinned:
        ctx.emit(_copy(Impl.objects.get(pk=pinned), "pinned"))
        return None
    ctx.start(Phase.ATOMIZE)
    snapshot = snapshot_of(ctx)
    subset = snapshot.subset
    key = cell_key(
        ctx,
        "atomize",
        {
            "tasks": snapshot.digest,
            "field_map": subset.field_map,
            "driver": ctx.run.driver,
            "model_config": ctx.state.artifacts["ModelProxyArtifact"]["config"],
            "scoring": ctx.state.artifacts["SetupArtifact"]["scoring_digest"],
        },
    )
    if cached := look_up(ctx, "atomize", key):
        cell, row = cached
        ctx.emit(AtomizeArtifact(**{**row.data, "origin": "cached", "snapshot_id": None}))
        return Done(cache_hit=hit(cell))
    source = _draft(subset)
    work = ctx.work()
    number = 1 + ctx.state.restarts.get(Phase.ATOMIZE, 0)
    _tool(ctx, "write_file", {"path": IMPL_PATH, "bytes": len(source)}, lambda: _write(work, source))
    samples = list(_samples(ctx))
    with ctx.interruptible(work):
        proof = _tool(ctx, "test_scorer", {"rows": [s["index"] for s in samples]}, lambda: prove(work, samples))
    if not proof["ok"]:
        failed = [c for c in proof["checks"] if not c["ok"] and not c.get("advisory")]
        why = "; ".join(f"{c['name']} (row {c.get('row')}): {c.get('detail')}" for c in failed[:3])
        raise NeedsReview(
            f"The scorer that the rules wrote did not prove itself: {why}. Say how an answer is to be judged."
        )
    impl = publish_impl(
        Benchmark.objects.get(pk=subset.benchmark_id), subset, source, proof=_brief(proof), run_id=ctx.run.pk
    )
    saved = ctx.save(work, "atomize")
    ctx.emit(
        AtomizeArtifact(
            invocation=number,
            impl_id=impl.id,
            sha256=impl.impl_fingerprint,
            source=source,
            proof=_brief(proof),
            snapshot_id=saved,
        )
    )
    return Done(cell=key, artifact="AtomizeArtifact")


def prove(work: Sandbox, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """What the guest's proof says of the scorer in the sandbox: {ok, checks}.

    Raises PhaseFailed when it can't be had.
    """
    work.write(f"{PROOF_DIR}/samples.json", json.dumps(samples).encode())
    job = {
        "impl": IMPL_PATH,
        "samples": f"{PROOF_DIR}/samples.json",
        "seconds": 60,
        "memory_mb": 900,
        "path": ["/opt/benchwright", SITE],
    }
    work.write(f"{PROOF_DIR}/job.json", json.dumps(job).encode())
    command = f'exec "$BW_PYTHON" -I /opt/benchwright/guest/prove.py {PROOF_DIR}/job.json'
    done = work.run(["/bin/sh", "-c", command], timeout=PROOF_SECONDS, output_limit=8 << 20)
    try:
        proof: dict[str, Any] = json.loads(done.stdout)
        return {"ok": bool(proof["ok"]), "checks": list(proof["checks"])}
    except (ValueError, KeyError, TypeError):
        why = "it took too long" if done.timed_out else done.stderr.decode(errors="replace")[-400:]
        raise PhaseFailed(f"The scorer could not be tried: {why}", code="proof_failed") from None


def _draft(subset: Subset) -> str:
    blob = get_blob(str(subset.field_map.get("draft", "")))
    if blob is None:
        raise NeedsReview(
            f"No scorer is known for {subset.id} and the rules can't write one. Name an impl, or describe "
            "how an answer is to be judged."
        )
    return blob.decode()


def _samples(ctx: Context) -> list[dict[str, Any]]:
    """The first rows, the last, and a fixed draw from the others."""
    rows = list(snapshot_rows(snapshot_of(ctx)))
    chosen = {*range(min(5, len(rows))), len(rows) - 1}
    chosen |= set(random.Random(0).sample(range(len(rows)), min(PROOF_ROWS, len(rows))))
    return [{"index": i, **rows[i]} for i in sorted(chosen)]


def _write(work: Sandbox, source: str) -> str:
    work.write(IMPL_PATH, source.encode())
    return f"{sha256(source)[:12]} written"


def _tool(ctx: Context, name: str, arguments: dict[str, Any], call: Any) -> Any:
    """A step of the Driver, in the log with what came back."""
    call_id = f"{name}-{ctx.state.epochs}"
    ctx.emit(ToolCallEvent(tool=name, arguments=arguments, call_id=call_id))
    answer = call()
    ctx.emit(ToolResultEvent(call_id=call_id, output=_brief(answer) if isinstance(answer, dict) else answer))
    return answer


def _brief(proof: dict[str, Any]) -> dict[str, Any]:
    kept = ("name", "ok", "detail", "row", "rows", "failed", "advisory")
    return {"ok": proof["ok"], "checks": [{k: c.get(k) for k in kept} for c in proof["checks"]]}


def _copy(impl: Impl, origin: str) -> AtomizeArtifact:
    return AtomizeArtifact(
        invocation=0, impl_id=impl.id, sha256=impl.impl_fingerprint, source=impl.source, proof=impl.proof, origin=origin
    )

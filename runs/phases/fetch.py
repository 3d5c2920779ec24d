"""Fetch: the sources into the work sandbox, byte for byte, through the host policy."""

from __future__ import annotations

import json
from typing import Any

from registry.models import Benchmark
from registry.models.blob import get_blob
from runs.errors import PhaseFailed
from runs.events.types.artifact import FetchArtifact
from runs.phases.base import Done
from runs.pipeline.cache import cell_key, hit, look_up
from runs.pipeline.context import Context
from runs.vocabulary import Phase
from sandboxes.backends.base import Sandbox

SOURCE_DIR = "/workspace/source"
DOWNLOAD_SECONDS = 300
DOWNLOAD_BYTES = 512 << 20


def fetch(ctx: Context) -> Done | None:
    """Brings the benchmark's sources in, or copies the cell of a run that did."""
    if "FetchArtifact" in ctx.state.artifacts:
        return Done() if ctx.state.started == Phase.FETCH else None
    source = Benchmark.objects.get(pk=ctx.state.artifacts["BenchmarkResolved"]["benchmark_id"]).source
    ctx.start(Phase.FETCH)
    key = cell_key(ctx, "fetch", source)
    cached = look_up(ctx, "fetch", key)
    if cached and not source.get("url"):  # what a URL serves today must be looked at today
        cell, row = cached
        ctx.emit(FetchArtifact(**{**row.data, "origin": "cached"}))
        return Done(cache_hit=hit(cell))
    box = ctx.work()
    listed = source["files"] if source.get("files") else [_download(ctx, box, source["url"])]
    sources = put_sources(ctx, box, listed)
    ctx.stop_if_halted()
    snapshot = ctx.save(box, "fetch")
    ctx.emit(FetchArtifact(sources=sources, snapshot_id=snapshot))
    return Done(cell=key, artifact="FetchArtifact")


def put_sources(ctx: Context, box: Sandbox, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Writes stored files into the sandbox; downloads are there already. Returns [{name, sha256, bytes, …}]."""
    out = []
    for item in listed:
        if "url" in item:
            if item.get("here") != box.id:
                item = _download(ctx, box, item["url"])
            out.append({k: v for k, v in item.items() if k != "here"})
            continue
        data = get_blob(item["sha256"])
        if data is None:
            raise PhaseFailed(
                f"The file {item['name']} is no longer stored.",
                code="source_expired",
                hint="Upload it again and launch with the new file.",
            )
        box.write(f"{SOURCE_DIR}/{item['name']}", data)
        out.append({"name": item["name"], "sha256": item["sha256"], "bytes": len(data)})
    return out


def _download(ctx: Context, box: Sandbox, url: str) -> dict[str, Any]:
    """Downloads inside the sandbox: what the URL serves is as untrusted as the policy says its host is."""
    command = 'exec "$BW_PYTHON" -I /opt/benchwright/guest/download.py "$@"'
    with ctx.interruptible(box):
        done = box.run(
            ["/bin/sh", "-c", command, "download", url, SOURCE_DIR, str(DOWNLOAD_BYTES)], timeout=DOWNLOAD_SECONDS
        )
    try:
        answer = json.loads(done.stdout.decode() or "{}")
    except ValueError:
        answer = {}
    if done.code != 0 or "sha256" not in answer:
        why = answer.get("error") or (
            "it took too long" if done.timed_out else done.stderr.decode(errors="replace")[-400:]
        )
        raise PhaseFailed(
            f"{url} could not be fetched: {why}.",
            code="source_unreachable",
            hint=answer.get("hint") or "Check the address, or upload the file instead.",
        )
    return {**answer, "url": url, "here": box.id}

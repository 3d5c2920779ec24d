"""Find: words, files or a URL to a benchmark and a source."""

from __future__ import annotations

from urllib.parse import urlsplit

from registry.actions import open_benchmark
from registry.models import Benchmark
from registry.queries import search_benchmarks
from runs.events.types.artifact import BenchmarkResolved
from runs.phases.base import Done
from runs.pipeline.context import Context, NeedsReview
from runs.vocabulary import Phase


def find(ctx: Context) -> Done | None:
    """Resolves the launch to a benchmark. A pinned launch named it: the phase has nothing to do."""
    launched = ctx.state.launched
    if launched["benchmark_id"]:
        if "BenchmarkResolved" not in ctx.state.artifacts:
            benchmark = Benchmark.objects.get(pk=launched["benchmark_id"])
            ctx.emit(
                BenchmarkResolved(
                    benchmark_id=benchmark.id,
                    subset=launched["subset_id"],
                    impl_id=launched["impl_id"],
                    source=benchmark.source,
                    why="named by the launch",
                )
            )
        return None
    if "BenchmarkResolved" in ctx.state.artifacts:
        return Done()
    ctx.start(Phase.FIND)
    body = launched["body"]
    files, url = body.get("files") or [], body.get("source")
    if files or url:
        source = {"files": [{"name": f["name"], "sha256": f["sha256"]} for f in files]} if files else {"url": url}
        name = _name(files[0]["name"] if files else urlsplit(url).path)
        benchmark = open_benchmark(ctx.run.account, name, source=source, description=ctx.run.prompt[:2000])
        why = f"the launch brings its own data ({', '.join(f['name'] for f in files) if files else url})"
        ctx.emit(BenchmarkResolved(benchmark_id=benchmark.id, source=source, why=why))
        return Done()
    found = search_benchmarks(ctx.run.account, f"{ctx.run.prompt} {ctx.state.review or ''}")
    if not found:
        raise NeedsReview(
            "The description names no benchmark that is registered here, and no data came with it. "
            "Say which one you mean, or launch again with a file or a source URL."
        )
    benchmark = found[0]
    others = f" (also possible: {', '.join(b.id for b in found[1:])})" if found[1:] else ""
    ctx.emit(
        BenchmarkResolved(
            benchmark_id=benchmark.id,
            source=benchmark.source,
            why=f"its name and description share the most words with the prompt{others}",
        )
    )
    return Done()


def _name(path: str) -> str:
    base = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or "dataset"
    for suffix in (".gz", ".zip", ".jsonl", ".json", ".csv", ".tsv", ".ndjson"):
        base = base.removesuffix(suffix)
    return base[:100] or "dataset"

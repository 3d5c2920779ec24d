"""Analyze: what the sources hold.

Files become rows inside the sandbox; rows become subsets with a shape, a field map and references.
"""

from __future__ import annotations

import json
from typing import Any

from registry.actions import save_subset
from registry.models import Benchmark, Subset
from registry.models.blob import put_blob
from runs.driver.rules.derivation import CannotTell, Derivation, SourceFile, SubsetDerivation
from runs.driver.rules.recognise import recognise
from runs.errors import PhaseFailed
from runs.events.types.artifact import AnalyzeArtifact, DatasetTasksArtifact
from runs.phases.base import Done
from runs.phases.fetch import SOURCE_DIR
from runs.phases.tasks import freeze
from runs.pipeline.cache import cell_key, hit, look_up
from runs.pipeline.context import Context, NeedsReview
from runs.vocabulary import Phase
from sandboxes.backends.base import Sandbox

ROWS_DIR = "/workspace/rows"
READ_SECONDS = 600
ROWS_BYTES = 512 << 20
REPORT_BYTES = 16 << 20
# Files that people put beside their data; they are not rows.
ASIDE = ("requirements.txt", "readme", "license", "task_impl.py")


def analyze(ctx: Context) -> Done | None:
    """Freezes the task list. A pinned launch copies what its subset was made with and has nothing to do."""
    if "DatasetTasksArtifact" in ctx.state.artifacts:
        return Done() if ctx.state.started == Phase.ANALYZE else None
    resolved = ctx.state.artifacts["BenchmarkResolved"]
    named = ctx.state.launched["subset_id"]
    if named:
        _pinned(ctx, Subset.objects.select_related("snapshot").get(pk=named))
        return None
    ctx.start(Phase.ANALYZE)
    benchmark = Benchmark.objects.get(pk=resolved["benchmark_id"])
    words = "\n".join(w for w in (ctx.run.prompt, ctx.state.review) if w)
    sources = ctx.state.artifacts["FetchArtifact"]["sources"]
    key = cell_key(
        ctx,
        "analyze",
        {
            "benchmark": benchmark.id,
            "sources": [[s["name"], s["sha256"]] for s in sources],
            "words": words,
            "driver": ctx.run.driver,
        },
    )
    if cached := look_up(ctx, "analyze", key):
        cell, row = cached
        artifact = AnalyzeArtifact(**{**row.data, "origin": "cached"})
        subset = Subset.objects.select_related("snapshot").get(pk=f"{benchmark.id}/{_chosen(row.data)}")
        ctx.emit(artifact, freeze(subset, ctx.run.sample, origin="cached"))
        return Done(cache_hit=hit(cell))
    box = ctx.work()
    with ctx.interruptible(box):
        files = read_sources(box, [s["name"] for s in sources])
    for file in files:
        ctx.say(f"{file.name}: {file.report['rows']} rows, {file.report['format']}." + _faults(file.report))
    derived, chosen = choose(files, words)
    artifact, tasks = _publish(ctx, benchmark, files, derived, chosen)
    ctx.emit(artifact, tasks)
    return Done(cell=key, artifact="AnalyzeArtifact")


def read_sources(box: Sandbox, names: list[str]) -> list[SourceFile]:
    """The files as canonical rows, read inside the sandbox. Raises PhaseFailed with what to mend in which file."""
    data = [n for n in names if not n.lower().startswith(ASIDE)]
    if not data:
        raise PhaseFailed(
            "There is no data file among the sources.", code="no_data", hint="Add a JSON Lines, JSON, CSV or TSV file."
        )
    paths = [f"{SOURCE_DIR}/{name}" for name in data]
    command = 'exec "$BW_PYTHON" -I /opt/benchwright/guest/read_rows.py "$@"'
    done = box.run(
        ["/bin/sh", "-c", command, "read", ROWS_DIR, *paths], timeout=READ_SECONDS, output_limit=REPORT_BYTES
    )
    try:
        reports: list[dict[str, Any]] = json.loads(done.stdout)["files"]
    except (ValueError, KeyError, TypeError):
        said = done.stderr.decode(errors="replace")[-400:] or "the reader died"
        why = "it took too long" if done.timed_out else said
        raise PhaseFailed(
            f"The files could not be read: {why}",
            code="bad_data",
            hint="Files that need more than a gigabyte to read are too large; give an extract.",
        ) from None
    fatal = [r["fatal"] for r in reports if r.get("fatal")]
    if len(fatal) == len(reports):
        raise PhaseFailed(str(fatal[0]["message"]), code="bad_data", hint=str(fatal[0]["fix"]))
    # A stray file among good ones does not end the run: the rules pass it over, and the log says why.
    return [
        SourceFile(r, _rows(box.read(f"{ROWS_DIR}/{r['out']}", limit=ROWS_BYTES)) if r["out"] else []) for r in reports
    ]


def _rows(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.split(b"\n") if line]


def choose(files: list[SourceFile], words: str) -> tuple[Derivation, SubsetDerivation]:
    """What the rules make of the files. Raises NeedsReview with the reason where only a person can tell."""
    derived = recognise(files, words)
    if isinstance(derived, CannotTell):
        raise NeedsReview(f"{derived.reason} {derived.question}")
    if derived.chosen is None:
        raise NeedsReview(derived.question or "Several subsets fit the description: say which one.")
    if derived.chosen in derived.cannot:
        doubt = derived.cannot[derived.chosen]
        raise NeedsReview(f"{doubt.reason} {doubt.question}")
    return derived, derived.subset()


def store_subset(benchmark: Benchmark, made: SubsetDerivation) -> Subset:
    """The subset with its tasks; its field map names the draft scorer by its digest."""
    field_map = {
        "shape": made.shape,
        "columns": made.field_map,
        "draft": put_blob(made.impl_source.encode()),
        "why": made.why,
    }
    subset, _ = save_subset(benchmark, made.name, made.tasks(), field_map=field_map)
    return subset


def _publish(
    ctx: Context, benchmark: Benchmark, files: list[SourceFile], derived: Derivation, chosen: SubsetDerivation
) -> tuple[AnalyzeArtifact, DatasetTasksArtifact]:
    subsets = {made.name: store_subset(benchmark, made) for made in derived.subsets}
    listed = [
        {"name": m.name, "count": len(m.rows), "shape": m.shape, "chosen": m.name == chosen.name}
        for m in derived.subsets
    ]
    listed += [{"name": n, "cannot": d.reason, "chosen": False} for n, d in derived.cannot.items()]
    subset = subsets[chosen.name]
    why = " ".join([chosen.why, derived.why, *chosen.notes]).strip()
    artifact = AnalyzeArtifact(
        files=[_report(f.report) for f in files],
        subsets=listed,
        shape=chosen.shape,
        field_map=subset.field_map,
        why=why,
    )
    return artifact, freeze(subset, ctx.run.sample)


def _report(report: dict[str, Any]) -> dict[str, Any]:
    kept = ("name", "format", "encoding", "rows", "dropped", "fault_counts", "warnings", "rows_sha256")
    return {k: report.get(k) for k in kept} | {"faults": (report.get("faults") or [])[:10]}


def _faults(report: dict[str, Any]) -> str:
    if report.get("fatal"):
        return f" Passed over: {report['fatal']['message']}."
    said = [f"{report['dropped']} rows could not be read and are left out."] if report.get("dropped") else []
    said += [f"line {f.get('line')}: {f.get('message')}" for f in (report.get("faults") or [])[:5]]
    said += [str(w) for w in (report.get("warnings") or [])[:5]]
    return (" " + " ".join(said)) if said else ""


def _chosen(artifact: dict[str, Any]) -> str:
    return next(str(s["name"]) for s in artifact["subsets"] if s.get("chosen"))


def _pinned(ctx: Context, subset: Subset) -> None:
    """The artifacts that Analyze would leave, marked as pinned: the fingerprint covers them whatever was skipped."""
    made = subset.field_map
    count = subset.snapshot.count if subset.snapshot else 0
    ctx.emit(
        AnalyzeArtifact(
            files=[],
            subsets=[{"name": subset.name, "count": count, "shape": made.get("shape", ""), "chosen": True}],
            shape=made.get("shape", ""),
            field_map=made,
            why="the subset is pinned",
            origin="pinned",
        ),
        freeze(subset, ctx.run.sample, origin="pinned"),
    )

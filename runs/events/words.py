"""An event in one line of words. Pure; what comes from models and scorers is cut short and left for the page to
escape.
"""

from __future__ import annotations

from typing import Any


def in_words(kind: str, data: dict[str, Any]) -> str:
    """At most 200 characters; a type that this version doesn't know gives its name."""
    make = _WORDS.get(kind)
    try:
        text = make(data) if make else kind
    except (KeyError, TypeError):
        text = kind
    return " ".join(str(text).split())[:200]


def _cache(d: dict[str, Any]) -> str:
    if d["cache_hit"]:
        return f"{d['phase']} copied from run {d['cache_hit']['run'][:8]}"
    return f"{d['phase']} done in {d['duration_ms'] / 1000:.2f} s"


def _result(d: dict[str, Any]) -> str:
    score = "no score" if d["score"] is None else f"{d['score']:g}"
    why = f": {d['error']['message']}" if d["error"] else ""
    return f"task {d['index']} trial {d['trial']} {d['outcome']} ({score}){why}"


_WORDS: dict[str, Any] = {
    "RunLaunched": lambda d: f"launched by {d['user']} ({d['mode'].replace('_', ' ')})",
    "PipelineStarted": lambda d: (
        "a worker took the run" if d["epoch"] == 1 else f"another worker took the run (lease {d['epoch']})"
    ),
    "PipelineFinished": lambda d: f"ended {d['status']} after {d['duration_ms'] / 1000:.1f} s",
    "HaltRequested": lambda d: f"halt: {d['reason']}",
    "HaltCleared": lambda d: (
        f"goes on, by {d['by']}" + (f": {d['review_resolution']}" if d["review_resolution"] else "")
    ),
    "VisibilityChanged": lambda d: f"{d['visibility']}, by {d['by']}",
    "PhaseStarted": lambda d: f"{d['phase']} started",
    "PhaseCompleted": _cache,
    "PhaseFailed": lambda d: f"{d['phase']} failed: {d['detail']}",
    "PhaseRestarted": lambda d: f"{d['phase']} again: {d['reason']}",
    "SandboxCreated": lambda d: f"{d['metadata'].get('benchwright_role')} sandbox {d['sandbox_id']}",
    "SandboxKilled": lambda d: f"sandbox {d['sandbox_id']} gone: {d['reason']}",
    "SnapshotCreated": lambda d: f"snapshot after {d['phase']}, {d['bytes']:,} bytes",
    "HostBlocked": lambda d: f"{d['role']} was refused {d['host']}:{d['port']} ({d['seen_count']}×)",
    "AgentTextEvent": lambda d: d["text"],
    "ToolCallEvent": lambda d: f"{d['tool']} {d['arguments']}",
    "ToolResultEvent": lambda d: d["output"],
    "BenchmarkResolved": lambda d: f"{d['benchmark_id']}: {d['why']}",
    "FetchArtifact": lambda d: ", ".join(f"{s['name']} {s['bytes']:,} bytes" for s in d["sources"]),
    "AnalyzeArtifact": lambda d: f"{d['shape']}: {d['why']}",
    "DatasetTasksArtifact": lambda d: (
        f"{d['count'] if d['selected'] is None else len(d['selected'])} of {d['count']} tasks of {d['subset_id']}"
    ),
    "SetupArtifact": lambda d: (
        f"Python {d['python']}, scoring helpers {d['scoring_version']}"
        + (f", {', '.join(d['requirements'])}" if d["requirements"] else "")
    ),
    "ModelProxyArtifact": lambda d: d["model"],
    "AtomizeArtifact": lambda d: f"scorer {d['impl_id']}",
    "MaterializeStarted": lambda d: (
        f"{d['tasks']} tasks × {d['trials']} trials, {d['concurrency']} in flight, {d['mode']}"
    ),
    "MaterializeResponse": lambda d: f"task {d['index']} trial {d['trial']} answered",
    "MaterializeTaskResult": _result,
    "MaterializeTaskAggregated": lambda d: f"task {d['index']} {d['outcome']}",
    "AttemptFailed": lambda d: f"task {d['index']} attempt {d['attempt']} failed: {d['error'].get('message')}",
    "ReportFile": lambda d: f"{d['name']} {d['size']:,} bytes",
}

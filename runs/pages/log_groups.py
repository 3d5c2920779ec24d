"""The log's filters: which event types each button stands for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogGroup:
    """One filter button. `types` None means every type."""

    id: str
    label: str
    types: tuple[str, ...] | None


_TASKS = ("MaterializeResponse", "MaterializeTaskResult", "MaterializeTaskAggregated", "AttemptFailed")
_DRIVER = ("AgentTextEvent", "ToolCallEvent", "ToolResultEvent")
_BOXES = ("SandboxCreated", "SandboxKilled", "SnapshotCreated", "HostBlocked")
_MAIN = (
    "RunLaunched",
    "PipelineStarted",
    "PipelineFinished",
    "PhaseStarted",
    "PhaseCompleted",
    "PhaseFailed",
    "PhaseRestarted",
    "BenchmarkResolved",
    "ForkResolved",
    "SyntheticSubsetCreated",
    "FetchArtifact",
    "AnalyzeArtifact",
    "DatasetTasksArtifact",
    "SetupArtifact",
    "ModelProxyArtifact",
    "AtomizeArtifact",
    "MaterializeStarted",
    "AttemptFailed",
    "HostBlocked",
    "HaltRequested",
    "HaltCleared",
    "VisibilityChanged",
    "RunNarrated",
    "ReportFile",
    *_DRIVER,
)
GROUPS = (
    LogGroup("main", "Story", _MAIN),
    LogGroup("driver", "Driver", _DRIVER),
    LogGroup("tasks", "Tasks", _TASKS),
    LogGroup("boxes", "Sandboxes", _BOXES),
    LogGroup("all", "All", None),
)


def types_of(group: str) -> tuple[str, ...] | None:
    """The types behind a filter; an unknown one falls back to the first."""
    for known in GROUPS:
        if known.id == group:
            return known.types
    return GROUPS[0].types

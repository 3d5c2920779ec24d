"""Events in, the pipeline's state out. Pure: a killed worker's successor knows from the log alone where to go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from runs.vocabulary import Phase


@dataclass
class LiveSandbox:
    """A sandbox that was made and not yet killed."""

    id: str
    role: str
    backend: str


@dataclass
class PipelineState:
    """Where a run stands. `artifacts` holds the latest of each type; `snapshots` the latest of each phase."""

    launched: dict[str, Any] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    failed: str | None = None
    started: str | None = None
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)
    artifact_seqs: dict[str, int] = field(default_factory=dict)
    ordered: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    snapshots: dict[str, str] = field(default_factory=dict)
    sandboxes: dict[str, LiveSandbox] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    restores: int = 0
    invocation: int = 0
    sweeping: bool = False
    epochs: int = 0
    finished: str | None = None
    review: str | None = None
    blocked: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def apply(self, seq: int, kind: str, data: dict[str, Any]) -> None:
        """Takes one event in. Results of tasks don't change where the pipeline stands and may be left out."""
        match kind:
            case "RunLaunched":
                self.launched = data
            case "PipelineStarted":
                self.epochs, self.finished = data["epoch"], None
            case "PipelineFinished":
                self.finished = data["status"]
            case "PhaseStarted":
                self.started = data["phase"]
            case "PhaseCompleted":
                self.done.add(data["phase"])
                self.started = None
                if data["phase"] == Phase.MATERIALIZE:
                    self.sweeping = False
            case "PhaseFailed":
                self.failed, self.started = data["phase"], None
            case "PhaseRestarted":
                self.restarts[data["phase"]] = self.restarts.get(data["phase"], 0) + 1
                self.started = None
            case "HaltCleared":
                self.review = data["review_resolution"]
                if data["review_resolution"] is not None:
                    self.restarts.clear()
            case "SandboxCreated":
                role = data["metadata"].get("benchwright_role", "")
                self.sandboxes[data["sandbox_id"]] = LiveSandbox(data["sandbox_id"], role, data["backend"])
            case "SandboxKilled":
                self.sandboxes.pop(data["sandbox_id"], None)
                if data["reason"] == "lost":
                    self.restores += 1
            case "SnapshotCreated":
                self.snapshots[data["phase"]] = data["snapshot_id"]
            case "MaterializeStarted":
                self.invocation, self.sweeping = data["invocation"], True
            case "HostBlocked":
                self.blocked[(data["host"], data["port"], data["role"])] = data["seen_count"]
        if kind.endswith("Artifact") or kind in {"BenchmarkResolved", "ForkResolved"}:
            self.artifacts[kind] = data
            self.artifact_seqs[kind] = seq
            if kind.endswith("Artifact"):
                self.ordered.append((kind, data))
            if data.get("snapshot_id"):
                self.snapshots[_PHASE_OF[kind]] = data["snapshot_id"]

    def sandbox(self, role: str) -> LiveSandbox | None:
        """The live sandbox of this role, the youngest when there are several."""
        found = [s for s in self.sandboxes.values() if s.role == role]
        return found[-1] if found else None


_PHASE_OF = {"FetchArtifact": "fetch", "SetupArtifact": "setup", "AtomizeArtifact": "atomize"}


def fold(rows: Iterable[tuple[int, str, dict[str, Any]]]) -> PipelineState:
    """The state after these (seq, type, data), in order."""
    state = PipelineState()
    for seq, kind, data in rows:
        state.apply(seq, kind, data)
    return state

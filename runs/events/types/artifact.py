"""Artifacts: what a phase leaves behind. The run fingerprint hashes exactly the types whose name ends in `Artifact`.

`origin`: own work, or copied from another run (`cached`), from a pin (`pinned`) or from the run that a replay or fork
goes on from (`inherited`). It never enters a fingerprint.
"""

from __future__ import annotations

from runs.events.types.base import JSON, Event


class BenchmarkResolved(Event, frozen=True, kw_only=True):
    """What the launch means: which benchmark, from which source, and why."""

    benchmark_id: str
    subset: str | None = None
    impl_id: str | None = None
    source: JSON
    why: str


class ForkResolved(Event, frozen=True, kw_only=True):
    """Where a fork rewinds to and what it overrides."""

    rewind_to: str
    overrides: JSON
    why: str


class SyntheticSubsetCreated(Event, frozen=True, kw_only=True):
    """A subset that is made, not read: how."""

    subset_id: str
    why: str


class FetchArtifact(Event, frozen=True, kw_only=True):
    """The sources, byte for byte: [{name, sha256, bytes, url?, revision?}]."""

    sources: JSON
    snapshot_id: str | None = None
    origin: str = "own"


class AnalyzeArtifact(Event, frozen=True, kw_only=True):
    """What the sources hold: files with their faults, the subsets, the field map and the recognised shape."""

    files: JSON
    subsets: JSON
    shape: str
    field_map: JSON
    why: str
    origin: str = "own"


class DatasetTasksArtifact(Event, frozen=True, kw_only=True):
    """The task list of this run: the snapshot's digest and count, and which of its indices are run."""

    subset_id: str
    snapshot_digest: str
    count: int
    selected: JSON
    origin: str = "own"


class SetupArtifact(Event, frozen=True, kw_only=True):
    """What the scorer finds installed."""

    python: str
    scoring_version: str
    scoring_digest: str
    requirements: JSON
    snapshot_id: str | None = None
    origin: str = "own"


class ModelProxyArtifact(Event, frozen=True, kw_only=True):
    """The model and the proxy's LiteLLM config; no secret is in it."""

    model: str
    config: str
    mode: str = "endpoint"


class AtomizeArtifact(Event, frozen=True, kw_only=True):
    """The scorer: its id, digest and source, and the proof it was accepted on."""

    invocation: int
    impl_id: str
    sha256: str
    source: str
    proof: JSON
    snapshot_id: str | None = None
    origin: str = "own"


class ReportFile(Event, frozen=True, kw_only=True):
    """A file that the run leaves for people."""

    name: str
    sha256: str
    size: int

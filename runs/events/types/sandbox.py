"""Sandboxes and snapshots, and hosts they were refused."""

from __future__ import annotations

from runs.events.types.base import JSON, Event, Usage


class SandboxCreated(Event, frozen=True, kw_only=True):
    """A sandbox is there. `metadata.benchwright_role` says what for."""

    sandbox_id: str
    backend: str
    size: JSON
    metadata: JSON
    snapshot_id: str | None = None


class SandboxKilled(Event, frozen=True, kw_only=True):
    """A sandbox is gone. `usage` holds what its time cost."""

    sandbox_id: str
    duration_ms: float
    reason: str
    usage: Usage | None = None


class SnapshotCreated(Event, frozen=True, kw_only=True):
    """A workspace was saved."""

    snapshot_id: str
    phase: str
    digest: str
    bytes: int


class HostBlocked(Event, frozen=True, kw_only=True):
    """A sandbox asked for a host that the policy refuses."""

    host: str
    port: int
    role: str
    seen_count: int

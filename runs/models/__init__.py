"""The models of this app; the event row is imported as a module so that nobody gets it by accident."""

import runs.models.event
from runs.models.rows import PhaseCell, SandboxRow, SnapshotRow, TaskRow
from runs.models.run import Run

__all__ = ["PhaseCell", "Run", "SandboxRow", "SnapshotRow", "TaskRow", "runs"]

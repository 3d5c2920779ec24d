"""A run's fingerprint and comparability key from its artifacts: one function for the stored and the derived value.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.fingerprints.comparability import comparability_inputs, comparability_key
from runs.fingerprints.run import fingerprint, inputs


@dataclass(frozen=True)
class Identity:
    """`fingerprint` is empty while there is no artifact; `comparability_key` until task list and scorer are known."""

    fingerprint: str
    fingerprint_inputs: list[dict[str, Any]]
    comparability_key: str
    comparability_inputs: dict[str, Any] | None


def identity_of(
    artifacts: Sequence[tuple[str, dict[str, Any]]], *, trials: Mapping[str, Any], limits: Mapping[str, Any]
) -> Identity:
    """`artifacts`: (type, data) of every `*Artifact` event in order."""
    reduced = inputs(artifacts)
    latest = dict(artifacts)
    tasks, impl, installed = (latest.get(k) for k in ("DatasetTasksArtifact", "AtomizeArtifact", "SetupArtifact"))
    ruler = None
    if tasks and impl:
        ruler = comparability_inputs(
            snapshot_digest=tasks["snapshot_digest"],
            impl_sha256=impl["sha256"],
            trials=trials,
            limits=limits,
            selected=tasks["selected"],
            scoring_version=(installed or {}).get("scoring_version", ""),
        )
    return Identity(
        fingerprint=fingerprint(reduced) if reduced else "",
        fingerprint_inputs=reduced,
        comparability_key=comparability_key(ruler) if ruler else "",
        comparability_inputs=ruler,
    )

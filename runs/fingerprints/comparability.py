"""The comparability key: do two runs stand on the same ruler? The model is not in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchwright.lib.canonical import digest

# Limits that can change a score; a cost ceiling only decides how far a run gets, which coverage shows.
SCORE_LIMITS = ("task.duration", "task.attempts", "attempt.duration", "attempt.tokens")


def comparability_inputs(
    *,
    snapshot_digest: str,
    impl_sha256: str,
    trials: Mapping[str, Any],
    limits: Mapping[str, Any],
    selected: Any,
    scoring_version: str,
    scaffold: str = "none",
    score_policy: str = "errors_outside",
) -> dict[str, Any]:
    """The fields that make the ruler."""
    flat = {f"{level}.{quantity}": v for level, group in limits.items() for quantity, v in (group or {}).items()}
    return {
        "snapshot": snapshot_digest,
        "impl": impl_sha256,
        "trials": dict(trials),
        "limits": {k: flat.get(k) for k in SCORE_LIMITS},
        "selected": selected,
        "scoring": scoring_version,
        "scaffold": scaffold,
        "score_policy": score_policy,
    }


def comparability_key(inputs: Mapping[str, Any]) -> str:
    """64 hex digits; show the first 12."""
    return digest(dict(inputs))

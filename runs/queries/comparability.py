"""Do these runs stand on one ruler, and if not, what differs: field by field, in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.events.log import read
from runs.fingerprints.identity import identity_of
from runs.models import Run

ARTIFACTS = ("DatasetTasksArtifact", "SetupArtifact", "AtomizeArtifact")
# What each field of the ruler means for two scores that do not share it.
MEANS = {
    "snapshot": "another task list: only tasks with the same content are paired",
    "impl": "another scorer: a difference may come from how answers are judged",
    "trials": "other trials or another aggregator: a task's score is not made the same way",
    "limits": "other limits: one run may have had more time, tokens or attempts for a task",
    "selected": "other tasks were chosen: only tasks of both are paired",
    "scoring": "another version of the scoring helpers",
    "scaffold": "another scaffold around the model",
    "score_policy": "errors are counted another way",
}
SHOWN = 120


@dataclass(frozen=True)
class Ruler:
    """What a run was measured with. `inputs` None: task list and scorer were not known when it ended."""

    key: str
    inputs: dict[str, Any] | None
    subset_id: str
    snapshot: str


@dataclass(frozen=True)
class Difference:
    """One field in which the rulers differ: what that may do, and the value of each run, short."""

    field: str
    means: str
    values: list[str]


def ruler_of(run: Run) -> Ruler:
    """From the run's log, so that it is also known of a run that has not ended."""
    artifacts = [(row.type, row.data) for row in read(run.pk, types=ARTIFACTS)]
    found = identity_of(artifacts, trials=run.trials_config, limits=run.limits)
    tasks = dict(artifacts).get("DatasetTasksArtifact") or {}
    return Ruler(
        key=found.comparability_key,
        inputs=found.comparability_inputs,
        subset_id=str(tasks.get("subset_id") or run.subset_id or ""),
        snapshot=str(tasks.get("snapshot_digest") or ""),
    )


def differences(rulers: Sequence[Ruler]) -> list[Difference]:
    """Empty when all stand on one ruler."""
    if len({ruler.key for ruler in rulers}) == 1 and rulers[0].inputs is not None:
        return []
    fields = [name for name in MEANS if any(r.inputs and name in r.inputs for r in rulers)]
    out = []
    for name in fields:
        values = [json.dumps((r.inputs or {}).get(name), sort_keys=True) if r.inputs else "" for r in rulers]
        if len(set(values)) > 1:
            out.append(Difference(name, MEANS[name], [_short(name, r) for r in rulers]))
    if any(r.inputs is None for r in rulers):
        said = ["known" if r.inputs else "unknown" for r in rulers]
        out.append(Difference("ruler", "a run has no task list or no scorer yet", said))
    return out


def _short(name: str, ruler: Ruler) -> str:
    if ruler.inputs is None:
        return "unknown"
    value: Any = ruler.inputs.get(name)
    if name == "selected":
        return "all tasks" if value is None else f"{len(value)} chosen"
    if name == "limits":
        given = {k: v for k, v in value.items() if v is not None}
        return ", ".join(f"{k} {v:g}" for k, v in given.items()) or "none"
    if name == "trials":
        aggregator = value.get("aggregator", {})
        return f"{value.get('plan', {}).get('k')} × {aggregator.get('name')}"
    if isinstance(value, str):
        return value[:12] if len(value) == 64 else value[:SHOWN] or "none"
    return json.dumps(value, sort_keys=True)[:SHOWN]

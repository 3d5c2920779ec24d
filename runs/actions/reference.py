"""What a replay or a fork takes over from the run it names: found, checked, and filled into the launch."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from billing.models import Account
from runs.actions.requests import COMPUTES, INHERITED, LaunchRequest, ModelChoice
from runs.errors import LaunchRefused
from runs.models import Run
from runs.phases.fork import latest_artifacts, missing_before, selection
from runs.phases.setup import scoring_identity
from runs.queries.access import own_run
from runs.vocabulary import Mode, ModelSource, Phase


def reference_of(account: Account, request: LaunchRequest) -> Run:
    """The run that a replay or fork names. Raises LaunchRefused, NotFound."""
    try:
        return own_run(account, UUID(request.reference or ""))
    except ValueError:
        raise LaunchRefused("That is not a run id.", field=request.mode.value) from None


def completed(account: Account, request: LaunchRequest) -> LaunchRequest:
    """The launch with what it leaves open taken from its reference; any other launch as it is."""
    if request.mode not in (Mode.REPLAY, Mode.FORK):
        return request
    parent = reference_of(account, request)
    model, key_of = request.model, request.key_of
    if model is INHERITED:
        model, key_of = _model(parent), parent.pk
    rewind = _rewind(parent, request) if request.mode is Mode.FORK else None
    words = "\n".join(w for w in (parent.prompt, request.instructions) if w)
    compute = request.compute
    if compute in ("default", "auto") and parent.backend in COMPUTES:
        compute = parent.backend  # snapshots of one backend are worth nothing to another
    return replace(
        request,
        model=model,
        key_of=key_of,
        prompt=request.prompt or (words if request.mode is Mode.FORK else ""),
        rewind_to=rewind,
        sample=request.sample or parent.sample,
        trials=request.trials or parent.trials_config,
        limits=request.limits or parent.limits,
        driver=request.driver or parent.driver,
        compute=compute,
        source=request.source or (parent.launch.get("source") if rewind == Phase.FIND else None),
    )


def check_reference(request: LaunchRequest, parent: Run) -> None:
    """Refuses what can't be taken over from this run, before there is a new one. Raises LaunchRefused."""
    rewind = Phase(request.rewind_to or Phase.MATERIALIZE)
    found = latest_artifacts(parent.pk)
    gap = missing_before(rewind, found)
    if gap is not None:
        raise LaunchRefused(
            f"That run never finished {gap.value}, so nothing can go on from {rewind.value}.",
            field="rewind_to" if request.mode is Mode.FORK else "replay",
            hint=f"Fork it with rewind_to {gap.value!r} or an earlier phase.",
        )
    after_analyze = _order(rewind) > _order(Phase.ANALYZE)
    if request.source and rewind is not Phase.FIND:
        raise LaunchRefused("Another source is another benchmark.", field="source", hint="Set rewind_to to 'find'.")
    if request.impl and not after_analyze:
        raise LaunchRefused(
            "An impl belongs to a task list, and this fork makes a new one.",
            field="impl",
            hint="Rewind to setup or later, or leave impl out.",
        )
    if after_analyze:
        selection(found["DatasetTasksArtifact"], request.sample)
    installed = found.get("SetupArtifact")
    if installed and _order(rewind) > _order(Phase.SETUP) and installed["scoring_digest"] != scoring_identity()[1]:
        raise LaunchRefused(
            "The scoring helpers have changed since that run, so its setup can't be taken over.",
            field="rewind_to" if request.mode is Mode.FORK else "replay",
            hint="Fork it with rewind_to 'setup'.",
        )


def _rewind(parent: Run, request: LaunchRequest) -> str:
    """The phase asked for; else the last one that the parent's artifacts allow."""
    if request.rewind_to:
        return request.rewind_to
    gap = missing_before(Phase.MATERIALIZE, latest_artifacts(parent.pk))
    return (gap or Phase.MATERIALIZE).value


def _model(parent: Run) -> ModelChoice:
    given = parent.model
    return ModelChoice(
        source=ModelSource(given["source"]),
        identifier=given["identifier"],
        base_url=given.get("base_url"),
        headers=dict.fromkeys(given.get("headers") or (), ""),
        params=given.get("params") or {},
        price=given.get("price"),
        seed=given.get("seed", 0),
        label=given.get("label", ""),
    )


def _order(phase: Phase) -> int:
    return list(Phase).index(phase)

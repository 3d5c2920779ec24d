"""Launch: check, freeze, write seq 0, dispatch. All or nothing."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from billing.models import Account, User
from registry.models import Benchmark, Impl, Subset
from registry.queries import find_benchmark, find_impl, find_subset, find_uploads
from runs.actions.reference import check_reference, completed, reference_of
from runs.actions.requests import LaunchRequest
from runs.errors import LaunchRefused
from runs.events.log import append
from runs.events.types.run import RunLaunched
from runs.models import Run
from runs.phases.fork import LEAVES, before, latest_artifacts
from runs.phases.route import route_of
from runs.pipeline.dispatch import dispatch_on_commit
from runs.trials.plan import resolve_trials
from runs.vocabulary import HarnessName, Mode, ModelSource, Phase
from sandboxes.backends.choose import default_backend
from sandboxes.model_proxy.config import read_route
from sandboxes.model_proxy.prices import find_price
from sandboxes.model_proxy.providers import provider_of
from sandboxes.models import ProviderSecret


@dataclass(frozen=True)
class Resolved:
    """What a launch names, found."""

    benchmark: Benchmark | None = None
    subset: Subset | None = None
    impl: Impl | None = None
    files: tuple[dict[str, Any], ...] = ()
    parent: Run | None = None


def check(account: Account, request: LaunchRequest) -> Resolved:
    """Everything that can be refused before a run exists. Raises BenchwrightError naming the field."""
    request = completed(account, request)
    _check_model(request)
    if request.harness is not HarnessName.BENCHWRIGHT:
        raise LaunchRefused(
            f"The {request.harness.value} harness is not installed here.",
            field="harness",
            hint="Leave harness out to use benchwright.",
        )
    if request.mode in (Mode.REPLAY, Mode.FORK):
        return _reference(request, reference_of(account, request))
    if request.mode is Mode.PINNED:
        benchmark = find_benchmark(account, request.benchmark or "")
        subset = find_subset(benchmark, request.subset)
        impl = find_impl(subset, request.impl)
        if request.sample.get("indices") and subset.snapshot:
            beyond = [i for i in request.sample["indices"] if i >= subset.snapshot.count]
            if beyond:
                raise LaunchRefused(
                    f"{subset.id} has {subset.snapshot.count} tasks; there is no index {beyond[0]}.",
                    field="sample.indices",
                )
        return Resolved(benchmark, subset, impl)
    uploads = find_uploads(account, request.files)
    if not uploads and not request.source and not request.prompt:
        raise LaunchRefused("Say what to measure.", field="prompt")
    return Resolved(files=tuple({"id": u.id, "name": u.name, "sha256": u.sha256, "bytes": u.size} for u in uploads))


def launch_once(user: User, account: Account, request: LaunchRequest, key: str, body_digest: str) -> Run:
    """A launch under an Idempotency-Key: the run that the same key and body made before, else a new one.

    Raises LaunchRefused when the key was used with another body. An empty key always makes a new run.
    """
    if not key:
        return launch(user, account, request)
    known = Run.objects.filter(account=account, idempotency_key=key).first()
    if known is None:
        try:
            return launch(user, account, request, idempotency_key=key, body_digest=body_digest)
        except IntegrityError:
            known = Run.objects.get(account=account, idempotency_key=key)  # a twin was faster
    if known.body_digest != body_digest:
        raise LaunchRefused(
            "This Idempotency-Key was used with another body.",
            code="idempotency_conflict",
            status=409,
            hint="Use a new key for a new launch.",
        )
    return known


def launch(
    user: User, account: Account, request: LaunchRequest, *, idempotency_key: str = "", body_digest: str = ""
) -> Run:
    """Makes the run and starts it. Raises LaunchRefused, NotFound and others; then nothing was written."""
    request = completed(account, request)
    found = check(account, request)
    trials = resolve_trials(request.trials, found.subset.default_trials if found.subset else None)
    backend = default_backend().value if request.compute in {"default", "auto"} else request.compute
    driver = request.driver or account.default_driver or "builtin://rules"
    if not driver.startswith("builtin://rules"):
        raise LaunchRefused(
            f"The driver {driver!r} is not available here.", field="driver", hint="Use builtin://rules."
        )
    model = request.model.public()
    body = _body(request, found)
    with transaction.atomic():
        run = Run.objects.create(
            account=account,
            user=user,
            title=_title(request, found),
            mode=request.mode,
            prompt=request.prompt,
            launch=body,
            model=model,
            driver=driver,
            harness=request.harness,
            backend=backend,
            trials_config=trials,
            limits=request.limits,
            sample=request.sample,
            concurrency=request.concurrency,
            metadata=request.metadata,
            visibility=request.visibility,
            parent=found.parent,
            rewind_phase=request.rewind_to or "",
            run_group=request.run_group,
            idempotency_key=idempotency_key,
            body_digest=body_digest,
            key_secret=secrets.token_bytes(32),
        )
        if request.key_of:
            _share_key(request.key_of, run)
        else:
            _seal(run, "model", request.model.api_key)
            _seal(run, "headers", json.dumps(request.model.headers) if request.model.headers else None)
        append(
            run.pk,
            [
                RunLaunched(
                    mode=request.mode,
                    body=body,
                    account=account.slug,
                    user=user.username,
                    trials=trials,
                    limits=request.limits,
                    backend=backend,
                    benchmark_id=found.benchmark.pk if found.benchmark else None,
                    subset_id=found.subset.pk if found.subset else None,
                    impl_id=found.impl.pk if found.impl else None,
                )
            ],
        )
        dispatch_on_commit(run.pk)
    run.refresh_from_db()
    return run


def _seal(run: Run, name: str, value: str | None) -> None:
    if value:
        secret = ProviderSecret(account=run.account, name=name, run_id=run.pk)
        secret.seal(value)
        secret.save()


def _share_key(earlier: UUID, run: Run) -> None:
    """The same model again needs the same key: the sealed one of the reference, sealed for this run too."""
    for secret in ProviderSecret.objects.filter(run_id=earlier, account=run.account):
        ProviderSecret.objects.create(
            account=run.account, name=secret.name, ciphertext=bytes(secret.ciphertext), run_id=run.pk
        )


def _has_key(run_id: UUID) -> bool:
    return ProviderSecret.objects.filter(run_id=run_id, name="model").exists()


def _check_model(request: LaunchRequest) -> None:
    model = request.model
    shared = request.key_of is not None and _has_key(request.key_of)
    if model.source is ModelSource.LITELLM and not (model.api_key or model.base_url or shared):
        provider = provider_of(model.identifier)
        variable = provider.key_variable if provider else None
        if variable is None or not os.environ.get(variable):
            known = f"set {variable} for the server, or " if variable else ""
            raise LaunchRefused(
                f"There is no key for {model.identifier!r}.",
                code="model_key_missing",
                field="model",
                hint=f"To use it, {known}give model.api_key. An OpenAI-compatible server needs model.base_url.",
            )
    if model.source is ModelSource.CONTROL:
        return
    priced = next((level for level, group in request.limits.items() if "cost" in group), None)
    if priced and find_price(read_route(route_of(model.public()))) is None:
        raise LaunchRefused(
            f"A cost limit needs a price, and none is known for {model.identifier!r}.",
            code="price_unknown",
            field=f"limits.{priced}.cost",
            hint='Set model.price, for example {"input_per_token": "0.0000001", "output_per_token": "0.0000004"}.',
        )


def _reference(request: LaunchRequest, parent: Run) -> Resolved:
    """What the run keeps of its reference: what lies before the rewound phase."""
    check_reference(request, parent)
    found = latest_artifacts(parent.pk)
    left = [kind for phase in before(Phase(request.rewind_to or Phase.MATERIALIZE)) for kind in LEAVES.get(phase, ())]
    benchmark = subset = impl = None
    files: tuple[dict[str, Any], ...] = ()
    if "BenchmarkResolved" in left:
        benchmark = Benchmark.objects.get(pk=found["BenchmarkResolved"]["benchmark_id"])
    elif not request.source:
        files = tuple(parent.launch.get("files") or ())
    if "DatasetTasksArtifact" in left:
        subset = Subset.objects.get(pk=found["DatasetTasksArtifact"]["subset_id"])
        if request.impl:
            impl = find_impl(subset, request.impl)
    if "AtomizeArtifact" in left and impl is None:
        impl = Impl.objects.get(pk=found["AtomizeArtifact"]["impl_id"])
    return Resolved(benchmark, subset, impl, files, parent)


def _body(request: LaunchRequest, found: Resolved) -> dict[str, Any]:
    """The body as accepted, with what it resolved to and without secrets."""
    body: dict[str, Any] = {"model": request.model.public(), "concurrency": request.concurrency}
    for name in (
        "prompt",
        "benchmark",
        "subset",
        "impl",
        "source",
        "metadata",
        "sample",
        "rewind_to",
        "instructions",
        "run_group",
    ):
        if value := getattr(request, name):
            body[name] = value
    if request.overrides:
        body["overrides"] = {name: body.get(name, getattr(request, name)) for name in request.overrides}
    if found.files:
        body["files"] = list(found.files)
    if request.reference:
        body[request.mode.value] = request.reference
    return body


def _title(request: LaunchRequest, found: Resolved) -> str:
    if request.title:
        return request.title
    if found.benchmark and found.subset:
        name = found.subset.name
        return found.benchmark.name if name == "default" else f"{found.benchmark.name} / {name}"
    first = (request.prompt.splitlines() or [""])[0].strip()
    return (first or (found.files[0]["name"] if found.files else request.source or "Run"))[:200]

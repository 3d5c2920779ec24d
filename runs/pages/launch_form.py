"""The launch form as values: what was typed, and the same launch as the API's body. Pure: no database, no request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from benchwright.lib.errors import BenchwrightError

SOURCES = ("describe", "registry", "upload")
MODEL_KINDS = ("litellm", "endpoint", "local", "control")


class FormError(BenchwrightError):
    """A field of the form can't be read."""

    code = "invalid_field"


@dataclass(frozen=True)
class LaunchForm:
    """What the person typed, as text; empty means not given. Field names are the form's input names."""

    source: str = "describe"  # describe | registry | upload
    prompt: str = ""
    source_url: str = ""
    benchmark: str = ""
    subset: str = ""
    impl: str = ""
    model_kind: str = "litellm"  # litellm | endpoint | local | control; local is an endpoint this machine serves
    litellm_model: str = ""
    litellm_key: str = ""
    base_url: str = ""
    endpoint_model: str = ""
    endpoint_key: str = ""
    local_model: str = ""
    control: str = "oracle"
    driver: str = ""
    harness: str = "benchwright"
    compute: str = "default"
    sample_limit: str = ""
    sample_seed: str = ""
    concurrency: str = ""
    trials_k: str = ""
    aggregator: str = "any_pass"
    aggregator_field: str = ""
    aggregator_threshold: str = ""
    limit_run_cost: str = ""
    limit_run_duration: str = ""
    limit_attempt_duration: str = ""
    limit_task_attempts: str = ""
    temperature: str = ""
    max_tokens: str = ""
    visibility: str = "private"
    metadata: str = ""
    idempotency_key: str = ""

    @property
    def advanced_open(self) -> bool:
        """Whether anything under Advanced differs from its default: then it must not start folded."""
        first = next(i for i, field in enumerate(fields(self)) if field.name == "driver")
        advanced = [field for field in fields(self)[first:] if field.name != "idempotency_key"]
        return any(getattr(self, field.name) != field.default for field in advanced)


def read(data: Mapping[str, Any], defaults: Mapping[str, str] | None = None) -> LaunchForm:
    """The form from a POST or from the query of a link. Unknown names are left to the API to refuse."""
    values = {field.name: str(field.default) for field in fields(LaunchForm)} | dict(defaults or {})
    for name in values:
        given = data.get(name)
        if given is not None:
            values[name] = str(given).strip().replace("\r\n", "\n")
    for name, known in (("source", SOURCES), ("model_kind", MODEL_KINDS)):
        if values[name] not in known:
            values[name] = known[0]  # a link with a wrong word still opens the form
    return LaunchForm(**values)


def body(form: LaunchForm, local_models: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The launch as POST /v1/runs takes it, without uploaded files. Raises FormError naming the field.

    `local_models`: {name: base URL} of the models that this machine serves itself.
    """
    out: dict[str, Any] = {"model": _model(form, local_models or {})}
    if form.source == "registry":
        for name in ("benchmark", "subset", "impl"):
            if getattr(form, name):
                out[name] = getattr(form, name)
    else:
        if form.prompt:
            out["prompt"] = form.prompt
        if form.source == "describe" and form.source_url:
            out["source"] = form.source_url
    if form.driver:
        out["driver"] = form.driver
    if form.harness and form.harness != "benchwright":
        out["harness"] = form.harness
    if form.compute and form.compute not in ("default", "auto"):
        out["compute"] = form.compute
    if form.visibility:
        out["visibility"] = form.visibility
    if form.concurrency:
        out["concurrency"] = _whole(form.concurrency, "concurrency")
    sample = {}
    if form.sample_limit:
        sample["limit"] = _whole(form.sample_limit, "sample.limit")
    if form.sample_seed:
        sample["seed"] = _whole(form.sample_seed, "sample.seed", least=None)
    if sample:
        out["sample"] = sample
    trials = _trials(form)
    if trials:
        out["trials"] = trials
    limits = _limits(form)
    if limits:
        out["limits"] = limits
    metadata = _metadata(form.metadata)
    if metadata:
        out["metadata"] = metadata
    return out


def _model(form: LaunchForm, local_models: Mapping[str, str]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if form.temperature:
        params["temperature"] = _number(form.temperature, "model.params.temperature")
    if form.max_tokens:
        params["max_tokens"] = _whole(form.max_tokens, "model.params.max_tokens")
    model: dict[str, Any]
    if form.model_kind == "control":
        return {"source": "control", "identifier": f"control/{form.control}"}
    if form.model_kind == "endpoint":
        model = {"source": "endpoint", "identifier": form.endpoint_model, "base_url": form.base_url}
        if form.endpoint_key:
            model["api_key"] = form.endpoint_key
    elif form.model_kind == "local":
        if form.local_model not in local_models:
            raise FormError("No such local model runs here.", field="model", hint="Pick another kind of model.")
        model = {"source": "endpoint", "identifier": form.local_model, "base_url": local_models[form.local_model]}
    else:
        model = {"source": "litellm", "identifier": form.litellm_model}
        if form.litellm_key:
            model["api_key"] = form.litellm_key
    if params:
        model["params"] = params
    return model


def _trials(form: LaunchForm) -> dict[str, Any]:
    k = _whole(form.trials_k, "trials") if form.trials_k else 1
    if k == 1 and form.aggregator == "any_pass":
        return {}
    aggregator: dict[str, Any] = {"name": form.aggregator}
    if form.aggregator_field:
        aggregator["field" if form.aggregator != "weighted_mean" else "weight"] = form.aggregator_field
    if form.aggregator_threshold:
        aggregator["threshold"] = _number(form.aggregator_threshold, "trials")
    return {"plan": {"k": k}, "aggregator": aggregator}


def _limits(form: LaunchForm) -> dict[str, Any]:
    limits: dict[str, dict[str, Any]] = {}
    for name, level, quantity in (
        ("limit_run_cost", "run", "cost"),
        ("limit_run_duration", "run", "duration"),
        ("limit_attempt_duration", "attempt", "duration"),
    ):
        if getattr(form, name):
            limits.setdefault(level, {})[quantity] = _number(getattr(form, name), f"limits.{level}.{quantity}")
    if form.limit_task_attempts:
        limits.setdefault("task", {})["attempts"] = _whole(form.limit_task_attempts, "limits.task.attempts")
    return limits


def _metadata(text: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        key, mark, value = line.partition("=")
        if not mark or not key.strip():
            raise FormError(
                f"Metadata line {line.strip()!r} has no key.", field="metadata", hint="Write key=value, one a line."
            )
        out[key.strip()] = value.strip()
    return out


def _whole(text: str, field: str, least: int | None = 1) -> int:
    try:
        number = int(text.replace(",", ""))
    except ValueError:
        raise FormError(f"{text!r} is not a whole number.", field=field) from None
    if least is not None and number < least:
        raise FormError(f"{field} must be {least} or more.", field=field)
    return number


def _number(text: str, field: str) -> float:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        raise FormError(f"{text!r} is not a number.", field=field) from None
    if number != number or number in (float("inf"), float("-inf")) or number < 0:
        raise FormError(f"{field} must be a number from 0 up.", field=field)
    return number

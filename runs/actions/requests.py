"""The typed input of a launch. The form and the API both build it from a plain dict, so both refuse the same things."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from registry.vocabulary import Visibility
from runs.actions.reentry import reentry_body
from runs.errors import LaunchRefused
from runs.limits.parse import parse_limits
from runs.vocabulary import HarnessName, Mode, ModelSource

KEYS = (
    "prompt",
    "benchmark",
    "subset",
    "impl",
    "replay",
    "fork",
    "rewind_to",
    "instructions",
    "overrides",
    "model",
    "driver",
    "harness",
    "compute",
    "limits",
    "constraints",
    "trials",
    "metadata",
    "visibility",
    "sample",
    "concurrency",
    "run_group",
    "files",
    "source",
    "title",
)
RETIRED = {"operator": "driver", "agent": "driver"}
MODEL_KEYS = ("source", "identifier", "base_url", "api_key", "headers", "params", "price", "seed", "label")
PARAM_KEYS = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "min_p",
)
PROXYS_OWN = {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding"}
CONTROLS = ("control/oracle", "control/empty", "control/random")
COMPUTES = ("local", "e2b", "sandbox0", "default", "auto")
MAX_CONCURRENCY = 512


@dataclass(frozen=True)
class ModelChoice:
    """The system under test. `api_key` and what `headers` hold never leave this object but into the run's sealed
    secrets."""

    source: ModelSource
    identifier: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    price: dict[str, str] | None = None
    seed: int = 0
    label: str = ""

    def public(self) -> dict[str, Any]:
        """What the log and the pages may hold."""
        out: dict[str, Any] = {"source": self.source.value, "identifier": self.identifier}
        for name in ("base_url", "params", "price", "label"):
            if value := getattr(self, name):
                out[name] = value
        if self.headers:
            out["headers"] = sorted(self.headers)  # their names: they may choose what is measured
        if self.source is ModelSource.CONTROL:
            out["seed"] = self.seed
        return out


# A replay or fork that names no model measures its reference's.
INHERITED = ModelChoice(source=ModelSource.CONTROL, identifier="")


@dataclass(frozen=True)
class LaunchRequest:
    """A launch that is well-formed. Whether what it names exists is for the verb to find out."""

    mode: Mode
    model: ModelChoice
    prompt: str = ""
    benchmark: str | None = None
    subset: str | None = None
    impl: str | None = None
    reference: str | None = None  # replay or fork: the run's id
    rewind_to: str | None = None
    instructions: str = ""
    overrides: tuple[str, ...] = ()  # of a fork: the keys that were given there
    key_of: UUID | None = None  # the run whose key this one uses too
    driver: str = ""
    harness: HarnessName = HarnessName.BENCHWRIGHT
    compute: str = "default"
    limits: dict[str, dict[str, float]] = field(default_factory=dict)
    trials: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    visibility: Visibility = Visibility.PRIVATE
    sample: dict[str, Any] = field(default_factory=dict)
    concurrency: int = 32
    run_group: str = ""
    files: tuple[str, ...] = ()
    source: str | None = None
    title: str = ""


def launch_request(body: Any) -> LaunchRequest:
    """Parses a launch body. Unknown, retired and misspelt keys are refused with the nearest valid one."""
    if not isinstance(body, dict):
        raise LaunchRefused("The body of a launch is a JSON object.")
    _known(body, KEYS, "")
    mode = _mode(body)
    body = reentry_body(body)
    limits, most = parse_limits(body.get("limits"), body.get("constraints"))
    sample = _sample(body.get("sample"), most, body.get("metadata"))
    return LaunchRequest(
        mode=mode,
        model=INHERITED if mode in (Mode.REPLAY, Mode.FORK) and not body.get("model") else _model(body.get("model")),
        prompt=_text(body, "prompt", 20_000),
        benchmark=_optional(body, "benchmark"),
        subset=_optional(body, "subset"),
        impl=_optional(body, "impl"),
        reference=_optional(body, "replay") or _optional(body, "fork"),
        rewind_to=_optional(body, "rewind_to"),
        instructions=_text(body, "instructions", 20_000),
        overrides=tuple(body.get("overrides") or ()),
        driver=_driver(body.get("driver")),
        harness=_choice(body, "harness", HarnessName, HarnessName.BENCHWRIGHT),
        compute=_one_of(body, "compute", COMPUTES, "default"),
        limits=limits,
        trials=body.get("trials"),
        metadata=_object(body, "metadata"),
        visibility=_choice(body, "visibility", Visibility, Visibility.PRIVATE),
        sample=sample,
        concurrency=_whole(body, "concurrency", 32, 1, MAX_CONCURRENCY),
        run_group=_text(body, "run_group", 100),
        files=_files(body.get("files")),
        source=_url(body.get("source")),
        title=_text(body, "title", 200),
    )


def _known(given: dict[str, Any], keys: tuple[str, ...], prefix: str) -> None:
    for key in given:
        if key in keys:
            continue
        if not prefix and key in RETIRED:
            raise LaunchRefused(
                f"{key!r} is retired: the agent that executes a run's phases is the driver.",
                code="unknown_key",
                field=key,
                hint=f"Use {RETIRED[key]!r}.",
            )
        near = difflib.get_close_matches(str(key), keys, 1, 0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(keys)}."
        raise LaunchRefused(
            f"There is no key {prefix + str(key)!r}.", code="unknown_key", field=prefix + str(key), hint=hint
        )


def _mode(body: dict[str, Any]) -> Mode:
    named = [key for key in ("benchmark", "replay", "fork") if body.get(key)]
    if len(named) > 1:
        raise LaunchRefused(f"A launch is one of four kinds; {' and '.join(named)} don't go together.", field=named[1])
    if "replay" in named:
        return Mode.REPLAY
    if "fork" in named:
        return Mode.FORK
    if "benchmark" in named:
        return Mode.PINNED
    if body.get("prompt") or body.get("files") or body.get("source"):
        return Mode.NATURAL_LANGUAGE
    raise LaunchRefused(
        "Say what to measure.",
        code="nothing_to_measure",
        field="prompt",
        hint="Give a prompt, files, a source URL, a benchmark, or a run to replay or fork.",
    )


def _model(given: Any) -> ModelChoice:
    if isinstance(given, str) and given:
        kind = ModelSource.CONTROL if given.startswith("control/") else ModelSource.LITELLM
        given = {"source": kind.value, "identifier": given}
    if not isinstance(given, dict) or not given:
        raise LaunchRefused(
            "Pick the model to measure.",
            code="model_missing",
            field="model",
            hint='For example {"source": "control", "identifier": "control/oracle"}.',
        )
    if "secret" in given:
        raise LaunchRefused(
            "No secrets are kept here to be named by a launch.",
            code="unknown_key",
            field="model.secret",
            hint="Give the key itself as model.api_key: it is sealed for this run.",
        )
    _known(given, MODEL_KEYS, "model.")
    identifier = given.get("identifier")
    if not isinstance(identifier, str) or not identifier.strip() or len(identifier) > 200:
        raise LaunchRefused("model.identifier must name the model.", code="model_missing", field="model.identifier")
    named = given.get("source") or ("endpoint" if given.get("base_url") else "litellm")
    if named not in set(ModelSource):
        raise LaunchRefused(
            f"There is no model source {named!r}.", field="model.source", hint=f"Known: {', '.join(ModelSource)}."
        )
    source = ModelSource(named)
    if source is ModelSource.CONTROL and identifier not in CONTROLS:
        raise LaunchRefused(
            f"There is no control {identifier!r}.", field="model.identifier", hint=f"Known: {', '.join(CONTROLS)}."
        )
    base_url = _url(given.get("base_url"), "model.base_url")
    if source is ModelSource.ENDPOINT and not base_url:
        raise LaunchRefused(
            "An endpoint needs its base URL.", field="model.base_url", hint="For example http://127.0.0.1:8000/v1."
        )
    params = given.get("params") or {}
    if not isinstance(params, dict):
        raise LaunchRefused("model.params must be an object.", field="model.params")
    _known(params, PARAM_KEYS, "model.params.")
    for key in ("api_key", "label"):
        if given.get(key) is not None and not isinstance(given[key], str):
            raise LaunchRefused(f"model.{key} must be text.", field=f"model.{key}")
    headers = _headers(given.get("headers"), source)
    return ModelChoice(
        source=source,
        identifier=identifier.strip(),
        base_url=base_url,
        api_key=given.get("api_key") or None,
        headers=headers,
        params=params,
        price=_price(given.get("price")),
        seed=_whole(given, "seed", 0, 0, 2**53),
        label=given.get("label") or "",
    )


def _headers(given: Any, source: ModelSource) -> dict[str, str]:
    headers = given or {}
    if not isinstance(headers, dict) or any(not isinstance(v, str) for v in headers.values()) or len(headers) > 20:
        raise LaunchRefused("model.headers must be an object of at most 20 texts.", field="model.headers")
    if headers and source is ModelSource.CONTROL:
        raise LaunchRefused("A control sends nothing, so it takes no headers.", field="model.headers")
    for name, value in headers.items():
        if name.lower() in PROXYS_OWN:
            raise LaunchRefused(f"{name} is set by the model proxy.", field=f"model.headers.{name}")
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", name) or not re.fullmatch(
            r"[\t\x20-\x7e]{0,4000}", value
        ):
            raise LaunchRefused(f"{name[:100]!r} is not a usable header.", field="model.headers")
    return headers


def _price(given: Any) -> dict[str, str] | None:
    if given is None:
        return None
    from benchwright.lib.money import usd

    if not isinstance(given, dict):
        raise LaunchRefused("model.price must be an object.", field="model.price")
    _known(given, ("input_per_token", "output_per_token"), "model.price.")
    try:
        return {k: str(usd(str(v))) for k, v in given.items()}
    except ValueError as e:
        raise LaunchRefused(f"model.price: {e}.", field="model.price") from None


def _sample(given: Any, most: int | None, metadata: Any) -> dict[str, Any]:
    sample = given or {}
    if not isinstance(sample, dict):
        raise LaunchRefused("sample must be an object.", field="sample")
    _known(sample, ("limit", "indices", "seed"), "sample.")
    out: dict[str, Any] = {}
    caps = [most] if most else []
    if "limit" in sample:
        caps.append(_whole(sample, "limit", 0, 1, 10**9, "sample."))
    if isinstance(metadata, dict) and isinstance(metadata.get("limit"), int) and metadata["limit"] > 0:
        caps.append(metadata["limit"])
    if caps:
        out["limit"] = min(caps)
    if sample.get("indices") is not None:
        indices = sample["indices"]
        if not isinstance(indices, list) or not indices or any(type(i) is not int or i < 0 for i in indices):
            raise LaunchRefused("sample.indices must be a list of row numbers from 0.", field="sample.indices")
        out["indices"] = sorted(set(indices))
    if sample.get("seed") is not None:
        out["seed"] = _whole(sample, "seed", 0, 0, 2**53, "sample.")
    return out


def _driver(given: Any) -> str:
    if given is None or given == "":
        return ""
    if not isinstance(given, str) or "://" not in given:
        raise LaunchRefused(
            "driver must be scheme://provider/model.", field="driver", hint="For example builtin://rules."
        )
    return given


def _files(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or any(not isinstance(f, str) for f in given) or len(given) > 50:
        raise LaunchRefused(
            "files must be a list of at most 50 file ids.",
            field="files",
            hint="Upload with POST /v1/files; it answers with the id.",
        )
    return tuple(given)


def _url(given: Any, name: str = "source") -> str | None:
    if given is None or given == "":
        return None
    parts = urlsplit(given) if isinstance(given, str) else None
    try:
        ok = parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        ok = False
    if not ok or parts is None or parts.username or parts.password:
        raise LaunchRefused(f"{name} must be an http or https URL without a password in it.", field=name)
    return str(given).rstrip("/") if name == "model.base_url" else str(given)


def _optional(body: dict[str, Any], key: str) -> str | None:
    value = body.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > 300:
        raise LaunchRefused(f"{key} must be text.", field=key)
    return value


def _text(body: dict[str, Any], key: str, limit: int) -> str:
    value = body.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > limit or "\0" in value:
        raise LaunchRefused(f"{key} must be text of at most {limit:,} characters.", field=key)
    return value.strip()


def _object(body: dict[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise LaunchRefused(f"{key} must be an object.", field=key)
    return value


def _whole(body: dict[str, Any], key: str, default: int, least: int, most: int, prefix: str = "") -> int:
    value = body.get(key)
    if value is None:
        return default
    if type(value) is not int or not least <= value <= most:
        raise LaunchRefused(f"{prefix}{key} must be a whole number from {least} to {most}.", field=prefix + key)
    return value


def _one_of(body: dict[str, Any], key: str, known: tuple[str, ...], default: str) -> str:
    value = body.get(key) or default
    if value not in known:
        near = difflib.get_close_matches(str(value), known, 1, 0.5)
        raise LaunchRefused(
            f"There is no {key} {value!r}.",
            field=key,
            hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}.",
        )
    return str(value)


def _choice(body: dict[str, Any], key: str, words: Any, default: Any) -> Any:
    return words(_one_of(body, key, tuple(words), str(default)))

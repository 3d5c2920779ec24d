"""What a gateway is told: route, retries, limits. And the same route as LiteLLM's YAML, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlsplit

from benchwright.lib.errors import BenchwrightError

KINDS = ("endpoint", "litellm", "control")
CONTROLS = ("oracle", "empty", "random")

# Values of `litellm_params` that name a place or a version; every other text in there may be a credential.
PLAIN_LITELLM_PARAMS = {"api_base", "api_version", "aws_region_name", "base_model", "custom_llm_provider"}
PLAIN_LITELLM_PARAMS |= {"organization", "project", "region_name", "vertex_location", "vertex_project"}
# Set per request by the gateway itself; a value here would fight it, or bring a second layer of retries.
RESERVED_PARAMS = {"api_key", "base_url", "extra_headers", "fallbacks", "headers", "input", "max_retries", "messages"}
RESERVED_PARAMS |= {
    "model",
    "n",
    "num_retries",
    "prompt",
    "stream",
    "stream_options",
    "timeout",
    "tool_choice",
    "tools",
}


class RouteRefused(BenchwrightError):
    """The gateway can't use this configuration; `field` names the part."""

    code = "model_route_refused"
    status = 400


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """A price set by the account, US dollars per token."""

    input_per_token: Decimal
    output_per_token: Decimal
    cached_per_token: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Where calls go. `params`: the sampling set at Attach. `base_url` has no trailing slash."""

    kind: str
    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, Any] = field(default_factory=dict)
    litellm_params: Mapping[str, Any] = field(default_factory=dict, repr=False)
    control: str | None = None
    seed: int = 0
    references: str | None = None
    price: OwnPrice | None = None

    def secrets(self) -> list[str]:
        """Every text in here that may be a credential, for redaction."""
        out = [self.api_key] if self.api_key else []
        for value in self.headers.values():
            out += [value, value.removeprefix("Bearer ")]
        out += [str(v) for k, v in self.litellm_params.items() if isinstance(v, str) and k not in PLAIN_LITELLM_PARAMS]
        return out


@dataclass(frozen=True, slots=True)
class Retries:
    """At most `max` more tries after the first, waiting up to `base_s` · 2ⁿ seconds, never over `cap_s`."""

    max: int = 4
    base_s: float = 0.5
    cap_s: float = 30.0


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """The whole of gateway.json."""

    run: str
    secret: bytes = field(repr=False)
    route: Route = field()
    retries: Retries = field(default_factory=Retries)
    timeout_s: float = 600.0
    max_concurrency: int = 32
    limits: Mapping[str, Any] = field(default_factory=dict)


def read_config(raw: Any) -> GatewayConfig:
    """Checks a parsed gateway.json. Raises RouteRefused naming the field."""
    _only(raw, {"run", "secret", "route", "retries", "timeout_s", "max_concurrency", "limits", "references"}, "")
    try:
        secret = bytes.fromhex(raw.get("secret", ""))
    except (ValueError, TypeError):
        secret = b""
    if len(secret) < 16:
        raise RouteRefused("The key secret must be at least 16 bytes in hex.", field="secret")
    route = dict(raw["route"]) if isinstance(raw.get("route"), dict) else {}
    if "references" in raw:
        route.setdefault("references", raw["references"])
    retries = _mapping(raw.get("retries"), "retries")
    _only(retries, {"max", "base_s", "cap_s"}, "retries")
    return GatewayConfig(
        run=str(raw.get("run", "")),
        secret=secret,
        route=read_route(route),
        retries=Retries(
            max=int(_number(retries.get("max", 4), "retries.max", 0, 20)),
            base_s=_number(retries.get("base_s", 0.5), "retries.base_s", 0, 600),
            cap_s=_number(retries.get("cap_s", 30.0), "retries.cap_s", 0, 3600),
        ),
        timeout_s=_number(raw.get("timeout_s", 600.0), "timeout_s", 0.01, 86400),
        max_concurrency=int(_number(raw.get("max_concurrency", 32), "max_concurrency", 1, 10000)),
        limits=_mapping(raw.get("limits"), "limits"),
    )


def read_route(raw: Any) -> Route:
    """Checks a route. Raises RouteRefused naming the field."""
    known = set(Route.__dataclass_fields__)
    _only(raw, known, "route")
    kind = raw.get("kind")
    if kind not in KINDS:
        raise RouteRefused(f"A route is one of {', '.join(KINDS)}, not {kind!r}.", field="route.kind")
    model = raw.get("model") or ("control" if kind == "control" else None)
    if not isinstance(model, str) or not model.strip() or len(model) > 500:
        raise RouteRefused("The route needs the model's name at the provider.", field="route.model")
    control = raw.get("control")
    if kind == "control" and control not in CONTROLS:
        raise RouteRefused(f"A control is one of {', '.join(CONTROLS)}, not {control!r}.", field="route.control")
    base_url = _base_url(raw.get("base_url"), required=kind == "endpoint")
    api_key = raw.get("api_key") or None
    if api_key is not None and not _header_safe(api_key):
        raise RouteRefused("The key holds characters that no HTTP header can carry.", field="route.api_key")
    headers = _mapping(raw.get("headers"), "route.headers")
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not _header_safe(value):
            raise RouteRefused(f"{name!r} is not a usable header.", field="route.headers")
    params = _mapping(raw.get("params"), "route.params")
    litellm_params = _mapping(raw.get("litellm_params"), "route.litellm_params")
    for where, names in (("params", params), ("litellm_params", litellm_params)):
        if taken := sorted(RESERVED_PARAMS & set(names)):
            raise RouteRefused(f"{taken[0]} is not a parameter of a route.", field=f"route.{where}.{taken[0]}")
    return Route(
        kind=kind,
        model=model,
        base_url=base_url,
        api_key=api_key,
        headers=dict(headers),
        params={k: v for k, v in params.items() if v is not None},
        litellm_params=dict(litellm_params),
        control=control,
        seed=int(_number(raw.get("seed") or 0, "route.seed", -(2**63), 2**63)),
        references=raw.get("references"),
        price=_price(raw.get("price")),
    )


def litellm_yaml(route: Route) -> str:
    """The route as a LiteLLM proxy configuration. Secrets stay names of environment variables."""
    import yaml  # the gateway itself never needs it

    params: dict[str, Any] = {"model": route.model if route.kind != "endpoint" else f"openai/{route.model}"}
    if route.kind == "control":
        params["model"] = f"benchwright-control/{route.control}"
    if route.base_url:
        params["api_base"] = route.base_url
    if route.api_key:
        params["api_key"] = "os.environ/BENCHWRIGHT_MODEL_KEY"
    if route.headers:
        params["extra_headers"] = {k: f"os.environ/{_env('HEADER', k)}" for k in sorted(route.headers)}
    for name, value in sorted(route.litellm_params.items()):
        plain = name in PLAIN_LITELLM_PARAMS or not isinstance(value, (str, dict, list))
        params[name] = value if plain else f"os.environ/{_env('PARAM', name)}"
    params |= {k: route.params[k] for k in sorted(route.params)}
    if route.price is not None:
        # LiteLLM reads numbers here; the exact text stays in the run's own record.
        params["input_cost_per_token"] = float(route.price.input_per_token)
        params["output_cost_per_token"] = float(route.price.output_per_token)
    out = {
        "model_list": [{"model_name": "sut", "litellm_params": params}],
        "litellm_settings": {"num_retries": 0, "drop_params": False, "cache": False},
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
    }
    return yaml.safe_dump(out, sort_keys=False, allow_unicode=True, width=120)


def _env(kind: str, name: str) -> str:
    return f"BENCHWRIGHT_{kind}_" + re.sub(r"[^A-Z0-9]+", "_", name.upper())


def _base_url(value: Any, *, required: bool) -> str | None:
    if value in (None, ""):
        if required:
            raise RouteRefused("An endpoint needs its base URL, such as https://host/v1.", field="route.base_url")
        return None
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        ok = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        ok = False
    if not ok or re.search(r"[\s\x00-\x1f]", value):
        raise RouteRefused("The base URL is not an http(s) URL.", field="route.base_url")
    if parts is not None and (parts.username or parts.password or parts.query or parts.fragment):
        # A credential in a URL ends up in logs and artifacts.
        message = "The base URL ends with its path: a credential goes into api_key or headers."
        raise RouteRefused(message, field="route.base_url")
    return str(value).rstrip("/")


def _price(raw: Any) -> OwnPrice | None:
    if raw is None:
        return None
    _only(raw, {"input_per_token", "output_per_token", "cached_per_token"}, "route.price")

    def read(name: str) -> Decimal:
        value = raw.get(name)
        try:
            if isinstance(value, (float, bool)):
                raise InvalidOperation
            number = Decimal(value)
        except (InvalidOperation, TypeError, ValueError):
            number = Decimal("NaN")
        if not number.is_finite() or number < 0:
            message = f"{name} must be dollars per token as text, such as 0.0000025."
            raise RouteRefused(message, field=f"route.price.{name}")
        return number

    cached = read("cached_per_token") if raw.get("cached_per_token") is not None else None
    return OwnPrice(read("input_per_token"), read("output_per_token"), cached)


def _number(value: Any, where: str, low: float, high: float) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high:  # never true of NaN
        return value
    raise RouteRefused(f"{where} must be a number from {low} to {high}.", field=where)


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    value = {} if value is None else value
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise RouteRefused(f"{where} must be an object.", field=where)
    return value


def _only(raw: Any, known: set[str], where: str) -> None:
    _mapping(raw, where or "gateway.json")
    if unknown := sorted(set(raw) - known):
        name = f"{where}.{unknown[0]}" if where else unknown[0]
        raise RouteRefused(f"{name} is not a known setting.", field=name)


def _header_safe(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"[\t\x20-\x7e]*", value))

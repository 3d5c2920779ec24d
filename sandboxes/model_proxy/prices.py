"""What a model costs: the account's own price, or LiteLLM's bundled map, read without importing LiteLLM.

Standard library only. Every amount is an exact Decimal in US dollars per token.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandboxes.model_proxy.usage import Usage

if TYPE_CHECKING:
    from sandboxes.model_proxy.config import Route

PRICE_FILE = "model_prices_and_context_window_backup.json"
_TIER = re.compile(r"input_cost_per_token_above_([0-9]+)k_tokens")
_TOKEN_MODES = {"chat", "completion", "responses", "embedding", None}


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars per token. `None` means: charged like plain input (cached, cache_written) or plain output (reasoning)."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    cache_written: Decimal | None = None
    reasoning: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """A model's rates, dearer ones above a prompt length, and where they come from."""

    base: Rates
    source: str
    tiers: tuple[tuple[int, Rates], ...] = ()  # (prompt tokens above which, rates), longest first
    longest: int | None = None  # tokens of the longest answer, where the map says so

    def cost(self, usage: Usage, *, embedding: bool = False) -> Decimal | None:
        """Dollars for a call; None when its tokens are not known. Embeddings have no output to pay."""
        output = 0 if embedding and usage.output is None else usage.output
        if usage.input is None or output is None:
            return None
        rates = self.rates(usage.input)
        cached = min(usage.cached or 0, usage.input)
        written = min(usage.cache_written or 0, usage.input - cached)
        reasoning = min(usage.reasoning or 0, output)
        return (
            (usage.input - cached - written) * rates.input
            + cached * _or(rates.cached, rates.input)
            + written * _or(rates.cache_written, rates.input)
            + (output - reasoning) * rates.output
            + reasoning * _or(rates.reasoning, rates.output)
        )

    def rates(self, prompt_tokens: int) -> Rates:
        """The rates for a prompt of that length."""
        return next((rates for above, rates in self.tiers if prompt_tokens > above), self.base)


def amount(value: Decimal | None) -> str | None:
    """A plain decimal string without exponent or trailing zeros."""
    if value is None:
        return None
    out = format(value, "f")
    return out.rstrip("0").rstrip(".") or "0" if "." in out else out


def find_price(route: Route) -> Price | None:
    """The price of a route's model, None when it is unknown.

    An `endpoint` may serve anything under any name: it has a price only when one was set, or when its model is named
    with a provider prefix exactly as in the map.
    """
    if route.price is not None:
        own = route.price
        return Price(Rates(own.input_per_token, own.output_per_token, own.cached_per_token), "override")
    if route.kind == "control" or route.params.get("service_tier") not in (None, "auto", "default"):
        return None
    entry = _entry(route.model, exact=route.kind == "endpoint")
    return None if entry is None else _from_entry(entry)


def _entry(model: str, *, exact: bool) -> dict[str, Any] | None:
    prices = _read_map()
    prefix, slash, rest = model.partition("/")
    found = prices.get(model)
    if exact:
        return found if isinstance(found, dict) and slash and _serves(found, prefix) else None
    if found is None and slash:
        found = prices.get(rest)
        if not isinstance(found, dict) or not _serves(found, prefix):
            return None
    return found if isinstance(found, dict) else None


def _serves(entry: dict[str, Any], prefix: str) -> bool:
    provider = str(entry.get("litellm_provider", ""))
    return provider == prefix or provider.startswith((f"{prefix}_", f"{prefix}-"))


def _from_entry(entry: dict[str, Any]) -> Price | None:
    if entry.get("mode") not in _TOKEN_MODES:
        return None
    base = _rates(entry, "")
    if base is None:
        return None
    tiers = []
    for name in entry:
        match = _TIER.fullmatch(name)
        rates = _rates(entry, f"_above_{match[1]}k_tokens", base) if match else None
        if match and rates:
            tiers.append((int(match[1]) * 1000, rates))
    longest = entry.get("max_output_tokens")
    return Price(
        base,
        f"litellm {_version()}",
        tuple(sorted(tiers, key=lambda t: -t[0])),
        longest if type(longest) is int and longest > 0 else None,
    )


def _rates(entry: dict[str, Any], suffix: str, base: Rates | None = None) -> Rates | None:
    def of(name: str, otherwise: Decimal | None) -> Decimal | None:
        value = entry.get(name + suffix)
        return Decimal(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else otherwise

    price_in = of("input_cost_per_token", base.input if base else None)
    price_out = of("output_cost_per_token", base.output if base else None)
    if price_out is None and entry.get("mode") == "embedding":
        price_out = Decimal(0)
    if price_in is None or price_out is None:
        return None
    return Rates(
        price_in,
        price_out,
        of("cache_read_input_token_cost", base.cached if base else None),
        of("cache_creation_input_token_cost", base.cache_written if base else None),
        of("output_cost_per_reasoning_token", base.reasoning if base else None),
    )


def _read_map() -> dict[str, Any]:
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    path = Path(spec.submodule_search_locations[0]) / PRICE_FILE
    try:
        with path.open(encoding="utf-8") as file:
            prices = json.load(file, parse_float=Decimal)
    except (OSError, ValueError):
        return {}
    return prices if isinstance(prices, dict) else {}


def _version() -> str:
    try:
        return importlib.metadata.version("litellm")
    except importlib.metadata.PackageNotFoundError:
        return "?"


def _or(value: Decimal | None, otherwise: Decimal) -> Decimal:
    return otherwise if value is None else value

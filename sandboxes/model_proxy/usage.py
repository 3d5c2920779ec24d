"""Tokens out of a provider's answer. A number that is not there is unknown, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `input` includes `cached` and `cache_written`; `output` includes `reasoning`."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    cache_written: int | None = None

    def record(self) -> dict[str, int | None]:
        """The `usage` of a call's record."""
        out = {"input": self.input, "output": self.output, "cached": self.cached, "reasoning": self.reasoning}
        if self.cache_written is not None:
            out["cache_written"] = self.cache_written
        return out


UNKNOWN = Usage()


def read_usage(raw: Any) -> Usage:
    """Usage in the shape of chat completions (`prompt_tokens`) or responses (`input_tokens`); else unknown."""
    if not isinstance(raw, dict):
        return UNKNOWN
    details_in = raw.get("prompt_tokens_details") or raw.get("input_tokens_details")
    details_out = raw.get("completion_tokens_details") or raw.get("output_tokens_details")
    cached = _count(details_in, "cached_tokens")
    if cached is None:
        cached = _count(raw, "prompt_cache_hit_tokens")
    written = _count(details_in, "cache_creation_tokens")
    if written is None:
        written = _count(raw, "cache_creation_input_tokens")
    return Usage(
        input=_count(raw, "prompt_tokens", "input_tokens"),
        output=_count(raw, "completion_tokens", "output_tokens"),
        cached=cached,
        reasoning=_count(details_out, "reasoning_tokens"),
        cache_written=written,
    )


def _count(raw: Any, *names: str) -> int | None:
    if not isinstance(raw, dict):
        return None
    for name in names:
        value = raw.get(name)
        if type(value) is int and value >= 0:
            return value
    return None

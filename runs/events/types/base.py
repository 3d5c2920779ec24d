"""What every event is: frozen, closed, tagged by its name. Names and fields are for ever."""

from __future__ import annotations

from typing import Any

import msgspec


class Event(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", omit_defaults=False
):
    """One event's data. The tag is the class's name and is stored as the row's type."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Raw usage as the proxy measured it. None is unknown, never zero.

    `pays`: driver, model, sandbox, narration, judge or proxy_linger. `cost_usd`: an exact decimal as text, the sum over
    the calls whose price is known; `unknown_cost_calls` counts the others. `priced_at`: the price table's version.
    """

    pays: str
    requests: int = 0
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    cost_usd: str | None = None
    unknown_cost_calls: int = 0
    priced_at: str | None = None
    model_served: str | None = None
    provider: str | None = None


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text too big for the log: the blob's SHA-256, its size in bytes, and how it begins."""

    sha256: str
    size: int
    preview: str


JSON = Any

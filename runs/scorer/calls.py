"""What the proxy measured, by attempt: the only source of usage. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from benchwright.lib.money import text, usd
from runs.events.types.base import Usage

Attempt = tuple[int, int, int]  # (index, trial, attempt)


@dataclass
class CallBook:
    """The proxy's records of calls, kept until a result takes them. Each is taken once."""

    invocation: int
    _calls: dict[tuple[int, int], dict[int, list[dict[str, Any]]]] = field(default_factory=dict)  # by trial, attempt
    requests: int = 0
    ceilings: dict[tuple[int, int], str] = field(default_factory=dict)  # (index, trial) -> which one was passed

    def add(self, record: dict[str, Any]) -> None:
        """One `call` line of the gateway. Calls of other invocations and probes are not this sweep's."""
        key = record.get("key") or {}
        if key.get("invocation") != self.invocation or key.get("index", -1) < 0:
            return
        self.requests += 1
        error = record.get("error") or {}
        if error.get("kind") == "ceiling":
            self.ceilings[(key["index"], key["trial"])] = str(error.get("message") or "")[:300]
        attempts = self._calls.setdefault((key["index"], key["trial"]), {})
        attempts.setdefault(key["attempt"], []).append(record)

    def take(self, attempts: Iterable[Attempt]) -> Usage | None:
        """The usage of these attempts together, or None when the proxy saw no call of theirs."""
        found = []
        for index, trial, attempt in attempts:
            found += self._calls.get((index, trial), {}).pop(attempt, [])
        return usage_of(found) if found else None

    def left(self) -> list[Attempt]:
        """Attempts whose calls no result has taken yet."""
        return [(*key, attempt) for key, attempts in self._calls.items() for attempt in attempts]

    def forget(self, index: int, trial: int) -> None:
        """Drops what a settled trial left."""
        self.ceilings.pop((index, trial), None)
        self._calls.pop((index, trial), None)


def usage_of(records: list[dict[str, Any]]) -> Usage:
    """Sums; a number that any call leaves unknown is unknown in the sum, but for the cost, which counts what is
    known.
    """
    cost, unknown = Decimal(0), 0
    for record in records:
        # Known to cost nothing: a control is built in, and a call that was refused here never left.
        free = record.get("provider") == "control" or record.get("attempts") == 0
        known = Decimal(0) if free else usd(record.get("cost_usd"))
        if known is None:
            unknown += 1
        else:
            cost += known
    last = records[-1]
    return Usage(
        pays="model",
        requests=len(records),
        cost_usd=text(cost) if unknown < len(records) else None,
        unknown_cost_calls=unknown,
        priced_at=last.get("price_source"),
        model_served=last.get("model_served"),
        provider=last.get("provider"),
        **{name: _sum(records, name) for name in ("input", "output", "cached", "reasoning")},
    )


def _sum(records: list[dict[str, Any]], name: str) -> int | None:
    values = [(record.get("usage") or {}).get(name) for record in records if record.get("attempts") != 0]
    return None if any(v is None for v in values) else sum(values)  # type: ignore[arg-type]

"""Parameters a model refuses: dropped or renamed, once, remembered for the rest of the process, and on record."""

from __future__ import annotations

import re
from typing import Any

from sandboxes.model_proxy.faults import Fault

# Only what Attach set, or the gateway itself added, may be bent. A scorer's tools or response format mean something.
ADAPTABLE = (
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "reasoning_effort",
    "service_tier",
    "stream_options",
)
_RENAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_REFUSAL = re.compile(
    r"unsupported|n[o']t\s+support|unrecogni[sz]ed|unknown (?:parameter|argument|field|name)"
    r"|unexpected (?:keyword|parameter|argument|field)|extra (?:inputs|fields)|not (?:permitted|allowed)|deprecated"
    r"|cannot both be|no longer accepted|does not accept",
    re.IGNORECASE,
)


class Adaptations:
    """What this process learned about its model."""

    def __init__(self) -> None:
        self._steps: dict[str, str | None] = {}  # parameter -> its new name, None to drop it

    def apply(self, body: dict[str, Any]) -> list[str]:
        """Bends `body` in place; returns what was changed, such as `max_tokens→max_completion_tokens` or `-seed`."""
        if not self._steps:
            return []
        changed = []
        for name, new in self._steps.items():
            if name in body:
                value = body.pop(name)
                if new is None:
                    changed.append(f"-{name}")
                else:
                    body.setdefault(new, value)
                    changed.append(f"{name}→{new}")
        return changed

    def learn(self, fault: Fault, body: dict[str, Any]) -> bool:
        """Whether the fault blames a parameter of the `body` that was sent and a changed one is worth another try."""
        if fault.upstream_status not in (400, 422):
            return False
        name = _blamed(fault, body)
        if name is None or name in self._steps:
            return False
        new = _RENAMES.get(name)
        if new is not None and self._steps.get(new) == name:
            new = None  # refused under both names
        self._steps[name] = new
        return True


def _blamed(fault: Fault, body: dict[str, Any]) -> str | None:
    if not _REFUSAL.search(fault.message):
        return None
    if fault.param in ADAPTABLE and fault.param in body:
        return fault.param
    named = [(m.start(), n) for n in ADAPTABLE if n in body and (m := re.search(rf"\b{n}\b", fault.message))]
    if "both" in fault.message and ("top_p" in (n for _, n in named)):
        return "top_p"  # temperature is the one people meant
    return min(named)[1] if named else None

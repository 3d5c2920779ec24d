"""What a phase is: a function of the context that does its work and says how it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runs.pipeline.context import Context


@dataclass(frozen=True)
class Done:
    """A phase that worked. `cache_hit`: {run, seq} when its result was copied. `cell`: the hash under which others may
    reuse it, with the artifact it stands for."""

    cache_hit: dict[str, Any] | None = None
    cell: str | None = None
    artifact: str | None = None


# None: there was nothing to do in this kind of run.
Work = Callable[["Context"], Done | None]

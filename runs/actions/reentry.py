"""The bodies of replays and forks: which keys go with them, and how overrides become keys. Pure."""

from __future__ import annotations

import difflib
from typing import Any

from runs.errors import LaunchRefused
from runs.vocabulary import Phase

FORK_ONLY = ("rewind_to", "instructions", "overrides")
OVERRIDES = ("model", "source", "impl", "trials", "sample", "limits", "concurrency", "driver")
# What the reference pins. A key that could not be honoured is refused, not dropped.
PINNED_BY = {
    "replay": ("prompt", "files", "source", "benchmark", "subset", "impl", "sample"),
    "fork": ("prompt", "files", "benchmark", "subset"),
}
INSTEAD = {"prompt": "instructions", "sample": "a fork with sample", "impl": "a fork with impl"}
REWINDABLE = tuple(phase for phase in Phase if phase is not Phase.FORK)


def reentry_body(body: dict[str, Any]) -> dict[str, Any]:
    """The body with its overrides as ordinary keys. Raises LaunchRefused naming the key."""
    kind = "replay" if body.get("replay") else "fork" if body.get("fork") else None
    if kind != "fork":
        for key in FORK_ONLY:
            if body.get(key):
                raise LaunchRefused(f"{key} goes with fork.", field=key, hint='Give {"fork": run_id, …}.')
    if kind is None:
        return body
    for key in PINNED_BY[kind]:
        if body.get(key):
            instead = INSTEAD.get(key)
            raise LaunchRefused(
                f"A {kind} takes {key} from its reference.",
                field=key,
                hint=f"Leave it out, or use {instead}." if instead else "Leave it out.",
            )
    _rewind(body.get("rewind_to"))
    return _overridden(body)


def _rewind(name: Any) -> None:
    if name and name not in REWINDABLE:
        near = difflib.get_close_matches(str(name), REWINDABLE, 1, 0.4)
        raise LaunchRefused(
            f"There is no phase {name!r} to rewind to.",
            field="rewind_to",
            hint=f"Did you mean {near[0]!r}?" if near else f"Phases: {', '.join(REWINDABLE)}.",
        )


def _overridden(body: dict[str, Any]) -> dict[str, Any]:
    overrides = body.get("overrides") or {}
    if not isinstance(overrides, dict):
        raise LaunchRefused("overrides must be an object.", field="overrides")
    for key in overrides:
        if key not in OVERRIDES:
            near = difflib.get_close_matches(str(key), OVERRIDES, 1, 0.5)
            raise LaunchRefused(
                f"{key!r} can't be overridden.",
                code="unknown_key",
                field=f"overrides.{key}",
                hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(OVERRIDES)}.",
            )
        if body.get(key) is not None:
            raise LaunchRefused(f"{key} is given twice, once in overrides.", field=f"overrides.{key}")
    return {**body, **overrides, "overrides": sorted(overrides)}

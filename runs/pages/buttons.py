"""What the buttons of a run page do: one small function for each, all of one shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from runs.actions.halt import pause, stop
from runs.actions.resolve_review import resolve_review
from runs.actions.resume import resume


def _pause(account: Any, user: Any, run_id: UUID, form: Mapping[str, str]) -> None:
    pause(account, user, run_id)


def _resume(account: Any, user: Any, run_id: UUID, form: Mapping[str, str]) -> None:
    resume(account, user, run_id)


def _halt(account: Any, user: Any, run_id: UUID, form: Mapping[str, str]) -> None:
    stop(account, user, run_id)


def _review(account: Any, user: Any, run_id: UUID, form: Mapping[str, str]) -> None:
    resolve_review(account, user, run_id, form.get("review_resolution", "").strip())


BUTTONS: dict[str, Callable[[Any, Any, UUID, Mapping[str, str]], None]] = {
    "pause": _pause,
    "resume": _resume,
    "halt": _halt,
    "review": _review,
}

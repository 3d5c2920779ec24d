"""What the buttons of a run page do: one small function for each, all of one shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchwright.lib.errors import BenchwrightError
from registry.vocabulary import Visibility
from runs.actions.change_visibility import change_visibility
from runs.actions.halt import pause, resolve_review, resume, stop
from runs.models import Run

Button = Callable[[Run, str, Mapping[str, str]], None]


def _pause(run: Run, by: str, form: Mapping[str, str]) -> None:
    pause(run, by=by)


def _resume(run: Run, by: str, form: Mapping[str, str]) -> None:
    resume(run, by=by)


def _halt(run: Run, by: str, form: Mapping[str, str]) -> None:
    stop(run, by=by)


def _review(run: Run, by: str, form: Mapping[str, str]) -> None:
    words = form.get("review_resolution", "").strip()
    if not words:
        raise BenchwrightError("Say how to go on.", field="review_resolution", hint="Your words instruct the Driver.")
    resolve_review(run, words, by=by)


def _visibility(run: Run, by: str, form: Mapping[str, str]) -> None:
    asked = form.get("visibility", "")
    if asked not in set(Visibility):
        raise BenchwrightError("Pick who may see the run.", field="visibility")
    change_visibility(run, Visibility(asked), by=by)


BUTTONS: dict[str, Button] = {
    "pause": _pause,
    "resume": _resume,
    "halt": _halt,
    "review": _review,
    "visibility": _visibility,
}

"""The panel beside the launch form: the same checks as a launch, without launching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchwright.lib.errors import BenchwrightError
from billing.models import Account
from runs.actions.launch import check as check_launch
from runs.pages import plan
from runs.pages.launch_form import LaunchForm
from runs.pages.launch_request import preview_of
from runs.queries.launch_preview import preview

# Not mistakes: the form is simply not finished.
UNFINISHED = {
    "nothing_to_measure": "Say what to measure: in words, with an address, a file, or from the registry.",
    "model_missing": "Pick the model to measure.",
}


def check(account: Account | None, form: LaunchForm, told: Mapping[str, Any]) -> plan.Plan:
    """`told`: has_key and has_files, "1" when there is one. Never raises for something the person can mend."""
    try:
        request = preview_of(form, told.get("has_key") == "1", told.get("has_files") == "1")
        if account is None:
            return plan.Plan(waiting_for="Sign in to launch.")
        found = check_launch(account, request)
    except BenchwrightError as error:
        if error.code in UNFINISHED:
            return plan.Plan(waiting_for=UNFINISHED[error.code])
        if error.code == "model_key_missing":
            return plan.Plan(waiting_for=f"{error.message} {error.hint or ''}")
        return plan.Plan(error=error)
    ahead = preview(account, request, found)
    return plan.Plan(ready=True, phases=plan.phases(ahead.phases), facts=plan.facts(ahead))

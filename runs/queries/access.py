"""The run that this account may see, or *not found*: nobody learns whether an id exists."""

from __future__ import annotations

from uuid import UUID

from benchwright.lib.errors import NotFound
from billing.models import Account
from registry.vocabulary import Visibility
from runs.models import Run


def _missing() -> NotFound:
    return NotFound("There is no such run.", code="unknown_run", hint="It may be private to another account.")


def visible_run(account: Account | None, run_id: UUID | str) -> Run:
    """Own, unlisted or public. Raises NotFound."""
    run = get_run(run_id)
    if run.visibility == Visibility.PRIVATE and (account is None or run.account_id != account.pk):
        raise _missing()
    return run


def own_run(account: Account | None, run_id: UUID | str) -> Run:
    """A run of this account: what a verb may change. Raises NotFound."""
    run = get_run(run_id)
    if account is None or run.account_id != account.pk:
        raise _missing()
    return run


def get_run(run_id: UUID | str) -> Run:
    """Any run, whoever asks: for commands of the operator. Raises NotFound."""
    try:
        key = run_id if isinstance(run_id, UUID) else UUID(run_id)
    except ValueError:
        raise _missing() from None
    run = Run.objects.select_related("account", "user").filter(pk=key).first()
    if run is None:
        raise _missing()
    return run

"""A run's receipt, signed by this installation."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from benchwright.lib.signing import sign
from billing.models import Account
from runs.events.log import raw
from runs.projections.receipt import receipt
from runs.queries.access import visible_run


def signed_receipt(account: Account | None, run_id: UUID | str) -> dict[str, Any]:
    """`receipt`, and `signature` over its canonical text. Raises NotFound for a stranger."""
    run = visible_run(account, run_id)
    made = receipt(str(run.pk), raw(run.pk))
    return {"receipt": made, "signature": sign(made)}

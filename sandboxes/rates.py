"""What a second of a sandbox costs, by backend. Unknown is None, never zero."""

from __future__ import annotations

import os
from decimal import Decimal

from benchwright.lib.money import usd


def sandbox_cost(backend: str, seconds: float) -> Decimal | None:
    """Dollars for that time. `local` runs on your own machine and costs nothing here; the others need a rate:
    `BENCHWRIGHT_RATE_E2B`, `BENCHWRIGHT_RATE_SANDBOX0` in dollars a second."""
    rate = Decimal(0) if backend == "local" else usd(os.environ.get(f"BENCHWRIGHT_RATE_{backend.upper()}"))
    return None if rate is None else usd(rate * Decimal(str(round(seconds, 3))))

"""The one place where a call is let through to the provider.

Every attempt passes `enter` before a byte leaves and `leave` afterwards. Today it counts calls in flight; a ceiling on
money or tokens belongs here too: reserve the worst case in `enter`, settle it in `leave`.
"""

from __future__ import annotations

import asyncio
from collections import deque

from sandboxes.model_proxy.faults import Fault, FaultKind


class Admission:
    """At most `limit` calls in flight, first come first served.

    Additive increase, multiplicative decrease: a 429 halves the number, once per round of calls, and successes bring it
    back, so that the calls of one run don't fight each other over a provider's rate limit.
    """

    def __init__(self, limit: int) -> None:
        self.limit = max(1, limit)
        self.allowed = float(self.limit)
        self.in_flight = 0
        self._round = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> int:
        """Waits for a place. Returns the round to hand back to `leave`."""
        if self.in_flight < self._places() and not self._waiting:
            self.in_flight += 1
            return self._round
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._free()
            raise
        return self._round

    def leave(self, entered: int, fault: Fault | None = None) -> None:
        """Gives the place back; `fault` tells how the attempt ended."""
        if fault is None:
            if self.allowed < self.limit:
                self.allowed = min(self.limit, self.allowed + 1 / self.allowed)
        elif fault.kind is FaultKind.RATE_LIMITED and entered == self._round:
            self.allowed = max(1.0, self.allowed / 2)
            self._round += 1
        self._free()

    def _places(self) -> int:
        return int(self.allowed)

    def _free(self) -> None:
        self.in_flight -= 1
        while self._waiting and self.in_flight < self._places():
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)

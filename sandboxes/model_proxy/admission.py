"""The one place where a call is let through to the provider.

Every attempt passes `enter` before a byte leaves and `leave` afterwards: `enter` waits for a place among the calls in
flight. Where there are ceilings, it then passes `afford`, which waits for money.
"""

from __future__ import annotations

import asyncio
from collections import deque

from sandboxes.model_proxy.calls import Call
from sandboxes.model_proxy.ceilings import Ceilings, Hold
from sandboxes.model_proxy.faults import Fault, FaultKind
from sandboxes.model_proxy.usage import Usage


class Admission:
    """At most `limit` calls in flight, first come first served.

    Additive increase, multiplicative decrease: a 429 halves the number, once per round of calls, and successes bring it
    back, so that the calls of one run don't fight each other over a provider's rate limit.
    """

    def __init__(self, limit: int, ceilings: Ceilings | None = None) -> None:
        self.limit = max(1, limit)
        self.ceilings = ceilings
        self.allowed = float(self.limit)
        self.in_flight = 0
        self._round = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._short: deque[asyncio.Future[None]] = deque()  # calls that wait for money, the oldest first

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

    async def afford(self, call: Call) -> Hold | None:
        """Waits until the worst case of the call fits under the ceilings. Raises a `ceiling` Fault where it never will.

        To be settled, or released with `release`, whatever becomes of the call.
        """
        if self.ceilings is None:
            return None
        if (fault := self.ceilings.refuse(call)) is not None:
            raise fault
        first = True
        while True:
            # Nobody overtakes a call that waits: a long prompt would wait for ever behind short ones.
            try:
                hold = self.ceilings.reserve(call) if not (first and self._short) else None
            except Fault:
                self._wake()  # the others are to hear it too
                raise
            if hold is not None:
                self._wake()  # there may be room for the next one too
                return hold
            turn = asyncio.get_running_loop().create_future()
            self._short.append(turn) if first else self._short.appendleft(turn)
            first = False
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._short:
                    self._short.remove(turn)
                self._wake()
                raise

    def release(self, hold: Hold | None, fault: Fault | None) -> None:
        """Gives back what was set aside for a try that brought no answer."""
        if self.ceilings is not None and hold is not None:
            self.ceilings.release(hold, fault)
            self._wake()

    def settle(self, call: Call, hold: Hold | None, usage: Usage, finish_reason: str | None) -> Fault | None:
        """Books an answer; the fault to give instead of it where it passed a ceiling."""
        if self.ceilings is None or hold is None:
            return None
        fault = self.ceilings.settle(call, hold, usage, finish_reason)
        self._wake()
        return fault

    def _wake(self) -> None:
        while self._short:
            turn = self._short.popleft()
            if not turn.done():
                turn.set_result(None)
                return

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

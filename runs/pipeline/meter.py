"""What this worker's run has used, measured at most once a second, and the halt when a ceiling is passed."""

from __future__ import annotations

import time
from decimal import Decimal

from benchwright.lib.clock import now
from runs.events.log import cost_of, read
from runs.limits.watch import CLOCK_EVENTS, Clock, Measured, clock, exceeded, watched
from runs.models import Run
from runs.projections.fold import PipelineState
from sandboxes.rates import sandbox_cost

LOOK_SECONDS = 1.0


class Meter:
    """Compares a run with its limits. Costs nothing where there are none."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.limits = run.limits
        self.watches = watched(run.limits)
        self._next = 0.0
        self._clock: Clock | None = None
        self._before: tuple[int, Decimal] = (-1, Decimal(0))

    def passed(self, state: PipelineState, born: dict[str, float]) -> str | None:
        """The ceiling that is passed, or None. `born`: when the living sandboxes were made, seconds since the epoch."""
        if not self.watches or time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + LOOK_SECONDS
        return exceeded(self.limits, self.measure(state, born))

    def phase_began(self) -> None:
        """The clock is read again: a phase began or ended."""
        self._clock, self._next = None, 0.0

    def measure(self, state: PipelineState, born: dict[str, float]) -> Measured:
        """The numbers as they are now: the row's, and what the living sandboxes cost so far."""
        if self._clock is None:
            rows = read(self.run.pk, types=CLOCK_EVENTS)
            self._clock = clock((r.seq, r.type, r.data, r.at) for r in rows)
        at = now()
        row = Run.objects.only(
            "cost_driver", "cost_model", "cost_sandbox", "cost_narration", "tokens_in", "tokens_out"
        ).get(pk=self.run.pk)
        running = sum(
            (
                sandbox_cost(live.backend, max(0.0, time.time() - born.get(live.id, time.time()))) or Decimal(0)
                for live in state.sandboxes.values()
            ),
            Decimal(0),
        )
        cost = row.cost_driver + row.cost_model + row.cost_sandbox + row.cost_narration + running
        if self._clock.phase is not None and self._before[0] != self._clock.phase_seq:
            self._before = (self._clock.phase_seq, cost_of(self.run.pk, before=self._clock.phase_seq))
        return Measured(
            cost=cost,
            seconds=self._clock.run_seconds(at),
            tokens=row.tokens_in + row.tokens_out,
            phase=self._clock.phase,
            phase_cost=cost - self._before[1] if self._clock.phase is not None else Decimal(0),
            phase_seconds=self._clock.phase_seconds(at),
            restarts=state.restarts,
        )

"""What a worker measures of its run, and the halt it asks for."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from runs.events.log import append, read
from runs.events.types.base import Event, Usage
from runs.events.types.driver import AgentTextEvent
from runs.events.types.phase import PhaseRestarted, PhaseStarted
from runs.models import Run
from runs.pipeline.context import Context, Halted
from runs.pipeline.lease import Lease, claim
from tests.factories.runs import make_run

pytestmark = pytest.mark.django_db


def words(cost: str, tokens: int = 10) -> AgentTextEvent:
    """Something that costs."""
    return AgentTextEvent(text="x", usage=Usage(pays="driver", requests=1, input=tokens, output=0, cost_usd=cost))


def context(limits: dict[str, Any], *events: Event) -> Context:
    """A worker's hold of a run with these events."""
    run = make_run(limits=limits)
    append(run.pk, events)
    epoch = claim(run.pk)
    assert epoch is not None
    return Context(Run.objects.get(pk=run.pk), Lease(run.pk, epoch))


@pytest.mark.parametrize(
    ("limits", "passed"),
    [
        ({"run": {"cost": 0.29}}, "run.cost"),
        ({"run": {"tokens": 29}}, "run.tokens"),
        ({"phase": {"cost": 0.19}}, "phase.cost"),
        ({"phase:find": {"restarts": 1}}, "phase:find.restarts"),
        (
            {"run": {"cost": 0.3, "tokens": 30}, "phase": {"cost": 0.2, "restarts": 2}, "phase:fetch": {"cost": 0.1}},
            None,
        ),
    ],
)
def test_what_a_phase_costs_is_what_came_since_it_began(limits: dict[str, Any], passed: str | None) -> None:
    restarted = PhaseRestarted(phase="find", reason="again")
    ctx = context(limits, words("0.1"), restarted, restarted, PhaseStarted(phase="find"), words("0.1"), words("0.1"))
    assert ctx.meter.measure(ctx.state, {}).phase_cost == Decimal("0.2")
    if passed is None:
        ctx.stop_if_halted()
        return
    with pytest.raises(Halted, match=f"limit_exceeded:{passed}"):
        ctx.stop_if_halted()
    run = Run.objects.get(pk=ctx.run.pk)
    assert (run.halted, run.halt_reason, run.display_status) == (True, f"limit_exceeded:{passed}", "halted")
    assert [row.data["by"] for row in read(run.pk, types=["HaltRequested"])] == ["limits"]


def test_a_run_that_somebody_stopped_first_keeps_that_reason() -> None:
    from runs.actions.halt import stop

    ctx = context({"run": {"cost": 0.1}}, words("0.2"))
    stop(ctx.run, by="ann")
    with pytest.raises(Halted, match="operator_kill"):
        ctx.stop_if_halted()

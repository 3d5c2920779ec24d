"""Limits of runs and phases: what is compared with what, and whose time counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from runs.errors import LaunchRefused
from runs.limits.parse import ENFORCED, QUANTITIES, parse_limits
from runs.limits.watch import Clock, Measured, clock, exceeded

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def row(seq: int, kind: str, seconds: float, **data: Any) -> tuple[int, str, dict[str, Any], datetime]:
    return seq, kind, data, at(seconds)


USED = Measured(
    cost=Decimal("2"), seconds=20.0, tokens=200, phase="materialize", phase_cost=Decimal("1"), phase_seconds=10.0,
    restarts={"atomize": 2},
)  # fmt: skip


@pytest.mark.parametrize(
    ("level", "quantity", "used"),
    [
        ("run", "cost", 2),
        ("run", "duration", 20),
        ("run", "tokens", 200),
        ("phase", "cost", 1),
        ("phase", "duration", 10),
        ("phase", "restarts", 2),
        ("phase:materialize", "cost", 1),
        ("phase:materialize", "duration", 10),
        ("phase:atomize", "restarts", 2),
    ],
)
def test_a_ceiling_is_passed_only_by_more_than_it_allows(level: str, quantity: str, used: int) -> None:
    assert exceeded({level: {quantity: used}}, USED) is None
    assert exceeded({level: {quantity: used - 0.5}}, USED) == f"{level}.{quantity}"


def test_the_limit_of_one_phase_does_not_stop_another() -> None:
    assert exceeded({"phase:atomize": {"duration": 1, "cost": 0.1}, "phase:setup": {"restarts": 1}}, USED) is None


def test_limits_of_tasks_and_attempts_do_not_halt_the_run() -> None:
    assert exceeded({"task": {"cost": 0.1, "duration": 0.1}, "attempt": {"tokens": 1}}, USED) is None


def test_time_that_a_run_is_parked_does_not_count() -> None:
    rows = [
        row(0, "RunLaunched", 0),
        row(3, "PhaseStarted", 5, phase="analyze"),
        row(4, "HaltRequested", 10, reason="agent_review: which?", by="driver"),
        row(5, "HaltCleared", 1000, by="ann"),
    ]
    now = clock(rows)
    assert (now.run_seconds(at(1005)), now.phase_seconds(at(1005))) == (15.0, 10.0)


def test_between_two_phases_no_phase_has_a_clock() -> None:
    now = clock([row(0, "RunLaunched", 0), row(1, "PhaseStarted", 1, phase="find"), row(2, "PhaseCompleted", 2)])
    assert (now.phase, now.phase_seconds(at(9)), now.run_seconds(at(9))) == (None, 0.0, 9.0)
    assert Clock().run_seconds(at(1)) == 0.0


@pytest.mark.parametrize("level", ENFORCED)
@pytest.mark.parametrize("quantity", sorted(QUANTITIES))
def test_every_pair_is_either_taken_or_refused_by_name(level: str, quantity: str) -> None:
    if quantity in ENFORCED[level]:
        assert parse_limits({level: {quantity: 1}}) == ({level: {quantity: 1}}, None)
        return
    with pytest.raises(LaunchRefused) as refused:
        parse_limits({level: {quantity: 1}})
    assert (refused.value.code, refused.value.field) == ("limit_unenforceable", f"limits.{level}.{quantity}")


def test_the_limit_of_a_phase_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(LaunchRefused) as refused:
        parse_limits({"phase:atomise": {"duration": 1}})
    assert refused.value.code == "limit_unenforceable" and "atomize" in (refused.value.hint or "")

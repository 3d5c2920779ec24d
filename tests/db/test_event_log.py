"""The log: gapless, append-only, chained, under one lease."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.lib.canonical import canonical, jsonb_text
from runs.errors import StaleWorker
from runs.events.chain import broken_links
from runs.events.log import append, raw, read
from runs.events.types.base import Usage
from runs.events.types.driver import AgentTextEvent
from runs.events.types.run import HaltRequested, PipelineFinished
from runs.events.types.union import EVENT_TYPES
from runs.models import Run, TaskRow
from runs.projections.rebuild import differences, rebuild
from tests.factories.runs import make_run, settled, sweep_started

pytestmark = pytest.mark.django_db


def test_seq_starts_at_zero_and_has_no_gaps() -> None:
    run = make_run()
    for n in range(5):
        append(run.pk, [AgentTextEvent(text=str(n)), AgentTextEvent(text="x")])
    assert [row.seq for row in read(run.pk)] == list(range(11))
    assert next(read(run.pk)).type == "RunLaunched"


@pytest.mark.parametrize("change", ["UPDATE trace_events SET type = 'x'", "DELETE FROM trace_events"])
def test_a_stored_event_cannot_be_changed_or_removed(change: str) -> None:
    run = make_run()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{change} WHERE run_id = %s", [run.pk])
    assert len(list(read(run.pk))) == 1


def test_a_stale_worker_cannot_append() -> None:
    run = make_run()
    Run.objects.filter(pk=run.pk).update(lease_epoch=2)
    with pytest.raises(StaleWorker):
        append(run.pk, [AgentTextEvent(text="late")], epoch=1)
    append(run.pk, [AgentTextEvent(text="mine")], epoch=2)
    assert [row.data.get("text") for row in read(run.pk, after=0)] == ["mine"]


def test_a_changed_text_breaks_the_chain() -> None:
    run = make_run()
    append(run.pk, [AgentTextEvent(text="one"), AgentTextEvent(text="two")])
    rows = list(raw(run.pk))
    assert not list(broken_links(rows))
    seq, body, digest = rows[1]
    assert list(broken_links([rows[0], (seq, body.replace("one", "0ne"), digest), rows[2]]))
    assert list(broken_links([rows[0], rows[2]]))


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HOSTILE)
def test_any_answer_is_stored_exactly_and_its_copy_is_accepted_by_the_database(answer: Any) -> None:
    run = make_run()
    append(run.pk, [sweep_started(1), *settled(0, 1.0, response=answer)])
    stored = next(row for row in read(run.pk) if row.type == "MaterializeTaskResult").data["response"]
    assert canonical(stored) == canonical(answer)
    assert not list(broken_links(raw(run.pk)))


def test_nul_and_lone_surrogates_survive_in_the_text_and_are_harmless_in_the_copy() -> None:
    text = canonical({"a": "x\0y\ud800", "b": float("nan")})
    assert "\\u0000" in text
    copy = jsonb_text(text)
    assert "\\u0000" not in copy and "\\ud800" not in copy and "NaN" in copy


def test_costs_reach_the_row_exactly_and_an_unknown_price_is_counted_not_zero() -> None:
    run = make_run()
    known = Usage(pays="model", requests=1, input=10, output=2, cost_usd="0.000000000001")
    unknown = Usage(pays="model", requests=2, input=None, output=None, unknown_cost_calls=2)
    append(run.pk, [sweep_started(3), *settled(0, 1.0, usage=known), *settled(1, 0.0, usage=known)])
    append(run.pk, settled(2, 0.0, usage=unknown))
    run.refresh_from_db()
    assert run.cost_model == Decimal("0.000000000002")
    assert (run.unknown_cost_calls, run.requests, run.tokens_in) == (2, 4, 20)


def test_projections_thrown_away_and_rebuilt_come_back_equal() -> None:
    run = make_run()
    append(run.pk, [sweep_started(4), *settled(0, 1.0), *settled(1, 0.25), *settled(2, None)])
    append(run.pk, [HaltRequested(reason="operator_kill: by x", by="x")])
    append(run.pk, [PipelineFinished(status="error", duration_ms=5.0)])
    assert list(differences(run)) == []
    Run.objects.filter(pk=run.pk).update(tasks_passed=99, cost_model=3)
    TaskRow.objects.filter(run_id=run.pk, index=0).update(outcome="fail")
    found = "\n".join(differences(run))
    assert "tasks_passed" in found and "tasks:" in found and "cost_model" in found
    rebuild(run)
    assert list(differences(run)) == []


def test_verify_run_exits_1_on_a_difference() -> None:
    run = make_run()
    append(run.pk, [sweep_started(1), *settled(0, 1.0)])
    call_command("verify_run", str(run.pk))
    Run.objects.filter(pk=run.pk).update(tasks_failed=7)
    with pytest.raises(SystemExit) as stop:
        call_command("verify_run", str(run.pk))
    assert stop.value.code == 1


def test_an_error_is_neither_a_pass_nor_a_failure() -> None:
    run = make_run()
    append(run.pk, [sweep_started(3), *settled(0, 1.0), *settled(1, 0.5), *settled(2, None)])
    run.refresh_from_db()
    assert (run.tasks_passed, run.tasks_failed, run.tasks_errored) == (1, 1, 1)


def test_an_event_of_an_unknown_type_is_kept_and_read_raw() -> None:
    run = make_run()
    row = next(read(run.pk))
    assert row.event is not None and type(row.event) is EVENT_TYPES["RunLaunched"]
    stranger = type(row)(9, "FromTheFuture", {"x": 1}, row.at, "")
    assert stranger.event is None


def test_an_ended_run_is_summarised_for_the_registry_by_the_database() -> None:
    from registry.models import RunSummary

    run = make_run()
    append(run.pk, [sweep_started(2), *settled(0, 1.0), *settled(1, 0.0)])
    assert not RunSummary.objects.filter(pk=run.pk).exists()
    append(run.pk, [PipelineFinished(status="ok", duration_ms=1.0)])
    summary = RunSummary.objects.get(pk=run.pk)
    assert (summary.accuracy, summary.passed, summary.model_key) == (0.5, 1, "control:control/oracle")

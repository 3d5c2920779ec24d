"""The leaderboard of a subset: who is ranked, on what, and how surely."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from benchwright.lib.errors import BenchwrightError
from registry.leaderboard import BEST, COUNTED_RUNS, leaderboard, parameters, statement
from registry.models import Benchmark
from registry.vocabulary import BoardBy, BoardRuns
from runs.models import Run, TaskRow
from runs.queries.leaderboard import marked
from tests.factories.boards import finished_run, make_subset, summary
from tests.factories.runs import make_person

pytestmark = pytest.mark.django_db


def test_a_model_stands_with_its_best_run_and_with_how_many_it_had() -> None:
    subset = make_subset(100)
    for passed in (60, 80, 70):
        summary(subset, "a", passed)
    (row,) = leaderboard(subset).rows
    assert (row.accuracy, row.runs, row.n) == (0.8, 3, 100)
    assert row.low == pytest.approx(0.7111708, abs=1e-6) and row.high == pytest.approx(0.8666331, abs=1e-6)


def test_a_private_run_is_on_its_own_board_and_on_no_other() -> None:
    subset = make_subset()
    summary(subset, "a", 50, account_id=7, visibility="private")
    summary(subset, "b", 40, account_id=7, visibility="unlisted")
    assert leaderboard(subset).rows == []
    assert [r.model_label for r in leaderboard(subset, of=BoardRuns.OWN, account_id=7).rows] == ["a", "b"]
    assert leaderboard(subset, of=BoardRuns.OWN, account_id=8).rows == []


def test_a_board_of_own_runs_needs_somebody() -> None:
    with pytest.raises(BenchwrightError, match="Sign in"):
        leaderboard(make_subset(), of=BoardRuns.OWN)


def test_an_unknown_cost_is_unknown_and_never_zero() -> None:
    subset = make_subset()
    summary(subset, "a", 50)
    summary(subset, "b", 40, cost_model=Decimal("0.25"))
    assert [r.cost_usd for r in leaderboard(subset).rows] == [None, Decimal("0.25")]


def test_a_control_is_a_reference_line_and_never_ranked() -> None:
    subset = make_subset()
    summary(subset, "control/oracle", 100)
    summary(subset, "a", 50)
    board = leaderboard(subset)
    assert [(r.model_label, r.place.rank) for r in board.rows if r.place] == [("a", 1)]
    assert [r.model_label for r in board.controls] == ["control/oracle"]


def test_ties_share_a_rank_and_the_next_one_is_skipped() -> None:
    subset = make_subset()
    for model, passed in (("a", 90), ("b", 90), ("c", 10)):
        summary(subset, model, passed)
    got = [(r.model_label, r.place.rank, r.place.tied) for r in leaderboard(subset).rows if r.place]
    assert got == [("a", 1, 2), ("b", 1, 2), ("c", 3, 1)]


def test_a_rank_has_the_places_that_the_intervals_leave_open() -> None:
    subset = make_subset()
    for model, passed in (("a", 90), ("b", 85), ("c", 10)):
        summary(subset, model, passed)
    assert [(r.place.first, r.place.last) for r in leaderboard(subset).rows if r.place] == [(1, 2), (1, 2), (3, 3)]


def test_a_run_that_sampled_fewer_tasks_is_listed_apart_with_its_coverage() -> None:
    subset = make_subset(100)
    summary(subset, "a", 10, selected=10)
    summary(subset, "b", 50)
    board = leaderboard(subset)
    assert [r.model_label for r in board.rows] == ["b"]
    assert [(r.model_label, r.coverage, r.place) for r in board.partial] == [("a", 0.1, None)]


def test_a_run_cannot_lead_by_erring_on_the_hard_tasks() -> None:
    subset = make_subset(100)
    summary(subset, "a", 20, errored=80)
    summary(subset, "b", 50, errored=1)
    board = leaderboard(subset)
    assert [(r.model_label, r.errored) for r in board.rows] == [("b", 1)]
    assert [r.model_label for r in board.partial] == ["a"]


def test_a_short_run_does_not_hide_the_whole_run_of_the_same_model() -> None:
    subset = make_subset(100)
    summary(subset, "a", 10, selected=10)
    summary(subset, "a", 50)
    board = leaderboard(subset)
    assert [r.accuracy for r in board.rows] == [0.5] and [r.accuracy for r in board.partial] == [1.0]


def test_a_run_that_failed_or_was_stopped_is_on_no_board() -> None:
    subset = make_subset()
    summary(subset, "a", 90, status="error")
    board = leaderboard(subset)
    assert board.rows == [] and board.partial == []


def test_one_impl_or_one_ruler_can_be_looked_at_alone_and_a_mixed_board_says_so() -> None:
    subset = make_subset()
    summary(subset, "a", 90, impl_id="x", comparability_key="1" * 64)
    summary(subset, "a", 70, impl_id="y", comparability_key="2" * 64)
    summary(subset, "b", 80, impl_id="y", comparability_key="2" * 64)
    assert leaderboard(subset).mixed
    assert [r.accuracy for r in leaderboard(subset, impl="y").rows] == [0.8, 0.7]
    one = leaderboard(subset, ruler="1" * 64)
    assert [r.model_label for r in one.rows] == ["a"] and not one.mixed


def test_a_mean_is_over_the_comparable_runs_alone_and_more_runs_make_no_narrower_interval() -> None:
    subset = make_subset(100)
    for passed in (60, 80):
        summary(subset, "a", passed, cost_model=Decimal(passed))
    summary(subset, "b", 71)
    summary(subset, "b", 100, comparability_key="c" * 64)
    board = leaderboard(subset, by=BoardBy.MEAN, ruler="a" * 64)
    assert [(r.model_label, r.accuracy, r.runs, r.cost_usd) for r in board.rows] == [
        ("b", 0.71, 1, None),
        ("a", pytest.approx(0.7), 2, Decimal(70)),
    ]
    assert board.rows[0].high - board.rows[0].low == pytest.approx(board.rows[1].high - board.rows[1].low, abs=0.002)  # type: ignore[operator]


def test_a_mean_without_a_ruler_takes_the_one_that_most_models_share() -> None:
    subset = make_subset()
    summary(subset, "a", 99, comparability_key="b" * 64)
    summary(subset, "b", 50)
    summary(subset, "c", 40)
    board = leaderboard(subset, by=BoardBy.MEAN)
    assert board.ruler == "a" * 64 and [r.model_label for r in board.rows] == ["b", "c"]
    assert leaderboard(make_subset(), by=BoardBy.MEAN).rows == []


def test_the_count_of_runs_stops_where_it_says_so() -> None:
    subset = make_subset(4)
    for _ in range(COUNTED_RUNS + 3):
        summary(subset, "a", 2)
    assert leaderboard(subset).rows[0].runs == COUNTED_RUNS


def test_a_model_that_a_paired_test_cannot_tell_from_the_leader_is_marked() -> None:
    subset = make_subset(40)
    near, far = [1.0] * 30 + [0.0] * 10, [1.0] * 22 + [0.0] * 18
    lead = finished_run(subset, [1.0] * 32 + [0.0] * 8)
    second, third = finished_run(subset, near), finished_run(subset, far)
    got = marked(leaderboard(subset)).marks
    assert lead.pk not in got
    assert (got[second.pk].same, got[second.pk].how, got[second.pk].shared) == (True, "paired", 40)
    # Their intervals overlap, and yet the leader passed all that it passed and ten more.
    assert (got[third.pk].same, got[third.pk].how) == (False, "paired")
    assert got[third.pk].p == pytest.approx(2 * 2 * 0.5**10)


def test_without_tasks_or_on_another_ruler_the_intervals_decide_and_it_is_said() -> None:
    subset = make_subset(40)
    finished_run(subset, [1.0] * 32 + [0.0] * 8)
    gone = finished_run(subset, [1.0] * 22 + [0.0] * 18)
    TaskRow.objects.filter(run_id=gone.pk).delete()
    other = finished_run(subset, [1.0] * 22 + [0.0] * 18, impl="e" * 64)
    below = finished_run(subset, [0.0] * 40)
    got = marked(leaderboard(subset)).marks
    assert [(got[r.pk].same, got[r.pk].how) for r in (gone, other, below)] == [
        (True, "overlap"),
        (True, "overlap"),
        (False, "overlap"),
    ]


def ask(user: Any, path: str) -> Any:
    """The answer's JSON with its status."""
    client = Client()
    client.force_login(user)
    answer = client.get(path)
    return answer.status_code, json.loads(answer.content)


def test_the_api_answers_the_board_and_a_stranger_to_a_private_one_not_found() -> None:
    (owner, account), (stranger, _) = make_person(), make_person()
    subset = make_subset(4, account, "private")
    run = finished_run(subset, [1.0, 0.0, 1.0, None], person=(owner, account), visibility="private")
    path = f"/v1/registry/subsets/{subset.id}/leaderboard"
    status, body = ask(owner, path)
    assert status == 200 and body["runs"] == "own" and body["data"] == []
    assert [(r["run_id"], r["n"], r["errored"], r["coverage"]) for r in body["partial"]] == [(str(run.pk), 3, 1, 0.75)]
    assert ask(stranger, path)[0] == 404
    assert Client().get(path).status_code == 401
    assert ask(owner, f"{path}?by=median")[1]["error"]["field"] == "by"
    assert ask(owner, f"{path}?sort=x")[1]["error"]["code"] == "unknown_key"


def test_a_benchmark_made_private_again_takes_its_board_with_it() -> None:
    (stranger, _) = make_person()
    subset = make_subset(4)
    summary(subset, "a", 3)
    path = f"/v1/registry/subsets/{subset.id}/leaderboard"
    assert len(ask(stranger, path)[1]["data"]) == 1
    Benchmark.objects.filter(pk=subset.benchmark_id).update(visibility="private")
    assert ask(stranger, path)[0] == 404


def test_a_run_taken_back_from_the_public_leaves_the_board() -> None:
    subset = make_subset(2)
    run = finished_run(subset, [1.0, 0.0])
    assert len(leaderboard(subset).rows) == 1
    Run.objects.filter(pk=run.pk).update(visibility="private")
    assert leaderboard(subset).rows == []


def test_the_board_is_read_from_indexes_alone() -> None:
    where = {"subset_id": "s/test", "visibility": "public"}
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for extra in ({}, {"impl_id": "i"}, {"comparability_key": "k"}):
            cursor.execute("EXPLAIN " + statement(BEST, [*where, *extra]), parameters({**where, **extra}, 100))
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Seq Scan" not in plan and "Index" in plan, plan

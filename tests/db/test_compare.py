"""Runs side by side: what is paired, what is claimed, and what is said when the rulers differ."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from benchwright.lib.errors import BenchwrightError
from billing.models import User
from registry.actions import save_subset
from runs.models import Run
from runs.queries.compare import Pair, compare_runs
from tests.factories.boards import finished_run, make_subset
from tests.factories.runs import make_person

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>\u202e"


def pair_of(*runs: Run) -> Pair:
    """The one pair of two public runs."""
    (pair,) = compare_runs(None, [run.pk for run in runs]).pairs
    return pair


def test_two_runs_are_compared_task_by_task() -> None:
    subset = make_subset(20)
    a = finished_run(subset, [1.0] * 6 + [0.0] * 14)
    b = finished_run(subset, [0.0] + [1.0] * 15 + [0.0] * 4)
    pair = pair_of(a, b)
    assert (pair.result.wins, pair.result.losses, pair.result.ties) == (10, 1, 9)
    assert pair.result.difference == pytest.approx(0.45)
    assert pair.p_adjusted == pytest.approx(2 * (1 + 11) / 2**11)
    assert pair.better == "b" and pair.matched == "index"
    assert [(f.index_a, f.winner) for f in pair.flips[:2]] == [(0, "a"), (6, "b")] and pair.flipped == 11


def test_a_difference_that_the_data_do_not_carry_is_not_claimed() -> None:
    subset = make_subset(10)
    pair = pair_of(finished_run(subset, [1.0] * 5 + [0.0] * 5), finished_run(subset, [1.0] * 8 + [0.0] * 2))
    assert pair.result.difference == pytest.approx(0.3) and pair.better == ""


def test_many_pairs_are_corrected_together() -> None:
    subset = make_subset(12)
    runs = [finished_run(subset, [1.0] * k + [0.0] * (12 - k)) for k in (3, 10, 10)]
    found = compare_runs(None, [run.pk for run in runs])
    first = found.pairs[0]
    assert first.result.p_value == pytest.approx(2 / 2**7) and first.p_adjusted == pytest.approx(3 * 2 / 2**7)


def test_an_errored_task_is_left_out_and_counted_with_the_rate_of_the_side_that_has_it() -> None:
    subset = make_subset(4)
    pair = pair_of(finished_run(subset, [1.0, 1.0, None, None]), finished_run(subset, [1.0, 0.0, 1.0, 0.0]))
    assert (pair.result.n, len(pair.result.dropped), pair.result.dropped_rate_b) == (2, 2, 0.5)
    assert pair.result.dropped_rate_a is None


def test_runs_on_one_ruler_differ_in_nothing_and_others_are_told_field_by_field() -> None:
    subset = make_subset(4)
    a, b = finished_run(subset, [1.0] * 4), finished_run(subset, [0.0] * 4)
    other = finished_run(
        subset, [0.0] * 4, impl="e" * 64, trials_config={"plan": {"k": 3}, "aggregator": {"name": "mean"}}
    )
    assert compare_runs(None, [a.pk, b.pk]).differs == []
    told = {d.field: d.values for d in compare_runs(None, [a.pk, other.pk]).differs}
    assert told == {"impl": ["f" * 12, "e" * 12], "trials": ["1 × any_pass", "3 × mean"]}


def test_on_another_task_list_tasks_are_matched_by_what_they_say() -> None:
    subset = make_subset(3)
    a = finished_run(subset, [1.0, 0.0, 1.0])
    rows = [{"row": {"question": q}, "reference": None, "choices": None} for q in ("new?", "2 + 1?", "0 + 1?")]
    subset, _ = save_subset(subset.benchmark, "test", rows, field_map={})
    b = finished_run(subset, [0.0, 0.0, 1.0])
    found = compare_runs(None, [a.pk, b.pk])
    (pair,) = found.pairs
    assert [d.field for d in found.differs] == ["snapshot"]
    assert (pair.matched, pair.result.n) == ("content", 2)
    assert [(f.index_a, f.index_b, f.winner) for f in pair.flips] == [(2, 1, "a")]


def test_runs_of_two_benchmarks_share_no_task() -> None:
    a = finished_run(make_subset(2), [1.0, 1.0])
    b = finished_run(make_subset(3), [1.0, 1.0, 0.0])
    Run.objects.filter(pk=a.pk).update(subset_id="")
    pair = pair_of(a, b)
    assert pair.result.n == 2  # the same questions, wherever they stand
    empty = finished_run(make_subset(2), [])
    assert pair_of(a, empty).result.n == 0


@pytest.mark.parametrize("count", [0, 1, 9])
def test_fewer_than_two_or_more_than_eight_runs_are_refused(count: int) -> None:
    subset = make_subset(1)
    runs = [finished_run(subset, [1.0]) for _ in range(count)]
    with pytest.raises(BenchwrightError, match="2 to 8"):
        compare_runs(None, [run.pk for run in runs])


def test_a_run_is_not_compared_with_itself() -> None:
    run = finished_run(make_subset(1), [1.0])
    with pytest.raises(BenchwrightError, match="2 to 8"):
        compare_runs(None, [run.pk, run.pk])


def ask(path: str, user: User | None = None) -> Any:
    """The answer to a browser or a program."""
    client = Client()
    if user:
        client.force_login(user)
    return client.get(path)


def test_a_private_run_is_compared_by_its_owner_alone() -> None:
    owner, account = make_person()
    subset = make_subset(2)
    mine = finished_run(subset, [1.0, 0.0], person=(owner, account), visibility="private")
    theirs = finished_run(subset, [1.0, 1.0])
    query = f"runs={mine.pk},{theirs.pk}"
    assert ask(f"/v1/compare?{query}", owner).status_code == ask(f"/compare/?{query}", owner).status_code == 200
    stranger, _ = make_person()
    assert ask(f"/v1/compare?{query}", stranger).status_code == 404
    assert ask(f"/compare/?{query}", stranger).status_code == 404
    assert ask(f"/compare/?{query}").status_code == 302
    assert ask(f"/v1/compare?{query}").status_code == 401


def test_the_api_says_what_differs_and_links_the_rows_that_flipped() -> None:
    subset = make_subset(2)
    a, b = finished_run(subset, [1.0, 0.0]), finished_run(subset, [0.0, 0.0], impl="e" * 64)
    body = json.loads(ask(f"/v1/compare?runs={a.pk},{b.pk}", make_person()[0]).content)
    assert body["comparable"] is False and body["differs"][0]["values"] == {"A": "f" * 12, "B": "e" * 12}
    (pair,) = body["pairs"]
    assert pair["flips"][0]["passed_by"] == "A" and pair["flips"][0]["url_b"].endswith(f"/runs/{b.pk}/tasks/0/")
    assert pair["better"] is None and pair["p"] == 1.0


def test_the_page_warns_before_any_number_and_prints_hostile_names() -> None:
    subset = make_subset(3)
    a = finished_run(subset, [1.0, 1.0, 0.0], title=HOSTILE)
    model = {"source": "endpoint", "identifier": "m", "label": HOSTILE}
    b = finished_run(subset, [0.0, 1.0, None], model=model, impl="e" * 64)
    text = ask(f"/compare/?run={a.pk}&run={b.pk}").content.decode()
    assert text.index("do not stand on one ruler") < text.index("pair__verdict")
    assert "No difference was shown" in text and f"/runs/{a.pk}/tasks/0/" in text
    assert "<script>alert" not in text and "\u202e" not in text


def test_the_page_of_three_runs_shows_the_flips_of_the_pair_that_is_asked_for() -> None:
    subset = make_subset(3)
    a, b, c = (finished_run(subset, scores) for scores in ([1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]))
    path = f"/compare/?runs={a.pk},{b.pk},{c.pk}"
    assert f"/runs/{c.pk}/tasks/" not in ask(path).content.decode()
    assert f"/runs/{c.pk}/tasks/2/" in ask(f"{path}&pair=BC").content.decode()
    assert ask(f"{path}&pair=XY").status_code == 200


def test_without_runs_the_page_says_how_to_pick_them() -> None:
    assert "Pick two to eight runs" in ask("/compare/").content.decode()


def test_runs_are_picked_in_the_list() -> None:
    owner, account = make_person()
    run = finished_run(make_subset(1), [1.0], person=(owner, account))
    text = ask("/runs/", owner).content.decode()
    assert f'name="run" value="{run.pk}"' in text and 'action="/compare/"' in text

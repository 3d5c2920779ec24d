"""The page of a subset, each door as owner, stranger and passer-by."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from billing.models import User
from registry.actions import publish_impl
from tests.factories.boards import finished_run, make_subset, summary
from tests.factories.runs import make_person

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>\u202e"


def page(path: str, user: User | None = None, **headers: str) -> Any:
    """The answer to a browser."""
    client = Client()
    if user:
        client.force_login(user)
    return client.get(path, headers=headers)


def test_anyone_reads_a_public_board_and_each_row_leads_to_its_run() -> None:
    subset = make_subset(20)
    first, second = finished_run(subset, [1.0] * 18 + [0.0] * 2), finished_run(subset, [1.0] * 16 + [0.0] * 4)
    text = page(f"/registry/{subset.id}/").content.decode()
    assert text.index(f"/runs/{first.pk}/") < text.index(f"/runs/{second.pk}/")
    assert "90.0%" in text and "not told from the leader" in text and "unknown" not in text.split("</thead>")[0]


def test_the_board_of_a_private_benchmark_does_not_exist_for_others() -> None:
    owner, account = make_person()
    subset = make_subset(2, account, "private")
    finished_run(subset, [1.0, 0.0], person=(owner, account), visibility="private")
    assert "50.0%" in page(f"/registry/{subset.id}/", owner).content.decode()
    assert page(f"/registry/{subset.id}/", make_person()[0]).status_code == 404
    assert page(f"/registry/{subset.id}/").status_code == 302


def test_a_models_name_is_printed_and_never_acts() -> None:
    subset = make_subset(2)
    summary(subset, "m", 1, model={"source": "endpoint", "identifier": "m", "label": HOSTILE})
    summary(subset, "n", 1, selected=1, model={"source": "endpoint", "identifier": "n", "label": HOSTILE})
    text = page(f"/registry/{subset.id}/").content.decode()
    assert "<script>alert" not in text and "\u202e" not in text and "Not ranked" in text


def test_a_mixed_board_warns_and_one_ruler_does_not() -> None:
    subset = make_subset(10)
    summary(subset, "a", 9, comparability_key="1" * 64)
    summary(subset, "b", 8, comparability_key="2" * 64)
    assert "2 rulers on one board" in page(f"/registry/{subset.id}/").content.decode()
    one = page(f"/registry/{subset.id}/?key={'1' * 64}").content.decode()
    assert "rulers on one board" not in one and ">b</a>" not in one


def test_a_control_is_drawn_as_a_line_and_has_no_row() -> None:
    subset = make_subset(10)
    summary(subset, "control/random", 2)
    summary(subset, "a", 8)
    text = page(f"/registry/{subset.id}/").content.decode()
    assert text.count('class="whisker__line"') == 1 and text.count("board__rank") == 1


def test_words_that_are_none_are_ignored_and_htmx_gets_the_board_alone() -> None:
    subset = make_subset(10)
    summary(subset, "a", 8)
    assert page(f"/registry/{subset.id}/?by=median&runs=all&impl=x").status_code == 200
    part = page(f"/registry/{subset.id}/?by=mean", **{"HX-Request": "true"}).content.decode()
    assert 'id="board"' in part and "<html" not in part


def test_a_subset_without_runs_or_tasks_has_a_page() -> None:
    subset = make_subset(10)
    assert "No public run yet" in page(f"/registry/{subset.id}/").content.decode()
    subset.snapshot = None
    subset.save()
    assert page(f"/registry/{subset.id}/").status_code == 200


def test_scorers_are_listed_with_what_they_stumbled_on_and_the_official_one_first() -> None:
    subset = make_subset(10)
    proof = {"ok": True, "checks": [{"name": "oracle", "ok": True}, {"name": "injection", "ok": False}]}
    publish_impl(subset.benchmark, subset, "a", proof=proof, run_id=None)
    good = publish_impl(subset.benchmark, subset, "b", proof={}, run_id=None)
    good.official = True
    good.save()
    text = page(f"/registry/{subset.id}/").content.decode()
    assert "stumbles on injection" in text and "no proof stored" in text
    assert text.count("official</span>") == 1 and text.index("official</span>") < text.index("stumbles on")


def test_the_benchmarks_page_leads_to_the_board() -> None:
    subset = make_subset(10)
    assert f'href="/registry/{subset.id}/"' in page(f"/registry/{subset.benchmark_id}/").content.decode()

"""Official scorers: who makes them, on what proof, and what stays told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import Error, transaction
from django.test import Client

from benchwright.lib.errors import BenchwrightError, NotAllowed
from billing.actions import make_key, open_account
from billing.models import User
from registry.actions import publish_impl
from registry.errors import NotImmune, StandingUnchanged
from registry.immunity import ASKED, MAY_BE_ABSENT, failings
from registry.models import AdminAct, Impl, Subset
from registry.official import demote, promote
from registry.queries import find_impl
from tests.factories.boards import make_subset
from tests.factories.runs import make_person

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>\u202e"


def proof(**changed: bool) -> dict[str, Any]:
    """A report in which every check held, but for those named."""
    checks = [{"name": name, "ok": changed.get(name, True), "advisory": True} for name in ASKED]
    return {"ok": True, "checks": checks}


def admin() -> User:
    """Somebody who runs this installation."""
    return open_account("root", admin=True)[0]


def scorer(subset: Subset | None = None, report: dict[str, Any] | None = None, source: str = "x") -> Impl:
    """A published scorer of a public benchmark."""
    subset = subset or make_subset(2)
    return publish_impl(subset.benchmark, subset, source, proof=proof() if report is None else report, run_id=None)


def test_a_proved_scorer_becomes_official_with_its_reason_and_its_checks_told() -> None:
    impl = promote(admin(), scorer(), "Read by two people.")
    assert impl.official and impl.promotion_reason == "Read by two people."
    act = AdminAct.objects.get(subject=impl.id)
    assert (act.act, act.by, act.data["checks"]["injection"], act.data["failings"]) == ("promote", "root", True, {})


@pytest.mark.parametrize("check", sorted(ASKED))
def test_a_scorer_that_failed_any_one_check_is_refused_and_stays_as_it_was(check: str) -> None:
    impl = scorer(report=proof(**{check: False}))
    with pytest.raises(NotImmune, match=check):
        promote(admin(), impl, "It is fine.")
    impl.refresh_from_db()
    assert not impl.official and not AdminAct.objects.exists()


@pytest.mark.parametrize("report", [{}, {"ok": True}, {"ok": True, "checks": []}, {"checks": "all"}])
def test_a_scorer_that_nobody_proved_is_not_immune(report: dict[str, Any]) -> None:
    assert set(failings(report)) == set(ASKED) - MAY_BE_ABSENT
    with pytest.raises(NotImmune, match="never tried"):
        promote(admin(), scorer(report=report), "Trust me.")


def test_a_reason_of_its_own_overrides_a_failed_check_and_is_told() -> None:
    impl = promote(admin(), scorer(report=proof(wrong=False)), "Used by all.", override="Two rows share an answer.")
    assert impl.official
    data = AdminAct.objects.get(subject=impl.id).data
    assert data["override"] == "Two rows share an answer." and set(data["failings"]) == {"wrong"}


@pytest.mark.parametrize("reason", ["", "  \n", "x" * 2001])
def test_without_a_reason_nothing_changes(reason: str) -> None:
    impl = scorer()
    with pytest.raises(BenchwrightError) as refused:
        promote(admin(), impl, reason)
    assert refused.value.field == "reason" and not AdminAct.objects.exists()


def test_only_an_admin_promotes_or_demotes() -> None:
    impl, (owner, _) = scorer(), make_person()
    for act in (promote, demote):
        with pytest.raises(NotAllowed):
            act(owner, impl, "Mine.")
    root = admin()
    root.is_active = False
    with pytest.raises(NotAllowed):
        promote(root, impl, "Gone.")


def test_a_second_promotion_is_refused_and_not_told_twice() -> None:
    impl, root = promote(admin(), scorer(), "Good."), admin()
    with pytest.raises(StandingUnchanged):
        promote(root, impl, "Again.")
    demote(root, impl, "A fault was found.")
    with pytest.raises(StandingUnchanged):
        demote(root, impl, "Again.")
    assert [act.act for act in AdminAct.objects.order_by("id")] == ["promote", "demote"]


def test_latest_official_is_the_one_promoted_last_and_a_demotion_gives_it_back() -> None:
    subset, root = make_subset(2), admin()
    first, second = scorer(subset), scorer(subset, source="y")
    promote(root, first, "Good.")
    promote(root, second, "Better.")
    assert find_impl(subset, "latest:official") == second
    demote(root, second, "A fault was found.")
    assert find_impl(subset, "latest:official") == first


def test_what_an_admin_did_cannot_be_changed_or_removed() -> None:
    promote(admin(), scorer(), "Good.")
    for change in (lambda acts: acts.update(reason="x"), lambda acts: acts.delete()):
        with pytest.raises(Error, match="append-only"), transaction.atomic():
            change(AdminAct.objects.all())
    assert AdminAct.objects.get().reason == "Good."


def call(method: str, path: str, key: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of a program's request."""
    headers = {"Authorization": f"Bearer {key}"}
    answer = getattr(Client(headers=headers), method)(path, *([] if body is None else [body, "application/json"]))
    return answer.status_code, json.loads(answer.content)


def test_the_api_promotes_for_an_admin_and_for_nobody_else() -> None:
    impl, (user, account), (root, house) = scorer(), make_person(), open_account("root", admin=True)
    path, why = f"/v1/registry/impls/{impl.id}", {"reason": "Read by two people."}
    key, read_only = make_key(root, house, "k"), make_key(root, house, "r", read_only=True)
    assert call("post", f"{path}/promote", make_key(user, account, "k"), why)[0] == 403
    assert call("post", f"{path}/promote", read_only, why)[0] == 403
    status, body = call("post", f"{path}/promote", key, why)
    assert status == 200 and body["official"] and body["promotion"]["by"] == "root"
    status, body = call("get", path, make_key(user, account, "k"))
    assert status == 200 and [a["reason"] for a in body["acts"]] == ["Read by two people."] and body["source"] == "x"
    assert call("post", f"{path}/demote", key, {"reason": "A fault."})[1]["promotion"] is None
    assert call("post", f"{path}/demote", key, {"reason": "A fault."})[1]["error"]["code"] == "standing_unchanged"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_request"),
        ([], "invalid_request"),
        ({"reason": 1}, "invalid_request"),
        ({"why": "x"}, "unknown_key"),
    ],
)
def test_a_wrong_body_is_refused_by_name(body: Any, code: str) -> None:
    root, house = open_account("root", admin=True)
    answer = call("post", f"/v1/registry/impls/{scorer().id}/promote", make_key(root, house, "k"), body)
    assert (answer[0], answer[1]["error"]["code"]) == (400, code)


def test_the_failed_checks_come_with_the_refusal() -> None:
    root, house = open_account("root", admin=True)
    impl = scorer(report=proof(empty=False))
    status, body = call(
        "post", f"/v1/registry/impls/{impl.id}/promote", make_key(root, house, "k"), {"reason": "Good."}
    )
    assert (status, body["error"]["code"]) == (409, "not_immune")
    assert set(body["error"]["data"]["failings"]) == {"empty"}


def test_a_scorer_of_a_private_benchmark_does_not_exist_for_others() -> None:
    (owner, account), (stranger, other) = make_person(), make_person()
    impl = scorer(make_subset(2, account, "private"))
    assert call("get", f"/v1/registry/impls/{impl.id}", make_key(owner, account, "k"))[0] == 200
    assert call("get", f"/v1/registry/impls/{impl.id}", make_key(stranger, other, "k"))[0] == 404


def browser(user: User | None) -> Client:
    """A signed-in one."""
    client = Client()
    if user:
        client.force_login(user)
    return client


def test_the_button_is_an_admins_and_the_history_is_everyones() -> None:
    subset, root = make_subset(2), admin()
    impl = scorer(subset, proof(wrong=False))
    page = f"/registry/{subset.id}/"
    assert "Make official" in browser(root).get(page).content.decode()
    assert "Make official" not in browser(make_person()[0]).get(page).content.decode()
    act = f"/registry/impls/{impl.id}/promote/"
    refused = browser(root).post(act, {"reason": "Good."}, follow=True).content.decode()
    assert "did not withstand" in refused
    browser(root).post(act, {"reason": HOSTILE, "override": "Known."})
    text = browser(None).get(page).content.decode()
    assert "official</span>" in text and "promoted</strong> by root" in text and "Known." in text
    assert "<script>alert" not in text and "\u202e" not in text


@pytest.mark.parametrize("act", ["promote", "demote", "delete"])
def test_the_form_does_nothing_for_others_and_nothing_unknown(act: str) -> None:
    impl = scorer()
    for user in (None, make_person()[0]):
        assert browser(user).post(f"/registry/impls/{impl.id}/{act}/", {"reason": "x"}).status_code == 404
    assert browser(admin()).get(f"/registry/impls/{impl.id}/{act}/").status_code in (404, 405)
    assert not AdminAct.objects.exists()

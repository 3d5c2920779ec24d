"""Launching by the API: what is accepted, what is refused and how, and who sees what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from billing.actions import make_key
from billing.models import Account, User
from registry.actions import publish_impl, save_subset
from registry.models import Benchmark
from runs.models import Run
from sandboxes.models import ProviderSecret
from tests.factories.runs import make_person, make_run

pytestmark = pytest.mark.django_db
ORACLE = {"source": "control", "identifier": "control/oracle"}
ENDPOINT = {"source": "endpoint", "identifier": "m", "base_url": "http://127.0.0.1:9/v1"}
UNPRICED = {"source": "litellm", "identifier": "openai/none", "api_key": "sk-x"}


class Door:
    """API v1 as one person sees it."""

    def __init__(self, user: User, account: Account, **key: Any) -> None:
        self.user, self.account = user, account
        self.headers = {"Authorization": f"Bearer {make_key(user, account, 'test', **key)}"}
        self.client = Client()

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, str) else json.dumps(body)
        answer = self.client.generic(
            method, f"/v1{path}", data, content_type="application/json", headers={**self.headers, **headers}
        )
        return answer.status_code, answer.json()


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.pipeline.dispatch.dispatch", lambda run_id: None)


@pytest.fixture
def owner() -> Door:
    return Door(*make_person())


@pytest.fixture
def benchmark(owner: Door) -> Benchmark:
    made = Benchmark.objects.create(id="sums", name="Sums", owner=owner.account, source={"files": []})
    subset, _ = save_subset(made, "default", [{"row": {"q": 1}, "reference": None, "choices": None}], field_map={})
    publish_impl(made, subset, "class TaskImpl: pass", proof={}, run_id=None)
    return made


@pytest.mark.parametrize(
    ("key", "hint"), [("promt", "prompt"), ("operator", "driver"), ("agent", "driver"), ("concurency", "concurrency")]
)
def test_an_unknown_or_retired_key_is_refused_by_name_with_the_nearest_valid_one(
    owner: Door, key: str, hint: str
) -> None:
    status, body = owner("POST", "/runs", {"prompt": "x", "model": ORACLE, key: 1})
    assert status == 400
    assert (body["error"]["code"], body["error"]["field"]) == ("unknown_key", key)
    assert hint in body["error"]["hint"]
    assert body["error"]["request_id"]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"model": ORACLE}, "nothing_to_measure", "prompt"),
        ({"prompt": "x"}, "model_missing", "model"),
        ({"prompt": "x", "model": {"source": "control", "identifier": "control/oracel"}},
         "launch_refused", "model.identifier"),
        ({"prompt": "x", "model": {"source": "endpoint", "identifier": "m"}}, "launch_refused", "model.base_url"),
        ({"prompt": "x", "model": "nowhere/model"}, "model_key_missing", "model"),
        ({"prompt": "x", "model": ORACLE, "limits": {"run": {"attempts": 1}}},
         "limit_unenforceable", "limits.run.attempts"),
        ({"prompt": "x", "model": ORACLE, "limits": {"run": {"cost": float("nan")}}},
         "limit_unenforceable", "limits.run.cost"),
        ({"prompt": "x", "model": ORACLE, "limits": {"run": {"cost": -1}}}, "limit_unenforceable", "limits.run.cost"),
        ({"prompt": "x", "model": ENDPOINT, "limits": {"run": {"cost": 1}}}, "price_unknown", "limits.run.cost"),
        ({"prompt": "x", "model": ENDPOINT, "limits": {"task": {"cost": 1}}}, "price_unknown", "limits.task.cost"),
        ({"prompt": "x", "model": UNPRICED, "limits": {"phase": {"cost": 1}}}, "price_unknown", "limits.phase.cost"),
        ({"prompt": "x", "model": {**ENDPOINT, "secret": "mine"}}, "unknown_key", "model.secret"),
        ({"prompt": "x", "model": {**ENDPOINT, "headers": {"Host": "x"}}}, "launch_refused", "model.headers.Host"),
        ({"prompt": "x", "model": {**ENDPOINT, "headers": {"X-A": "a\nb"}}}, "launch_refused", "model.headers"),
        ({"prompt": "x", "model": {**ORACLE, "headers": {"X-A": "a"}}}, "launch_refused", "model.headers"),
        ({"prompt": "x", "model": ORACLE, "compute": "lokal"}, "launch_refused", "compute"),
        ({"prompt": "x", "model": ORACLE, "files": ["file_1"]}, "unknown_file", "files"),
        ({"benchmark": "nothing", "model": ORACLE}, "unknown_benchmark", "benchmark"),
        ({"benchmark": "x", "replay": "y", "model": ORACLE}, "launch_refused", "replay"),
        ({"prompt": "x", "source": "ftp://x/y", "model": ORACLE}, "launch_refused", "source"),
        ({"prompt": "x", "model": ORACLE, "concurrency": 0}, "launch_refused", "concurrency"),
        ({"prompt": "x", "model": ORACLE, "concurrency": True}, "launch_refused", "concurrency"),
        ({"prompt": "x", "model": ORACLE, "driver": "rules"}, "launch_refused", "driver"),
    ],
)  # fmt: skip
def test_a_bad_launch_names_the_field_and_writes_nothing(owner: Door, body: Any, code: str, field: str) -> None:
    status, answer = owner("POST", "/runs", body)
    assert 400 <= status < 500
    assert (answer["error"]["code"], answer["error"]["field"]) == (code, field)
    assert not Run.objects.exists()


def test_a_body_that_is_not_json_is_refused_in_the_one_error_shape(owner: Door) -> None:
    status, answer = owner("POST", "/runs", "{nope")
    assert (status, answer["error"]["code"]) == (400, "invalid_json")


def test_a_pinned_launch_freezes_what_it_resolved_to(owner: Door, benchmark: Benchmark) -> None:
    impl = benchmark.impls.get()
    status, run = owner("POST", "/runs", {"benchmark": "sums", "impl": impl.id, "model": ORACLE})
    assert status == 201
    status, log = owner("GET", f"/runs/{run['id']}/events")
    first = log["data"][0]
    assert (first["seq"], first["type"], first["data"]["impl_id"]) == (0, "RunLaunched", impl.id)
    assert run["trials"] == {"k": 1, "aggregator": "any_pass"}


def test_latest_official_says_404_where_there_is_none_and_resolves_where_there_is(
    owner: Door, benchmark: Benchmark
) -> None:
    body = {"benchmark": "sums", "impl": "latest:official", "model": ORACLE}
    status, answer = owner("POST", "/runs", body)
    assert (status, answer["error"]["code"]) == (404, "unknown_impl")
    benchmark.impls.update(official=True, promoted_at="2026-01-01T00:00:00Z")
    status, run = owner("POST", "/runs", body)
    assert (status, run["impl_id"]) == (201, benchmark.impls.get().id)


def test_a_given_key_is_sealed_and_in_no_answer_and_no_event(owner: Door) -> None:
    model = {"source": "endpoint", "identifier": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-very-secret"}
    status, run = owner("POST", "/runs", {"prompt": "x", "model": model})
    assert status == 201
    assert "sk-very-secret" not in json.dumps(owner("GET", f"/runs/{run['id']}"))
    assert "sk-very-secret" not in json.dumps(owner("GET", f"/runs/{run['id']}/events"))
    assert "sk-very-secret" not in str(Run.objects.values())
    secret = ProviderSecret.objects.get()
    assert secret.open() == "sk-very-secret"
    assert b"very-secret" not in bytes(secret.ciphertext)


def test_what_headers_hold_is_sealed_and_only_their_names_are_told(owner: Door) -> None:
    status, run = owner(
        "POST", "/runs", {"prompt": "x", "model": {**ENDPOINT, "headers": {"X-Team": "tok-very-secret"}}}
    )
    assert status == 201
    told = json.dumps([owner("GET", f"/runs/{run['id']}"), owner("GET", f"/runs/{run['id']}/events")])
    assert "tok-very-secret" not in told + str(Run.objects.values()) and "X-Team" in told
    assert ProviderSecret.objects.get(name="headers").open() == '{"X-Team": "tok-very-secret"}'


def test_the_default_backend_has_one_name_and_a_misspelt_one_is_refused(
    owner: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHWRIGHT_BACKEND", "sandbox0")
    for compute in ({}, {"compute": "default"}):
        assert owner("POST", "/runs", {"prompt": "x", "model": ORACLE, **compute})[1]["backend"] == "sandbox0"
    monkeypatch.setenv("BENCHWRIGHT_BACKEND", "lokal")
    status, answer = owner("POST", "/runs", {"prompt": "x", "model": ORACLE})
    assert (status, answer["error"]["code"]) == (503, "sandbox_unavailable")


def test_the_same_idempotency_key_gives_the_same_run_and_another_body_a_conflict(owner: Door) -> None:
    first = owner("POST", "/runs", {"prompt": "x", "model": ORACLE}, **{"Idempotency-Key": "k"})
    again = owner("POST", "/runs", {"prompt": "x", "model": ORACLE}, **{"Idempotency-Key": "k"})
    assert first[1]["id"] == again[1]["id"]
    other = owner("POST", "/runs", {"prompt": "y", "model": ORACLE}, **{"Idempotency-Key": "k"})
    assert (other[0], other[1]["error"]["code"]) == (409, "idempotency_conflict")
    assert Run.objects.count() == 1


DOORS = [
    "",
    "/events",
    "/tasks",
    "/artifacts",
    "/fingerprint",
    "/sandboxes",
    "/blocked-hosts",
    "/cost",
    "/events/stream",
]


@pytest.mark.parametrize("door", DOORS)
def test_a_private_run_is_not_found_for_a_stranger_at_any_door(owner: Door, door: str) -> None:
    run = make_run(owner.account, owner.user)
    stranger = Door(*make_person())
    status, answer = stranger("GET", f"/runs/{run.pk}{door}")
    assert (status, answer["error"]["code"]) == (404, "unknown_run")
    missing = stranger("GET", f"/runs/00000000-0000-7000-8000-000000000000{door}")[1]["error"]
    assert {**answer["error"], "request_id": ""} == {**missing, "request_id": ""}


def test_a_cost_limit_is_taken_where_the_price_is_known_or_nobody_charges(owner: Door) -> None:
    priced = {**ENDPOINT, "price": {"input_per_token": "0.000001", "output_per_token": "0.000002"}}
    named = {"source": "litellm", "identifier": "openai/gpt-4o-mini", "api_key": "sk-x"}
    for model in (ORACLE, priced, named):
        assert owner("POST", "/runs", {"prompt": "x", "model": model, "limits": {"run": {"cost": 1}}})[0] == 201


@pytest.mark.parametrize("act", ["pause", "resume", "halt"])
def test_a_stranger_cannot_press_the_buttons_even_of_an_unlisted_run(owner: Door, act: str) -> None:
    run = make_run(owner.account, owner.user, visibility="unlisted")
    stranger = Door(*make_person())
    assert stranger("GET", f"/runs/{run.pk}")[0] == 200
    assert stranger("POST", f"/runs/{run.pk}/{act}")[0] == 404


def test_a_read_only_key_reads_and_changes_nothing(owner: Door) -> None:
    reader = Door(owner.user, owner.account, read_only=True)
    run = make_run(owner.account, owner.user)
    assert reader("GET", f"/runs/{run.pk}")[0] == 200
    assert reader("POST", "/runs", {"prompt": "x", "model": ORACLE})[0] == 403
    assert reader("POST", f"/runs/{run.pk}/halt")[0] == 403


def test_without_a_key_every_door_is_closed() -> None:
    run = make_run()
    for method, path in [("GET", "/runs"), ("POST", "/runs"), ("GET", f"/runs/{run.pk}"), ("POST", "/files")]:
        answer = Client().generic(method, f"/v1{path}", "{}", content_type="application/json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "not_signed_in")


def test_a_session_needs_the_csrf_token_to_write() -> None:
    user, _ = make_person()
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user)
    answer = browser.post("/v1/runs", json.dumps({"prompt": "x", "model": ORACLE}), content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf_failed")


def test_only_a_paused_run_can_be_resumed(owner: Door) -> None:
    run = make_run(owner.account, owner.user)
    status, answer = owner("POST", f"/runs/{run.pk}/resume")
    assert (status, answer["error"]["code"]) == (409, "not_paused")
    status, shown = owner("POST", f"/runs/{run.pk}/pause")
    assert (status, shown["display_status"]) == (200, "paused")
    status, shown = owner("POST", f"/runs/{run.pk}/resume")
    assert (status, shown["display_status"]) == (200, "running")


def test_a_stopped_run_is_killed_and_cannot_be_stopped_again(owner: Door) -> None:
    run = make_run(owner.account, owner.user)
    assert owner("POST", f"/runs/{run.pk}/halt")[1]["display_status"] == "killed"
    assert owner("POST", f"/runs/{run.pk}/halt")[0] == 409


def test_a_run_is_public_only_while_its_benchmark_is(owner: Door) -> None:
    run = make_run(owner.account, owner.user)
    status, answer = owner("PATCH", f"/runs/{run.pk}", {"visibility": "public"})
    assert (status, answer["error"]["code"]) == (409, "benchmark_not_public")
    assert owner("PATCH", f"/runs/{run.pk}", {"visibility": "unlisted"})[1]["visibility"] == "unlisted"
    assert owner("PATCH", f"/runs/{run.pk}", {"status": "ok"})[1]["error"]["code"] == "unknown_key"


def test_an_uploaded_file_gets_an_id_and_an_empty_one_is_refused(owner: Door) -> None:
    def upload(data: bytes) -> Any:
        return owner.client.post("/v1/files", {"file": SimpleUploadedFile("rows.jsonl", data)}, headers=owner.headers)

    kept = upload(b'{"a": 1}\n').json()
    assert kept["id"].startswith("file_") and kept["bytes"] == 9
    assert upload(b"").json()["error"]["code"] == "file_empty"
    stranger = Door(*make_person())
    body = {"prompt": "x", "files": [kept["id"]], "model": ORACLE}
    assert stranger("POST", "/runs", body)[1]["error"]["code"] == "unknown_file"
    assert owner("POST", "/runs", body)[0] == 201


def test_lists_page_by_cursor_and_show_only_ones_own(owner: Door) -> None:
    mine = [make_run(owner.account, owner.user) for _ in range(5)]
    make_run()
    seen, cursor = [], ""
    while True:
        page = owner("GET", f"/runs?limit=2&cursor={cursor}")[1]
        seen += [row["id"] for row in page["data"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert seen == [str(run.pk) for run in reversed(mine)]
    assert owner("GET", "/runs?colour=red")[1]["error"]["code"] == "unknown_key"

"""The pages, each door as owner, teammate who only reads, stranger and passer-by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from billing.actions import make_sign_in_link, open_account
from billing.models import ApiKey, Membership, User
from billing.vocabulary import MemberRole
from registry.models import Benchmark, Upload
from runs.events.log import append
from runs.events.types.artifact import DatasetTasksArtifact
from runs.events.types.driver import AgentTextEvent
from runs.events.types.run import HaltRequested
from runs.models import Run
from tests.factories.runs import make_person, make_run, settled, sweep_started

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.pipeline.dispatch.dispatch", lambda run_id: None)


@pytest.fixture(autouse=True)
def _cheap_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def run() -> Run:
    """A run with six settled tasks of eight, every text of it hostile."""
    run = make_run(title=HOSTILE, prompt=HOSTILE * 2, model={"source": "endpoint", "identifier": HOSTILE})
    tasks = DatasetTasksArtifact(subset_id="s/default", snapshot_digest="0" * 64, count=8, selected=None)
    append(run.pk, [tasks, AgentTextEvent(text=HOSTILE), sweep_started(8)])
    said: dict[str, Any] = {"prompt": HOSTILE, "response": HOSTILE, "target": HOSTILE, "extracted": HOSTILE}
    scores = [1.0, 0.0, 1.0, None, 1.0, 0.5]
    error = {"kind": "scorer", "type": HOSTILE, "message": HOSTILE, "trace": HOSTILE}
    for index, score in enumerate(scores):
        append(run.pk, settled(index, score, **said, error=None if score is not None else error))
    run.refresh_from_db()
    return run


def _client(user: User | None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def _reader(run: Run) -> User:
    user = User.objects.create(username="reader")
    Membership.objects.create(account=run.account, user=user, role=MemberRole.VIEWER)
    return user


PAGES: list[Callable[[Run], str]] = [
    lambda run: f"/runs/{run.pk}/",
    lambda run: f"/runs/{run.pk}/?parts=status+phases+score+cost+heatmap+identity+scorer",
    lambda run: f"/runs/{run.pk}/?events=all",
    lambda run: f"/runs/{run.pk}/log/?events=driver",
    lambda run: f"/runs/{run.pk}/receipt/",
    lambda run: f"/runs/{run.pk}/tasks/",
    lambda run: f"/runs/{run.pk}/tasks/1/",
    lambda run: f"/runs/{run.pk}/tasks/3/",
]


@pytest.mark.parametrize("page", PAGES)
def test_hostile_text_is_printed_and_never_acts(run: Run, page: Callable[[Run], str]) -> None:
    answer = _client(run.user).get(page(run))
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "<script>alert" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("page", PAGES)
def test_a_private_run_does_not_exist_for_a_stranger(run: Run, page: Callable[[Run], str]) -> None:
    stranger, _ = make_person()
    there = _client(stranger).get(page(run))
    nowhere = _client(stranger).get(page(run).replace(str(run.pk), "01900000-0000-7000-8000-000000000000"))
    assert there.status_code == nowhere.status_code == 404
    assert HOSTILE[:10] not in there.content.decode()
    passer_by = _client(None).get(page(run))
    assert passer_by.status_code == 302
    assert passer_by["Location"].startswith("/sign-in/?next=")


def test_an_unlisted_run_is_shown_to_whoever_has_the_address_but_without_its_buttons(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(visibility="unlisted")
    text = _client(None).get(f"/runs/{run.pk}/").content.decode()
    assert "60.0%" in text  # 3 of the 5 that could be scored
    assert "/act/halt/" not in text


def test_a_teammate_who_only_reads_sees_the_run_and_cannot_stop_it(run: Run) -> None:
    reader = _client(_reader(run))
    text = reader.get(f"/runs/{run.pk}/").content.decode()
    assert "60.0%" in text
    assert "/act/halt/" not in text
    assert reader.post(f"/runs/{run.pk}/act/halt/").status_code == 403
    run.refresh_from_db()
    assert not run.halted


def test_the_map_carries_one_sign_for_each_task(run: Run) -> None:
    text = _client(run.user).get(f"/runs/{run.pk}/").content.decode()
    assert 'data-outcomes="pfpepf.."' in text


def test_a_task_that_has_not_begun_is_a_state_in_the_drawer_and_not_an_error(run: Run) -> None:
    answer = _client(run.user).get(f"/runs/{run.pk}/tasks/7/", headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "Not started" in answer.content.decode()


def test_the_log_gives_only_what_is_newer_than_the_page_has(run: Run) -> None:
    client = _client(run.user)
    newest = run.next_seq - 1
    rows = client.get(f"/runs/{run.pk}/log/?events=all&rows=1&after={newest - 1}").content.decode()
    assert rows.count('class="event ') == 1
    assert f'data-seq="{newest}"' in rows
    assert client.get(f"/runs/{run.pk}/log/?events=all&rows=1&after={newest}").content.decode().strip() == ""


def test_the_buttons_pause_resume_and_stop_the_run(run: Run) -> None:
    client = _client(run.user)
    assert client.post(f"/runs/{run.pk}/act/pause/").status_code == 302
    run.refresh_from_db()
    assert run.display_status == "paused"
    part = client.post(f"/runs/{run.pk}/act/resume/", headers={"HX-Request": "true"})
    assert 'data-status="running"' in part.content.decode()
    client.post(f"/runs/{run.pk}/act/halt/")
    run.refresh_from_db()
    assert run.display_status == "killed"
    again = client.post(f"/runs/{run.pk}/act/resume/", headers={"HX-Request": "true"})
    assert "Only a paused run can be resumed." in again.content.decode()


def test_a_run_is_shared_and_taken_back_from_its_page(run: Run) -> None:
    client = _client(run.user)
    client.post(f"/runs/{run.pk}/act/visibility/", {"visibility": "unlisted"})
    assert _client(None).get(f"/runs/{run.pk}/").status_code == 200
    refused = client.post(f"/runs/{run.pk}/act/visibility/", {"visibility": "public"}, headers={"HX-Request": "true"})
    assert "only while its benchmark is public" in refused.content.decode()
    client.post(f"/runs/{run.pk}/act/visibility/", {"visibility": "private"})
    assert _client(None).get(f"/runs/{run.pk}/").status_code == 302


def test_the_table_of_tasks_has_the_score_of_each(run: Run) -> None:
    client = _client(run.user)
    text = client.get(f"/runs/{run.pk}/tasks/").content.decode()
    assert text.count('<td class="num task-index">') == 8
    assert ">0.5<" in text
    failed = client.get(f"/runs/{run.pk}/tasks/?outcome=f&page=99").content.decode()
    assert failed.count('<td class="num task-index">') == 2


def test_a_waiting_run_asks_its_question_and_goes_on_with_the_answer(run: Run) -> None:
    append(run.pk, [HaltRequested(reason="agent_review: which column is the label?", by="driver")])
    client = _client(run.user)
    assert "which column is the label?" in client.get(f"/runs/{run.pk}/").content.decode()
    empty = client.post(f"/runs/{run.pk}/act/review/", {"review_resolution": " "}, headers={"HX-Request": "true"})
    assert "Say how to go on." in empty.content.decode()
    client.post(f"/runs/{run.pk}/act/review/", {"review_resolution": "the last one"})
    run.refresh_from_db()
    assert run.display_status == "running"


def test_a_launch_from_the_form_is_the_launch_of_the_api() -> None:
    user, account = make_person()
    file = SimpleUploadedFile("sums.jsonl", b'{"question": "1+1", "answer": "2"}\n')
    typed = {
        "source": "upload",
        "prompt": "Sums",
        "model_kind": "control",
        "control": "empty",
        "sample_limit": "1",
        "files": file,
    }
    answer = _client(user).post("/", typed)
    run = Run.objects.get(account=account)
    assert answer.status_code == 302 and answer["Location"] == f"/runs/{run.pk}/"
    assert (run.prompt, run.sample, run.model["identifier"]) == ("Sums", {"limit": 1}, "control/empty")
    assert run.launch["files"][0]["name"] == "sums.jsonl"


def test_a_launch_sent_twice_makes_one_run() -> None:
    user, account = make_person()
    client = _client(user)
    typed = {"prompt": "Sums", "model_kind": "control", "idempotency_key": f"k{account.pk}"}
    first, second = client.post("/", typed), client.post("/", typed)
    assert first["Location"] == second["Location"]
    assert Run.objects.filter(account=account).count() == 1


def test_a_refused_launch_keeps_the_files_that_came_with_it() -> None:
    user, account = make_person()
    client = _client(user)
    file = SimpleUploadedFile("sums.jsonl", b"{}\n")
    answer = client.post("/", {"source": "upload", "model_kind": "endpoint", "endpoint_model": "m", "files": file})
    kept = Upload.objects.get(account=account)
    text = answer.content.decode()
    assert answer.status_code == 400
    assert "An endpoint needs its base URL." in text
    assert f'name="kept" value="{kept.pk}"' in text
    client.post("/", {"source": "upload", "model_kind": "control", "kept": kept.pk})
    assert Run.objects.get(account=account).launch["files"][0]["id"] == kept.pk


def test_another_accounts_file_cannot_be_launched_by_its_id(run: Run) -> None:
    theirs = Upload.objects.create(id="file_theirs", account=run.account, name="x", sha256="0" * 64, size=1)
    user, account = make_person()
    answer = _client(user).post("/", {"source": "upload", "model_kind": "control", "kept": theirs.pk})
    assert answer.status_code in (400, 404)
    assert not Run.objects.filter(account=account).exists()


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({}, "Say what to measure"),
        ({"prompt": "x", "model_kind": "litellm"}, "Pick the model"),
        ({"prompt": "x", "model_kind": "control", "control": "oracle"}, "ready"),
        ({"prompt": "x", "model_kind": "litellm", "litellm_model": "nowhere/m"}, "no key for"),
        ({"prompt": "x", "model_kind": "litellm", "litellm_model": "nowhere/m", "has_key": "1"}, "ready"),
        ({"prompt": "x", "model_kind": "control", "limit_run_cost": "much"}, "is not a number"),
    ],
)
def test_the_form_is_checked_while_it_is_typed_and_nothing_is_launched(typed: dict[str, str], says: str) -> None:
    user, _ = make_person()
    answer = _client(user).post("/launch/validate", typed)
    assert answer.status_code == 200
    assert says in answer.content.decode()
    assert not Run.objects.exists()


def test_the_list_shows_my_runs_and_nobody_elses(run: Run) -> None:
    other = make_run(title="Theirs")
    text = _client(run.user).get("/runs/").content.decode()
    assert str(run.pk) in text
    assert str(other.pk) not in text
    assert _client(None).get("/runs/").status_code == 302
    assert "No run matches" in _client(run.user).get("/runs/?q=nothing-like-it").content.decode()
    assert _client(run.user).get("/runs/?cursor=rubbish").status_code == 400


def test_a_sign_in_link_is_spent_by_pressing_the_button_and_not_by_a_preview_of_it() -> None:
    user, _ = open_account("newcomer")
    path = f"/sign-in/{make_sign_in_link(user)}/"
    client = Client()
    assert client.get(path).status_code == 200
    assert client.get(path).status_code == 200
    assert client.post(path, {"next": "https://elsewhere.example/"})["Location"] == "/"
    assert "sessionid" in client.cookies or "bw_session" in client.cookies
    assert Client().post(path).status_code == 401


def test_a_password_signs_in_and_a_wrong_one_says_not_which_half_was_wrong() -> None:
    name = f"ada-{uuid4()}"
    open_account(name, password="correct-horse-7")
    wrong = Client().post("/sign-in/", {"username": name, "password": "x"}).content
    nobody = Client().post("/sign-in/", {"username": f"eve-{uuid4()}", "password": "x"}).content
    words = b"That name and password don&#x27;t go together."
    assert words in wrong and words in nobody
    right = Client().post("/sign-in/", {"username": name, "password": "correct-horse-7", "next": "/runs/"})
    assert right["Location"] == "/runs/"


def test_a_guesser_of_passwords_is_stopped_and_the_owner_elsewhere_is_not() -> None:
    name = f"grace-{uuid4()}"  # tries are remembered for minutes, beyond this test
    open_account(name, password="correct-horse-7")
    guesses = [Client().post("/sign-in/", {"username": name, "password": "x"}).status_code for _ in range(12)]
    assert guesses == [403] * 10 + [429] * 2
    right = {"username": name, "password": "correct-horse-7"}
    assert Client().post("/sign-in/", right).status_code == 429
    assert Client(REMOTE_ADDR="10.1.1.1").post("/sign-in/", right).status_code == 302


def test_a_part_asked_for_after_the_session_ended_sends_the_browser_to_sign_in(run: Run) -> None:
    asked = {"HX-Request": "true", "HX-Current-URL": f"http://testserver/runs/{run.pk}/"}
    answer = Client().get(f"/runs/{run.pk}/tasks/1/", headers=asked)
    assert answer.status_code == 204
    assert answer["HX-Redirect"] == f"/sign-in/?next=/runs/{run.pk}/"


def test_a_key_is_shown_once_and_works_until_it_is_revoked() -> None:
    user, account = make_person()
    client = _client(user)
    made = client.post("/settings/keys/", {"act": "create", "name": "CI"}).content.decode()
    raw = made.split("data-new-key>")[1].split("<")[0]
    assert raw not in client.get("/settings/keys/").content.decode()
    bearer = {"Authorization": f"Bearer {raw}"}
    assert Client().get("/v1/runs", headers=bearer).status_code == 200
    client.post("/settings/keys/", {"act": "revoke", "key": str(ApiKey.objects.get(account=account).pk)})
    assert Client().get("/v1/runs", headers=bearer).status_code == 401


def test_a_private_benchmark_is_on_nobody_elses_page() -> None:
    user, account = make_person()
    Benchmark.objects.create(id="mine", name=HOSTILE, description=HOSTILE, owner=account)
    mine = _client(user)
    assert "<script>alert" not in mine.get("/registry/").content.decode()
    assert mine.get("/registry/mine/").status_code == 200
    stranger, _ = make_person()
    assert 'href="/registry/mine/"' not in _client(stranger).get("/registry/").content.decode()
    assert _client(stranger).get("/registry/mine/").status_code == 404


def test_every_page_comes_with_the_strict_policy(run: Run) -> None:
    policy = _client(run.user).get(f"/runs/{run.pk}/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'self'" in policy

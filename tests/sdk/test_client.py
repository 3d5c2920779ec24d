"""The client against the real API."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest
from benchwright_client import (
    AsyncClient,
    BadRequest,
    Client,
    Conflict,
    NotAllowed,
    NotFound,
    NotLoggedIn,
    NotSignedIn,
    ServerFault,
    Unreachable,
    WaitTimeout,
)
from benchwright_client.calls import create
from benchwright_client.verify import verify

from billing.actions import make_key
from billing.models import Account, User
from registry.actions import publish_impl, save_subset
from registry.models import Benchmark
from runs.models import Run
from tests.contracts.project import ROOT, code_blocks, read
from tests.factories.runs import make_run
from tests.sdk.conftest import URL
from tests.sdk.door import Door
from tests.sdk.stories import tell, told_run

Person = tuple[User, Account]


def mine(person: Person, **given: Any) -> Run:
    """A told run of this person."""
    return told_run(user=person[0], account=person[1], **given)


def open_sums(person: Person, name: str = "sums") -> None:
    """A benchmark that can be launched."""
    made = Benchmark.objects.create(id=name, name="Sums", owner=person[1], source={"files": []})
    subset, _ = save_subset(made, "default", [{"row": {"q": 1}, "reference": None, "choices": None}], field_map={})
    publish_impl(made, subset, "class TaskImpl: pass", proof={}, run_id=None)


def test_a_run_comes_back_typed_and_exact(client: Client, person: Person) -> None:
    run = client.runs.get(str(mine(person).pk))
    assert (run.status, run.ended, run.model) == ("ok", True, "control/oracle")
    assert run.score is not None and (run.score.accuracy, run.score.n, run.score.errored) == (0.6, 5, 1)
    assert run.cost.model == Decimal("0.000738")
    assert (run.counts.selected, run.counts.settled) == (8, 6)


def test_an_unknown_cost_is_none_and_never_zero(client: Client, person: Person) -> None:
    run = client.runs.get(str(mine(person, cost=None).pk))
    assert run.cost.model is None and run.cost.incurred is None


def test_a_launch_uploads_is_refused_by_name_and_is_found_again(client: Client) -> None:
    file = client.files.upload(("sums.jsonl", b'{"q": "1+1", "a": "2"}\n'))
    run = client.runs.create(prompt="Sums", files=[file.id], model="control/empty", metadata={"team": "x"})
    assert run.status == "running" and run.raw["metadata"] == {"team": "x"}
    assert [r.id for r in client.runs.list(q="Sums")] == [run.id]
    with pytest.raises(BadRequest) as refused:
        client.runs.create(promt="Sums", model="control/empty")
    assert (refused.value.code, refused.value.field) == ("unknown_key", "promt")
    assert "'prompt'" in str(refused.value.hint) and refused.value.request_id


def test_a_launch_whose_answer_got_lost_makes_one_run(person: Person, key: str) -> None:
    door, lost = Door(), []

    def handler(request: httpx.Request) -> httpx.Response:
        answer = door.handle_request(request)
        if not lost:
            lost.append(request)
            raise httpx.ReadError("the cable was pulled")
        return answer

    with Client(URL, key, transport=httpx.MockTransport(handler)) as client:
        run = client.runs.create(prompt="Sums", model="control/empty")
    assert [str(r.pk) for r in Run.objects.filter(account=person[1])] == [run.id]


def test_only_what_can_happen_once_is_sent_again() -> None:
    sent = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.path)
        raise httpx.ReadError("lost")

    with Client(URL, "bw_x", transport=httpx.MockTransport(handler)) as client:
        with pytest.raises(Unreachable):
            client.runs.halt("r")
        with pytest.raises(Unreachable):
            client.runs.get("r")
    assert len(sent) == 1 + 4


def test_lists_and_tasks_go_on_over_their_pages(
    client: Client, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchwright_client.calls.PAGE", 2)
    runs = [mine(person) for _ in range(5)]
    assert {r.id for r in client.runs.list()} == {str(r.pk) for r in runs}
    assert len(list(client.runs.list(most=3))) == 3
    run = client.runs.get(str(runs[0].pk))
    assert [t.outcome for t in run.tasks()] == ["pass", "fail", "pass", "err", "pass", "fail"]
    assert [t.index for t in run.tasks(outcome="err")] == [3]
    assert [e.seq for e in client.runs.log(run.id)] == list(range(runs[0].next_seq))
    assert client.runs.task(run.id, 1)["trials"][0]["score"] == 0.0


def test_verbs_change_the_run_and_an_ended_one_refuses(client: Client, person: Person) -> None:
    going = make_run(user=person[0], account=person[1])
    run = client.runs.get(str(going.pk))
    assert run.pause().status == "paused" and run.refresh().parked
    assert run.resume().status == "running"
    assert run.halt().status == "killed"
    with pytest.raises(Conflict) as refused:
        run.halt()
    assert refused.value.code == "already_ended"
    assert client.runs.change(run.id, visibility="unlisted").raw["visibility"] == "unlisted"


def test_waiting_gives_up_when_it_was_told_to_and_stops_where_a_person_is_needed(
    client: Client, person: Person
) -> None:
    run = client.runs.get(str(make_run(user=person[0], account=person[1]).pk))
    with pytest.raises(WaitTimeout):
        run.wait(timeout=0.02, every=0.01)
    run.pause()
    assert run.wait(timeout=0).status == "paused"


def test_events_come_once_and_in_order_from_where_one_was(client: Client, person: Person) -> None:
    told = mine(person)
    run = client.runs.get(str(told.pk))
    assert [e.seq for e in run.events()] == list(range(told.next_seq))
    assert [e.seq for e in run.events(after=told.next_seq - 3)] == [told.next_seq - 2, told.next_seq - 1]


def test_a_downloaded_receipt_holds(client: Client, person: Person) -> None:
    run = client.runs.get(str(mine(person).pk))
    trusted = client.receipt_key()["public_key"]
    assert all(check.ok for check in verify(run.receipt(), key=trusted))
    assert client.runs.artifact(run.id, "events.jsonl").count(b"\n") == run.raw["last_seq"] + 1
    assert client.runs.export(run.id, "csv").startswith(b"index,trial,outcome")


def test_the_registry_names_what_can_be_launched(client: Client, person: Person) -> None:
    open_sums(person)
    assert "sums" in [b.id for b in client.registry.benchmarks()]
    assert client.registry.benchmark("sums").subsets[0]["count"] == 1


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda c, run: Client(URL, "bw_wrong", transport=Door()).runs.get(run), NotSignedIn),
        (lambda c, run: c.runs.get("01900000-0000-7000-8000-000000000000"), NotFound),
        (lambda c, run: c.runs.get("../registry/benchmarks"), NotFound),
        (lambda c, run: c.runs.export(run, "xls"), BadRequest),
        (lambda c, run: Client("not an address", "x"), NotLoggedIn),
    ],
)
def test_each_error_has_its_class(
    client: Client, person: Person, act: Callable[[Client, str], Any], error: type[Exception]
) -> None:
    run = str(mine(person).pk)
    with pytest.raises(error):
        act(client, run)


def test_a_key_that_only_reads_is_told_so(person: Person) -> None:
    client = Client(URL, make_key(*person, "reader", read_only=True), transport=Door())
    with pytest.raises(NotAllowed):
        client.runs.halt(str(mine(person).pk))


def test_an_answer_of_something_else_is_told_as_such() -> None:
    page = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>Sign in to the wifi</html>"))
    with pytest.raises(BadRequest, match="Sign in to the wifi"):
        Client(URL, "x", transport=page).runs.get("r")
    down = httpx.MockTransport(lambda request: httpx.Response(502, text="bad gateway"))
    with pytest.raises(ServerFault) as fault:
        Client(URL, "x", transport=down).runs.get("r")
    assert fault.value.code == "not_benchwright"


def test_a_busy_server_is_asked_again_when_it_says_so() -> None:
    answers = [httpx.Response(429, headers={"Retry-After": "0"}), httpx.Response(503), httpx.Response(200, json={})]
    client = Client(URL, "x", transport=httpx.MockTransport(lambda request: answers.pop(0)))
    assert client.receipt_key() == {}


@pytest.mark.parametrize(
    ("url", "uses_proxy"), [("http://127.0.0.1:8800", False), ("http://localhost", False), (URL, True)]
)
def test_an_address_of_this_machine_is_reached_without_a_proxy(
    url: str, uses_proxy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchwright_client.transport import options

    assert options(url, None, 1)["trust_env"] is uses_proxy


def test_each_launch_has_a_key_of_its_own_unless_it_is_given_one() -> None:
    assert create({}, None).headers != create({}, None).headers
    assert create({}, "k").headers == {"Idempotency-Key": "k"}


async def test_the_awaited_client_says_the_same() -> None:
    """Over a fake server: Django's test client can't be reached from a loop."""
    row = {"id": "r", "title": "T", "url": "u", "display_status": "ok", "model": {"identifier": "m"}, "cost": {},
           "created_at": "2026-01-01T00:00:00Z", "score": None}  # fmt: skip
    text = 'id: 0\nevent: X\ndata: {"seq": 0, "type": "X", "at": "2026-01-01T00:00:00Z", "data": {}, "digest": ""}\n\n'
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.path))
        if request.url.path.endswith("/events/stream"):
            # The first connection breaks off in the middle of a frame.
            whole = len([a for a in asked if a[1].endswith("stream")]) > 1
            return httpx.Response(200, text=text + ("event: end\ndata: \n\n" if whole else "id: 1\nda"))
        if request.url.path.endswith("/tasks"):
            task = {"index": 0, "outcome": "pass", "score": 1.0}
            return httpx.Response(200, json={"data": [task], "next_after": None})
        listed = request.url.path == "/v1/runs" and request.method == "GET"
        return httpx.Response(200, json={"data": [row], "next_cursor": None} if listed else row)

    async with AsyncClient(URL, "x", transport=httpx.MockTransport(handler)) as client:
        run = await client.runs.create(benchmark="b", model="m")
        assert [e.seq async for e in run.events()] == [0]
        assert (await run.wait()).status == "ok"
        assert [t.outcome async for t in run.tasks()] == ["pass"]
        assert [r.id async for r in client.runs.list()] == ["r"]
        assert (await run.halt()).id == "r"


def test_the_readmes_script_runs(person: Person, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    open_sums(person, "sample-arithmetic")
    [script] = code_blocks(read("sdk/README.md"), "python")
    door = Door(launched=tell)

    def connect(url: str, given: str) -> Client:
        return Client(url, given, transport=door)

    body = script.replace("from benchwright_client import Client\n", "")
    exec(compile(body, "sdk/README.md", "exec"), {"Client": connect, "url": URL, "key": key})
    lines = capsys.readouterr().out.splitlines()
    assert sum("PipelineFinished" in line for line in lines) == 2
    assert "control/random ok Score(accuracy=0.6" in lines[-1]


def test_neither_client_nor_command_knows_the_server() -> None:
    code = (
        "import sys, benchwright_client.aio, benchwright_client.cli.main, benchwright_client.verify\n"
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('django', 'ninja', 'benchwright', 'runs', 'registry', 'billing', 'sandboxes')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/", env={"PYTHONPATH": str(ROOT / "sdk")}
    )
    assert done.stdout.strip() == "[]", done.stderr

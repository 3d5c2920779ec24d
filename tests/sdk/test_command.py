"""The command `benchwright`: what it says, where it keeps a key, and with which code it ends."""

from __future__ import annotations

import io
import json
import re
import stat
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchwright_client.cli.main import cli, main
from benchwright_client.cli.session import config_path
from benchwright_client.transport import file_name

from billing.models import Account, User
from runs.events.log import append
from runs.events.types.run import HaltRequested, PipelineFinished
from runs.models import Run
from tests.contracts.project import read
from tests.factories.runs import make_run
from tests.sdk.conftest import URL
from tests.sdk.door import Door
from tests.sdk.stories import tell, told_run

Person = tuple[User, Account]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command as that person: exit code, output, complaints."""
    monkeypatch.setenv("BENCHWRIGHT_URL", URL)
    monkeypatch.setenv("BENCHWRIGHT_API_KEY", key)

    def run(*argv: str, transport: httpx.BaseTransport | None = None) -> tuple[int, str, str]:
        code = main(argv, transport=transport or Door())
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_run_is_launched_with_its_file_and_everything_that_was_asked_for(
    command: Command, person: Person, tmp_path: Path
) -> None:
    file = tmp_path / "sums.jsonl"
    file.write_text('{"q": "1+1", "a": "2"}\n')
    code, out, err = command(
        "run", "--prompt", "Sums", "--file", str(file), "--model", "m", "--endpoint", "http://127.0.0.1:9/v1",
        "--param", "temperature=0", "--price", "input_per_token=0.0000001", "--price", "output_per_token=0.0000004",
        "--trials", "3", "--aggregator", "mean", "--sample", "5", "--limit", "run.cost=5", "--metadata", "team=search",
        "--json",
    )  # fmt: skip
    assert code == 0, err
    given = json.loads(out)
    run = Run.objects.get(account=person[1])
    assert given["id"] == str(run.pk) and run.launch["files"][0]["name"] == "sums.jsonl"
    price = {name: Decimal(value) for name, value in run.model.pop("price").items()}
    assert price == {"input_per_token": Decimal("0.0000001"), "output_per_token": Decimal("0.0000004")}
    assert run.model == {
        "source": "endpoint", "identifier": "m", "base_url": "http://127.0.0.1:9/v1", "params": {"temperature": 0},
    }  # fmt: skip
    assert run.trials_config == {"plan": {"k": 3}, "aggregator": {"name": "mean"}}
    assert (run.limits, run.sample, run.metadata) == ({"run": {"cost": 5}}, {"limit": 5}, {"team": "search"})


def test_a_watched_run_ends_with_its_score_and_its_code(command: Command) -> None:
    argv = ("run", "--prompt", "Sums", "--model", "control/oracle", "--watch")
    code, out, _ = command(*argv, transport=Door(launched=tell))
    assert code == 0
    assert "60.0 %, n = 5" in out and "coverage 75.0 %" in out and "1 errored" in out


def test_leaving_a_watched_run_leaves_it_alone(
    command: Command, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchwright_client.cli.screen.time.sleep", interrupt)
    code, _, err = command("run", "--prompt", "Sums", "--model", "control/oracle", "--watch")
    run = Run.objects.get(account=person[1])
    assert code == 130 and "the run goes on" in err and str(run.pk) in err
    assert (run.status, run.halted) == ("running", False)


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([], 0),
        ([PipelineFinished(status="ok", duration_ms=1)], 0),
        ([PipelineFinished(status="error", duration_ms=1)], 1),
        ([HaltRequested(reason="operator_kill: enough", by="x")], 3),
        ([HaltRequested(reason="limit_exceeded: run.cost", by="limits")], 3),
        ([HaltRequested(reason="operator_pause", by="x")], 4),
        ([HaltRequested(reason="agent_review: which column?", by="driver")], 4),
    ],
)
def test_the_exit_code_says_how_a_run_stands(command: Command, person: Person, events: list[Any], code: int) -> None:
    run = make_run(user=person[0], account=person[1])
    append(run.pk, events)
    assert command("runs", "show", str(run.pk))[0] == code


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["runs", "show", "nope"], 2, "There is no such run."),
        (["run", "--prompt", "x", "--model", "control/orcale"], 2, "Known: control/oracle"),
        (["run", "--model", "control/oracle"], 2, "Say what to measure."),
        (["run", "--prompt", "x", "--model", "m", "--limit", "cost"], 2, "is not name=value"),
        (["run", "--prompt", "x", "--model", "m", "--model-key-env", "NOT_SET_HERE"], 2, "NOT_SET_HERE is not set"),
        (["runs", "show", "x", "--key", "bw_wrong"], 5, "request req_"),
        (["verify", "nowhere.json"], 2, "nowhere.json"),
        (["fly"], 2, "No such command"),
    ],
)
def test_what_is_refused_ends_with_its_code_and_words(command: Command, argv: list[str], code: int, says: str) -> None:
    found, out, err = command(*argv)
    assert found == code and says in err, err
    assert out == ""


def test_a_server_that_is_not_there_has_a_code_of_its_own(command: Command) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    code, _, err = command("runs", "list", transport=httpx.MockTransport(refuse))
    assert code == 6 and "does not answer" in err


def test_a_key_is_kept_for_its_owner_alone_and_for_its_address_alone(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(key + "\n"))
    assert main(["login", "--url", URL], transport=Door()) == 0
    assert stat.S_IMODE(config_path().stat().st_mode) == 0o600
    assert key not in capsys.readouterr().out
    assert main(["runs", "list"], transport=Door()) == 0
    door = Door()
    assert main(["runs", "list", "--url", "https://elsewhere.example"], transport=door) == 5
    assert door.requests == []
    assert main(["doctor"], transport=Door()) == 0
    config_path().chmod(0o644)
    assert main(["doctor"], transport=Door()) == 1
    assert "chmod 600" in capsys.readouterr().out


def test_a_key_that_is_refused_is_not_kept(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("bw_wrong\n"))
    assert main(["login", "--url", URL], transport=Door()) == 5
    assert not config_path().exists()


def test_without_a_login_it_says_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "list"]) == 5
    assert "benchwright login" in capsys.readouterr().err


def test_a_receipt_goes_from_the_server_to_the_check(command: Command, person: Person, tmp_path: Path) -> None:
    run = told_run(user=person[0], account=person[1])
    receipt, log = tmp_path / "receipt.json", tmp_path / "events.jsonl"
    assert command("runs", "receipt", str(run.pk), "--output", str(receipt), "--events", str(log))[0] == 0
    code, out, _ = command("verify", str(receipt), str(log))
    assert code == 0 and "holds." in out
    document = json.loads(receipt.read_text())
    document["receipt"]["counts"]["passed"] = 5
    receipt.write_text(json.dumps(document))
    code, out, _ = command("verify", str(receipt), str(log), "--json")
    assert code == 1 and json.loads(out)["holds"] is False


def test_an_export_into_a_folder_has_the_name_by_which_its_reader_finds_it(
    command: Command, person: Person, tmp_path: Path
) -> None:
    run = str(told_run(user=person[0], account=person[1]).pk)
    code, out, _ = command("runs", "export", run, "--format", "inspect", "--output", str(tmp_path))
    path = Path(out.strip())
    assert code == 0 and path.parent == tmp_path
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00_benchwright_[0-9a-f]{32}\.json", path.name)
    assert len(json.loads(path.read_text())["samples"]) == 6


@pytest.mark.parametrize(
    ("header", "name"),
    [('x; filename="a.csv"', "a.csv"), ('x; filename="../../x"', None), ('x; filename=".."', None), ("", None)],
)
def test_a_server_does_not_choose_the_folder(header: str, name: str | None) -> None:
    assert file_name(httpx.Response(200, headers={"Content-Disposition": header})) == name


def test_everything_answers_in_json(command: Command, person: Person) -> None:
    run = str(told_run(user=person[0], account=person[1]).pk)
    for argv in (["runs", "list"], ["runs", "show", run], ["runs", "tasks", run], ["runs", "tasks", run, "1"],
                 ["registry", "list"], ["runs", "receipt", run], ["doctor"]):  # fmt: skip
        code, out, err = command(*argv, "--json") if argv[1:2] != ["receipt"] else command(*argv)
        assert (code, err) == (0, "") and json.loads(out) is not None
    code, out, _ = command("runs", "events", run, "--follow", "--json")
    assert [json.loads(line)["seq"] for line in out.splitlines()] == list(range(len(out.splitlines())))


def test_nothing_that_a_model_wrote_acts_on_the_terminal(command: Command, person: Person) -> None:
    run = told_run(user=person[0], account=person[1], title="\x1b[2J[red]x[/red]\u202e")
    for argv in (["runs", "show"], ["runs", "events"], ["runs", "tasks"]):
        out = command(*argv, str(run.pk))[1]
        assert out and "\x1b" not in out and "\u202e" not in out
    assert "[red]x[/red]" in command("runs", "list")[1]


def test_the_readme_names_every_command() -> None:
    told = read("sdk/README.md")
    for name, found in cli.commands.items():
        names = [f"{name} {sub}" for sub in getattr(found, "commands", {})] or [name]
        assert not [n for n in names if f"`{n}`" not in told]

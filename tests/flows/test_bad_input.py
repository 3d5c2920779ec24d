"""Bad input ends in words that say what to do, on the page and in the API, with the log intact."""

from __future__ import annotations

import gzip
import http.server
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.client import Api
from tests.fakes.provider import FakeProvider
from tests.stack import Stack

ORACLE = {"source": "control", "identifier": "control/oracle"}
GOOD = [{"question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(40)]


def lines(rows: list[Any]) -> bytes:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def bomb() -> bytes:
    """A small archive of 400 MB of nothing."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.jsonl", b"0" * (400 << 20))
    return out.getvalue()


HTML = b"<!DOCTYPE html><html><body>Sign in</body></html>"
UNLABELLED = [{"question": f"Is {n} odd?"} for n in range(30)]
NULLS = [{"question": f"What is {n}?", "answer": None} for n in range(30)]
HUGE = [{"question": "x" * (2 << 20), "answer": "1"}]
CRLF = b"question,answer\r\n" + b"".join(f"What is {n} + 1?,{n + 1}\r\n".encode() for n in range(40))
BREAKS = b"question,answer\n" + b"".join(f'"What is\n{n} + 1?",{n + 1}\n'.encode() for n in range(40))

FILES: dict[str, tuple[str, bytes, str, str]] = {
    # what: (name, bytes, how the run ends, a word of the message)
    "half the rows malformed": ("half.jsonl", lines(GOOD[:20]) + b'{"question": "x", \n' * 20, "error", "row"),
    "an HTML page instead of data": ("page.jsonl", HTML, "error", "web page"),
    "an archive bomb": ("bomb.zip", bomb(), "error", "bomb.zip"),
    "a row of two megabytes": ("huge.jsonl", lines(HUGE), "error", "huge.jsonl"),
    "no label column": ("nolabel.jsonl", lines(UNLABELLED), "waiting", "agent_review"),
    "labels that are all null": ("nulls.jsonl", lines(NULLS), "waiting", "agent_review"),
    "binary": ("noise.jsonl", bytes(range(256)) * 50, "error", "noise.jsonl"),
    "a broken gzip": ("cut.jsonl.gz", gzip.compress(lines(GOOD))[:60], "error", "cut.jsonl.gz"),
}

ODD: dict[str, tuple[str, bytes]] = {
    "a byte order mark": ("bom.jsonl", b"\xef\xbb\xbf" + lines(GOOD)),
    "CRLF": ("crlf.csv", CRLF),
    "line breaks inside fields": ("breaks.csv", BREAKS),
    "gzip": ("rows.jsonl.gz", gzip.compress(lines(GOOD))),
    "a list in JSON": ("rows.json", json.dumps(GOOD).encode()),
    "duplicate ids": ("twice.jsonl", lines([{"id": 1, **row} for row in GOOD])),
}


def ended(api: Api, tmp_path: Path, name: str, data: bytes, **body: Any) -> dict[str, Any]:
    """The run over this file, ended or parked."""
    path = tmp_path / name
    path.write_bytes(data)
    given = {"prompt": "Small sums", "model": ORACLE, **body}
    return api.wait(api.launch(files=[api.upload(path)], **given)["id"], 120)


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_cannot_be_used_says_why_and_what_to_do(stack: Stack, api: Api, tmp_path: Path, what: str) -> None:
    name, data, status, word = FILES[what]
    run = ended(api, tmp_path, name, data)
    told = run["halt_reason"] or f"{run['error']['detail']} {run['error']['hint']}"
    assert (run["display_status"], word.lower() in told.lower()) == (status, True), told
    assert run["score"] is None
    if status == "error":
        assert run["error"]["type"] in {"bad_data", "no_data"} and run["error"]["hint"]
    stack.manage("verify_run", run["id"])


@pytest.mark.parametrize("what", ODD)
def test_an_odd_but_sound_file_is_read_whole(api: Api, tmp_path: Path, what: str) -> None:
    run = ended(api, tmp_path, *ODD[what])
    assert (run["display_status"], run["tasks"]["total"]) == ("ok", 40), run["error"] or run["halt_reason"]
    assert run["score"]["accuracy"] == 1.0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A web server that answers a sign-in page to everything but /rows.jsonl."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/rows.jsonl"
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(lines(GOOD) if found else b"<html>Not found</html>")

        def log_message(self, *_: Any) -> None:
            """Silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def test_a_private_address_is_refused_as_a_source_and_the_refusal_is_logged(api: Api, site: str) -> None:
    run = api.wait(api.launch(prompt="Small sums", source=f"{site}/rows.jsonl", model=ORACLE)["id"], 60)
    assert (run["display_status"], run["error"]["type"]) == ("error", "source_unreachable")
    assert "policy" in run["error"]["detail"] and "/v1/host-policy" in run["error"]["hint"]
    blocked = api.call("GET", f"/runs/{run['id']}/blocked-hosts")["data"]
    assert [(b["host"], b["role"]) for b in blocked] == [("127.0.0.1", "work")]
    assert api.events(run["id"], "HostBlocked")


@pytest.mark.parametrize(
    ("provider", "kind"),
    [
        ({"key": "sk-right"}, "upstream_auth"),
        ({"models": ["another"]}, "model_not_found"),
    ],
)
def test_a_wrong_key_or_a_missing_model_is_told_before_any_task_runs(
    api: Api, tmp_path: Path, provider: dict[str, Any], kind: str
) -> None:
    with FakeProvider(answers="7", **provider) as upstream:
        model = {"source": "endpoint", "identifier": "m", "base_url": upstream.base_url, "api_key": "sk-wrong-one"}
        run = ended(api, tmp_path, "sums.jsonl", lines(GOOD), model=model)
    assert (run["display_status"], run["error"]["phase"], run["error"]["type"]) == ("error", "attach", kind)
    assert run["error"]["hint"]
    assert "sk-wrong-one" not in json.dumps(api.events(run["id"]))


def test_headers_of_a_launch_reach_the_provider_and_not_the_log(api: Api, tmp_path: Path) -> None:
    with FakeProvider(answers="7") as upstream:
        model: dict[str, Any] = {"source": "endpoint", "identifier": "m", "base_url": upstream.base_url}
        model["headers"] = {"X-Team": "tok-secret-1"}
        run = ended(api, tmp_path, "sums.jsonl", lines(GOOD), model=model, sample={"limit": 2})
        again = api.wait(api.launch(replay=run["id"])["id"], 60)
        seen = {request.headers.get("X-Team") for request in upstream.requests}
    assert (run["display_status"], again["display_status"], seen) == ("ok", "ok", {"tok-secret-1"})
    assert run["fingerprint"] == again["fingerprint"]
    assert "tok-secret-1" not in json.dumps(api.events(run["id"]) + api.events(again["id"]))


def test_an_endpoint_that_is_not_there_is_told(api: Api, tmp_path: Path) -> None:
    model = {"source": "endpoint", "identifier": "m", "base_url": "http://127.0.0.1:9/v1"}
    run = ended(api, tmp_path, "sums.jsonl", lines(GOOD), model=model)
    assert (run["display_status"], run["error"]["type"]) == ("error", "upstream_unreachable")


def test_a_second_pinned_launch_copies_fetch_and_setup_and_does_attach_and_materialize_alone(
    api: Api, tmp_path: Path
) -> None:
    first = ended(api, tmp_path, "pinned.jsonl", lines(GOOD))
    pinned = {"benchmark": first["benchmark_id"], "subset": first["subset_id"], "impl": first["impl_id"]}
    run = api.wait(api.launch(model={"source": "control", "identifier": "control/empty"}, **pinned)["id"], 60)
    did = {p["phase"]: p["status"] for p in run["phases"]}
    assert did == {
        "find": "skipped", "fetch": "cached", "analyze": "skipped", "setup": "cached", "attach": "ok",
        "atomize": "skipped", "materialize": "ok",
    }  # fmt: skip
    began = [e["data"]["phase"] for e in api.events(run["id"], "PhaseStarted")]
    assert began == ["fetch", "setup", "attach", "materialize"]
    assert (run["score"]["accuracy"], first["score"]["accuracy"]) == (0.0, 1.0)
    assert run["comparability_key"] == first["comparability_key"]
    assert run["fingerprint"] != first["fingerprint"]

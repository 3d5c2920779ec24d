"""Receipts and exports as the API gives them."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.core.handlers.asgi import ASGIRequest
from django.test import Client

from benchwright.lib.canonical import canonical
from benchwright.lib.streamed import streamed
from runs.events.log import raw
from runs.projections.receipt import receipt
from runs.queries.access import visible_run
from runs.queries.run_detail import detail_of
from tests.factories.runs import make_person, make_run
from tests.sdk.stories import told_run

pytestmark = pytest.mark.django_db


def get(user: Any, path: str) -> Any:
    """The answer to a signed-in person."""
    client = Client()
    client.force_login(user)
    return client.get(f"/v1{path}")


def body(answer: Any) -> str:
    """The text of a streamed answer."""
    return b"".join(answer.streaming_content).decode()


def test_a_receipt_says_what_the_run_page_says() -> None:
    run = told_run()
    made = get(run.user, f"/runs/{run.pk}/receipt").json()["receipt"]
    shown = detail_of(visible_run(run.account, run.pk))
    assert made["run"] == {
        "id": str(run.pk),
        "mode": "pinned",
        "backend": "local",
        "status": "ok",
        "display_status": "ok",
        "halt_reason": None,
    }
    assert made["log"] == {"events": run.next_seq, "last_seq": run.next_seq - 1, "head_digest": run.head_digest}
    assert made["counts"] == {"selected": 8, "settled": 6, "passed": 3, "failed": 2, "errored": 1}
    assert shown.score is not None and made["score"]["accuracy"] == shown.score.accuracy == 0.6
    assert made["score"]["interval"] == [shown.score.low, shown.score.high]
    assert made["score"]["stderr"] == pytest.approx(shown.score.stderr)
    assert (made["score"]["coverage"], made["score"]["band"]) == (0.75, [0.5, 4 / 6])
    assert made["fingerprint"] == {"sha256": shown.fingerprint_sha256, "inputs": shown.fingerprint_inputs}
    assert made["comparability"]["key"] == shown.comparability_key
    assert made["cost"]["model_usd"] == "0.000738" == made["cost"]["incurred_usd"]
    assert made["sweep"]["mode"] == "sequential"
    assert [(b["role"], b["isolation"], b["lived_ms"]) for b in made["sandboxes"]] == [("work", "namespaces", 1500)]


def test_an_unknown_cost_is_null_in_a_receipt_and_never_zero() -> None:
    run = told_run(cost=None)
    cost = get(run.user, f"/runs/{run.pk}/receipt").json()["receipt"]["cost"]
    assert cost["model_usd"] is None and cost["incurred_usd"] is None
    assert (cost["unknown_calls"], cost["sandbox_usd"]) == (6, "0")


def test_a_receipt_is_signed_with_the_key_that_anybody_may_read() -> None:
    run = told_run()
    document = get(run.user, f"/runs/{run.pk}/receipt").json()
    key = Client().get("/v1/receipt-key").json()
    assert {name: document["signature"][name] for name in key} == key
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key["public_key"]))
    public.verify(base64.b64decode(document["signature"]["signature"]), canonical(document["receipt"]).encode())


def test_another_secret_is_another_key(settings: Any) -> None:
    before = Client().get("/v1/receipt-key").json()
    settings.SECRET_KEY = "another"
    assert Client().get("/v1/receipt-key").json()["public_key"] != before["public_key"]


def test_the_same_log_gives_the_same_bytes() -> None:
    run = told_run()
    first, again = (get(run.user, f"/runs/{run.pk}/receipt").content for _ in range(2))
    assert first == again


def test_a_receipt_needs_nothing_but_the_log() -> None:
    run = told_run()
    rows = list(raw(run.pk))
    assert receipt(str(run.pk), rows) == get(run.user, f"/runs/{run.pk}/receipt").json()["receipt"]


def test_a_run_that_has_not_begun_has_a_receipt_without_a_score() -> None:
    run = make_run()
    made = get(run.user, f"/runs/{run.pk}/receipt").json()["receipt"]
    assert made["run"]["display_status"] == "running"
    assert made["score"] is None and made["fingerprint"]["sha256"] is None


@pytest.mark.parametrize("path", ["receipt", "export?format=csv"])
def test_a_stranger_learns_nothing_of_a_private_runs_results(path: str) -> None:
    run, (stranger, _) = told_run(), make_person()
    answer = get(stranger, f"/runs/{run.pk}/{path}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_run")


def test_an_export_has_each_trial_with_its_usage_wherever_the_log_keeps_it() -> None:
    run = told_run()
    rows = [json.loads(line) for line in body(get(run.user, f"/runs/{run.pk}/export")).splitlines()]
    found = [(r["index"], r["outcome"], r["score"]) for r in rows]
    assert found[2:5] == [(2, "pass", 1.0), (3, "err", None), (4, "pass", 1.0)]
    assert [r["usage"]["input"] for r in rows] == [10] * 6
    assert rows[0]["response"]["text"] == "@answer 0\ud800"
    assert {r["task_outcome"] for r in rows} == {"pass", "fail", "err"}


def test_no_cell_of_an_exported_table_acts_as_a_formula() -> None:
    run = told_run()
    text = body(get(run.user, f"/runs/{run.pk}/export?format=csv"))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 6
    assert rows[0]["target"] == "'+1"
    assert not [c for row in rows for c in row.values() if c.lstrip().startswith(("=", "+", "-", "@")) or "\x1b" in c]
    assert rows[3]["score"] == "" and rows[1]["score"] == "0.0"


def test_an_inspect_log_keeps_counts_and_errors_apart() -> None:
    run = told_run()
    log = json.loads(body(get(run.user, f"/runs/{run.pk}/export?format=inspect")))
    assert (log["version"], log["status"]) == (2, "success")
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.6
    assert log["results"]["scores"][0]["unscored_samples"] == 1
    samples = log["samples"]
    assert [s["scores"]["benchwright"]["value"] for s in samples if "scores" in s] == [1.0, 0.0, 1.0, 1.0, 0.5]
    assert [s["id"] for s in samples if "error" in s] == [3]
    assert samples[0]["messages"][-1]["role"] == "assistant"
    assert "\ud800" not in json.dumps(log, ensure_ascii=False)


def test_the_printed_receipt_has_how_tasks_ran_and_the_head_of_the_log() -> None:
    run = told_run()
    client = Client()
    client.force_login(run.user)
    text = client.get(f"/runs/{run.pk}/receipt/").content.decode()
    assert "<dt>Tasks ran</dt><dd>sequential</dd>" in text
    assert run.head_digest in text


async def test_a_long_answer_goes_out_in_pieces_on_the_server_that_we_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchwright.lib.streamed.PIECE_BYTES", 10)
    request = ASGIRequest({"type": "http", "method": "GET", "path": "/", "headers": []}, io.BytesIO())
    taken: list[int] = []

    def parts() -> Iterator[str]:
        for n in range(5):
            taken.append(n)
            yield "ü" * 3

    answer = streamed(request, parts(), "text/plain", "x")
    pieces, seen = [], []
    async for piece in answer:
        pieces.append(piece)
        seen.append(len(taken))
    assert b"".join(pieces).decode() == "ü" * 15
    assert seen == [2, 4, 5], "what is not sent yet is not made yet"


def test_an_unknown_format_is_refused_with_those_that_there_are() -> None:
    run = told_run()
    error = get(run.user, f"/runs/{run.pk}/export?format=xls").json()["error"]
    assert (error["code"], error["field"]) == ("invalid_request", "format")
    assert "jsonl, csv, inspect" in error["hint"]

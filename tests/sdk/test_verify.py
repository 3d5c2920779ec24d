"""Checking receipts offline: a true one holds, a changed one is refused by the name of what was changed."""

from __future__ import annotations

import base64
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchwright_client.ed25519 import is_signed
from benchwright_client.verify import Unreadable, read_receipt, verify, words
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.lib.canonical import canonical
from benchwright.lib.signing import sign
from runs.events.chain import link
from runs.events.log import raw
from runs.queries.receipt import signed_receipt
from tests.contracts.project import ROOT
from tests.sdk.stories import told_run

pytestmark = pytest.mark.django_db
Rows = list[tuple[int, str, str]]


@pytest.fixture
def told() -> tuple[dict[str, Any], Rows]:
    """A receipt as it is downloaded, and the log."""
    run = told_run()
    return json.loads(json.dumps(signed_receipt(run.account, run.pk))), list(raw(run.pk))


def first_wrong(document: dict[str, Any], rows: Rows | None = None, **given: Any) -> str:
    """The name and words of the first check that fails; empty when all pass."""
    checks = verify(document, iter(rows) if rows is not None else None, **given)
    return next((f"{c.name}: {c.wrong}" for c in checks if not c.ok), "")


def resigned(document: dict[str, Any]) -> dict[str, Any]:
    """As if the installation itself had signed it: only what the receipt says can give it away."""
    return {"receipt": document["receipt"], "signature": sign(document["receipt"])}


def test_a_true_receipt_holds_with_and_without_its_log(told: tuple[dict[str, Any], Rows]) -> None:
    document, rows = told
    key = document["signature"]["public_key"]
    assert first_wrong(document, key=key) == ""
    assert first_wrong(document, rows, key=key) == ""


@pytest.mark.parametrize("cost", [None, "0.000000000001"])
def test_what_is_unknown_is_checked_as_unknown(cost: str | None) -> None:
    run = told_run(cost=cost)
    assert first_wrong(signed_receipt(run.account, run.pk), list(raw(run.pk))) == ""


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Puts a value at a dotted path of the receipt."""

    def apply(receipt: dict[str, Any]) -> None:
        *way, last = path.split(".")
        place: Any = receipt
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[int(last) if last.isdigit() else last] = value

    return apply


CHANGES = {
    "schema": "other/1",
    "run.status": "error",
    "run.display_status": "killed",
    "log.events": 3,
    "log.head_digest": "0" * 64,
    "identity.model": {"source": "control", "identifier": "control/empty"},
    "identity.impl_sha256": "f" * 64,
    "identity.trials": {"plan": {"k": 5}},
    "fingerprint.sha256": "0" * 64,
    "comparability.key": "0" * 64,
    "comparability.inputs.snapshot": "e" * 64,
    "sweep.mode": "fanout",
    "counts.passed": 4,
    "counts.selected": 6,
    "counts.errored": True,
    "score.accuracy": 0.61,
    "score.interval.0": 0.3,
    "score.mean": 0.99,
    "score.coverage": 1.0,
    "score.band.1": 1.0,
    "cost.model_usd": "0.0007",
    "cost.incurred_usd": "0",
    "cost.tokens_in": 1,
    "sandboxes.0.isolation": "microvm",
    "versions.scoring_version": "2",
    "times.finished_at": "2020-01-01T00:00:00.000000Z",
}


def named(path: str) -> str:
    """The word of the path that the answer has to hold."""
    return path.split(".")[0]


@pytest.mark.parametrize("path", CHANGES)
def test_a_changed_receipt_is_refused_even_if_its_signature_were_true(
    told: tuple[dict[str, Any], Rows], path: str
) -> None:
    document, rows = told
    change(path, CHANGES[path])(document["receipt"])
    found = first_wrong(resigned(document), rows)
    assert named(path) in found, found
    if path != "schema" and path != "counts.errored":
        assert first_wrong(document) == "signature: the receipt was changed after it was signed"


def test_changed_inputs_are_found_by_the_fingerprint_and_in_the_log(told: tuple[dict[str, Any], Rows]) -> None:
    document, rows = told
    document["receipt"]["fingerprint"]["inputs"][0]["sources.sha256"] = []
    assert first_wrong(resigned(document)).startswith("fingerprint:")
    assert first_wrong(resigned(document), rows).startswith("fingerprint from the log:")


def reworded(rows: Rows) -> Rows:
    """One text of seq 2 changed."""
    seq, text, digest = rows[2]
    return [*rows[:2], (seq, text.replace("b" * 64, "9" * 64), digest), *rows[3:]]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda rows: rows[:5] + rows[6:], "chain: seq 5 is missing (found 6)"),
        (lambda rows: rows[:-1], "head: log.events is"),
        (lambda rows: [], "chain: the log is empty"),
        (reworded, "chain: seq 2: the text does not match"),
    ],
)
def test_a_changed_log_is_refused_at_the_place(
    told: tuple[dict[str, Any], Rows], spoil: Callable[[Rows], Rows], says: str
) -> None:
    document, rows = told
    assert first_wrong(document, spoil(rows)).startswith(says)


def test_a_log_that_was_chained_again_after_a_change_has_another_head(told: tuple[dict[str, Any], Rows]) -> None:
    document, rows = told
    forged: Rows = []
    for seq, text, _ in rows:
        changed = text.replace('"outcome":"fail"', '"outcome":"pass"')
        forged.append((seq, changed, link(forged[-1][2] if forged else "", changed)))
    assert first_wrong(document, forged).startswith("head: log.head_digest is")


def test_a_receipt_of_another_installation_is_not_taken_for_ours(told: tuple[dict[str, Any], Rows]) -> None:
    document, _ = told
    other = base64.b64encode(b"1" * 32).decode()
    assert "another key" in first_wrong(document, key=other)
    stranger = copy.deepcopy(document)
    stranger["signature"]["public_key"] = other
    assert "key_id does not belong" in first_wrong(stranger)


def test_a_key_made_by_a_forger_is_named_with_its_id(told: tuple[dict[str, Any], Rows], settings: Any) -> None:
    document, rows = told
    ours = document["signature"]["public_key"]
    settings.SECRET_KEY = "the forger's"
    forged = resigned(document)
    assert first_wrong(forged, rows) == ""
    assert first_wrong(forged, rows, key=ours).startswith("signature: signed with another key")


@settings(max_examples=15, deadline=None)
@given(secret=st.binary(min_size=32, max_size=32), message=st.binary(max_size=200), bit=st.integers(0, 511))
def test_a_signature_holds_for_its_message_and_no_changed_bit(secret: bytes, message: bytes, bit: int) -> None:
    key = Ed25519PrivateKey.from_private_bytes(secret)
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    assert is_signed(public, signature, message)
    assert not is_signed(public, signature, message + b"x")
    spoilt = bytearray(signature)
    spoilt[bit // 8] ^= 1 << bit % 8
    assert not is_signed(public, bytes(spoilt), message)


def test_nothing_in_a_receipt_acts_on_the_terminal(told: tuple[dict[str, Any], Rows]) -> None:
    document, _ = told
    document["receipt"]["run"]["id"] = "\x1b[2J\u202e"
    document["receipt"]["schema"] = "\x1b]0;x\x07"
    text = "\n".join(words(verify(document), document, False))
    assert "\x1b" not in text and "\u202e" not in text


def test_the_check_runs_without_anything_installed(told: tuple[dict[str, Any], Rows], tmp_path: Path) -> None:
    document, rows = told
    receipt, log = tmp_path / "receipt.json", tmp_path / "events.jsonl"
    receipt.write_text(json.dumps(document))
    log.write_text("".join(json.dumps({"seq": s, "body": b, "digest": d}) + "\n" for s, b, d in rows))
    command = [sys.executable, "-S", "-m", "benchwright_client.verify", str(receipt), str(log)]

    def run() -> subprocess.CompletedProcess[str]:
        env = {"PYTHONPATH": str(ROOT / "sdk"), "PYTHONIOENCODING": "utf-8"}
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False)

    whole = run()
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert "holds." in whole.stdout
    log.write_text(log.read_text().replace("sums.jsonl", "suns.jsonl"))
    broken = run()
    assert broken.returncode == 1
    assert "Not to be trusted: chain: seq 2: the text does not match its digest" in broken.stdout
    receipt.write_text("{}")
    assert run().returncode == 2


def test_a_file_that_is_no_receipt_is_told_apart_from_a_false_one(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"receipt": 3}')
    with pytest.raises(Unreadable, match="this is not a receipt"):
        read_receipt(path)


def test_the_client_writes_canonical_json_as_the_server_does() -> None:
    from benchwright_client.recompute import canonical as theirs

    value = {"b": [1, 2.5, None, "ü\ud800"], "a": {"x": True}}
    assert theirs(value) == canonical(value)

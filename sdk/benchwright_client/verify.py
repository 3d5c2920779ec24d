"""Checks a receipt offline, with or without the run's exported log. Standard library only.

    python -m benchwright_client.verify receipt.json [events.jsonl] [--key KEY]

Exit 0: all checks passed. Exit 1: something does not match; the first such thing is named. Exit 2: a file can't be
read.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from benchwright_client.ed25519 import is_signed
from benchwright_client.recompute import (
    PAYS,
    canonical,
    comparability_of,
    fingerprint_of,
    incurred,
    recompute,
    score_of,
)

SCHEMA = "benchwright.receipt/1"
PARTS = ("run", "log", "identity", "fingerprint", "comparability", "sweep", "counts", "score", "cost", "sandboxes",
         "versions", "times")  # fmt: skip
COUNTS = ("selected", "settled", "passed", "failed", "errored")


class Unreadable(Exception):
    """A file is not what it has to be; nothing could be checked."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `wrong` is empty when it is right."""

    name: str
    wrong: str = ""
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is right."""
        return not self.wrong


def read_receipt(path: str | Path) -> dict[str, Any]:
    """The JSON of a receipt file. Raises Unreadable."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise Unreadable(f"{path}: {e}") from None
    if not isinstance(document, dict) or not isinstance(document.get("receipt"), dict):
        raise Unreadable(f"{path}: this is not a receipt (GET /v1/runs/RUN/receipt)")
    return document


def read_events(path: str | Path) -> Iterator[tuple[int, str, str]]:
    """(seq, body, digest) of an exported log, line by line. Raises Unreadable."""
    try:
        with Path(path).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                    yield int(row["seq"]), str(row["body"]), str(row["digest"])
                except (ValueError, KeyError, TypeError, RecursionError):
                    raise Unreadable(f"{path}, line {number}: not {{seq, body, digest}}") from None
    except (OSError, UnicodeDecodeError) as e:
        raise Unreadable(f"{path}: {e}") from None


def verify(
    document: dict[str, Any], rows: Iterator[tuple[int, str, str]] | None = None, *, key: str | None = None
) -> list[Check]:
    """Every check, in order. `key`: the installation's public key (base64) from a source that you trust."""
    receipt = document["receipt"]
    checks = [_schema(receipt)]
    if not checks[0].ok:
        return checks
    checks.append(_signature(document, key))
    if rows is not None:  # first, for the log names the number that was changed and not one that follows from it
        checks += _against_log(receipt, rows)
    checks.append(_hash(receipt, "fingerprint", "sha256", fingerprint_of))
    checks.append(_hash(receipt, "comparability", "key", comparability_of))
    return checks + _arithmetic(receipt)


def _schema(receipt: dict[str, Any]) -> Check:
    if receipt.get("schema") != SCHEMA:
        return Check("form", f"schema is {receipt.get('schema')!r}; this program knows {SCHEMA!r}")
    missing = [name for name in PARTS if name not in receipt]
    if missing:
        return Check("form", f"{', '.join(missing)} missing")
    shapes = [name for name in PARTS if name not in ("score", "sandboxes") and not isinstance(receipt[name], dict)]
    counts = receipt["counts"]
    if shapes:
        return Check("form", f"{shapes[0]} is not an object")
    bad = [name for name in COUNTS if type(counts.get(name)) is not int or counts[name] < 0]
    return Check("form", f"counts.{bad[0]} is not a count" if bad else "")


def _signature(document: dict[str, Any], key: str | None) -> Check:
    given = document.get("signature")
    if not isinstance(given, dict) or given.get("algorithm") != "Ed25519":
        return Check("signature", "there is no Ed25519 signature")
    try:
        public = base64.b64decode(str(given.get("public_key")), validate=True)
        signature = base64.b64decode(str(given.get("signature")), validate=True)
    except (binascii.Error, ValueError):
        return Check("signature", "the key or the signature is not base64")
    if given.get("key_id") != hashlib.sha256(public).hexdigest()[:16]:
        return Check("signature", "key_id does not belong to the public key")
    if key is not None and key.strip() != given["public_key"]:
        return Check("signature", f"signed with another key ({given['key_id']}) than the one you trust")
    if not is_signed(public, signature, canonical(document["receipt"]).encode()):
        return Check("signature", "the receipt was changed after it was signed")
    trust = "the key you trust" if key is not None else "compare it with GET /v1/receipt-key"
    return Check("signature", note=f"by key {given['key_id']} ({trust})")


def _hash(receipt: dict[str, Any], part: str, name: str, made: Any) -> Check:
    try:
        expected = made(receipt[part].get("inputs"))
    except (TypeError, ValueError):
        return Check(part, "its inputs are not what they have to be")
    stored = receipt[part].get(name)
    return Check(
        part, "" if expected == stored else f"{_short(stored)} is not the hash of its inputs, {_short(expected)}"
    )


def _arithmetic(receipt: dict[str, Any]) -> list[Check]:
    """What follows from the receipt's own numbers."""
    counts, score = receipt["counts"], receipt["score"]
    wrong = ""
    if counts["settled"] != counts["passed"] + counts["failed"] + counts["errored"]:
        wrong = "settled is not passed + failed + errored"
    elif counts["settled"] > counts["selected"]:
        wrong = "more tasks are settled than were selected"
    checks = [Check("counts", wrong)]
    expected = score_of(counts)
    if expected is None or not isinstance(score, dict):
        checks.append(Check("score", "" if expected is score else "there is a score exactly when a task is settled"))
    else:
        checks.append(Check("score", next(_differences("score", expected, score), "")))
    try:
        parts = {name: _money(receipt["cost"][f"{name}_usd"]) for name in PAYS}
        adds_up = _money(receipt["cost"]["incurred_usd"]) == incurred(parts)
    except (KeyError, InvalidOperation, TypeError, ValueError):
        return [*checks, Check("cost", "an amount is missing or is no number")]
    return [*checks, Check("cost", "" if adds_up else "incurred_usd is not the sum of its parts")]


def _against_log(receipt: dict[str, Any], rows: Iterator[tuple[int, str, str]]) -> list[Check]:
    """The chain, then every part of the receipt made again from it."""
    events: list[dict[str, Any]] = []
    previous = ""
    for place, (seq, body, digest) in enumerate(rows):
        if seq != place:
            return [Check("chain", f"seq {place} is missing (found {seq})")]
        if hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest() != digest:
            return [Check("chain", f"seq {seq}: the text does not match its digest")]
        try:
            event = json.loads(body)
            if event["seq"] != seq:
                return [Check("chain", f"seq {seq}: the text carries another seq")]
            events.append(_needed(event))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return [Check("chain", f"seq {seq}: the text is not an event")]
        previous = digest
    checks = [Check("chain", "" if events else "the log is empty", f"{len(events)} events, whole")]
    log = {"events": len(events), "last_seq": len(events) - 1, "head_digest": previous}
    checks.append(Check("head", next(_differences("log", log, receipt["log"]), "")))
    if not all(check.ok for check in checks):
        return checks
    try:
        made = recompute(events)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as e:
        return [*checks, Check("log", f"an event lacks what it has to say: {e!r}")]
    for part, expected in made.items():
        checks.append(Check(f"{part} from the log", next(_differences(part, expected, receipt[part]), "")))
    return checks


def _needed(event: dict[str, Any]) -> dict[str, Any]:
    """The event without prompts and responses: a log may be larger than memory."""
    for name in ("prompt", "response", "target", "source", "score_meta"):
        if event["type"].startswith("Materialize") or event["type"] == "AtomizeArtifact":
            event["data"].pop(name, None)
    return event


def _differences(where: str, expected: Any, stored: Any) -> Iterator[str]:
    """Where the receipt says something else. Keys that only the receipt has are its notes (policy, method, id)."""
    if isinstance(expected, dict) and isinstance(stored, dict):
        for name, value in expected.items():
            if name not in stored:
                yield f"{where}.{name} is missing"
            else:
                yield from _differences(f"{where}.{name}", value, stored[name])
    elif isinstance(expected, list) and isinstance(stored, list):
        if len(expected) != len(stored):
            yield f"{where} has {len(stored)} entries, should have {len(expected)}"
        for place, (one, other) in enumerate(zip(expected, stored, strict=False)):
            yield from _differences(f"{where}[{place}]", one, other)
    elif not _equal(expected, stored):
        yield f"{where} is {_short(stored)}, should be {_short(expected)}"


def _equal(expected: Any, stored: Any) -> bool:
    if isinstance(expected, Decimal):
        try:
            return stored is not None and _money(stored) == expected
        except (InvalidOperation, TypeError, ValueError):
            return False
    if isinstance(expected, bool) or isinstance(stored, bool):
        return expected is stored
    if isinstance(expected, int | float) and isinstance(stored, int | float):
        return math.isclose(expected, stored, rel_tol=1e-9, abs_tol=1e-9)
    return type(expected) is type(stored) and bool(expected == stored)


def _money(value: Any) -> Decimal | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError("an amount is text")
    return Decimal(value)


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else json.dumps(value)
    return text if len(text) <= 80 else text[:80] + "…"


def words(checks: list[Check], document: dict[str, Any], with_log: bool) -> list[str]:
    """The checks for people: one line each, then the verdict."""
    lines = []
    for check in checks:
        said = check.wrong or check.note
        lines.append(("ok    " if check.ok else "WRONG ") + check.name + (f": {said}" if said else ""))
    run = document["receipt"].get("run")
    name = run.get("id") if isinstance(run, dict) else None
    first = next((c for c in checks if not c.ok), None)
    if first is not None:
        lines.append(f"Not to be trusted: {first.name}: {first.wrong}")
    else:
        rest = "" if with_log else " Give events.jsonl as well to check it against the log."
        lines.append(f"The receipt of run {name} holds.{rest}")
    # A receipt may come from anybody: nothing in it may act on the terminal.
    return ["".join(c if c.isprintable() else "\ufffd" for c in line) for line in lines]


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchwright_client.verify", description="Check a receipt offline.")
    parser.add_argument("receipt", help="receipt.json, from GET /v1/runs/RUN/receipt")
    parser.add_argument("events", nargs="?", help="events.jsonl, from GET /v1/runs/RUN/artifacts/events.jsonl")
    parser.add_argument("--key", help="the public key (base64) that you trust, from GET /v1/receipt-key")
    given = parser.parse_args(argv)
    try:
        document = read_receipt(given.receipt)
        checks = verify(document, read_events(given.events) if given.events else None, key=given.key)
    except Unreadable as e:
        print(e, file=sys.stderr)
        return 2
    print("\n".join(words(checks, document, bool(given.events))))
    return 0 if all(check.ok for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The fake key of one attempt: says whose call it is, opens nothing but this run's gateway. Standard library only.

`bw-<run8>-<invocation>-<index>-<trial>-<attempt>-<mac16>`, checked without any table: the tail is an HMAC under a
secret that only the worker and the gateway know. A negative index is a probe (-1) or a proof run of row r (-2 - r).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

# ASCII digits only: `\d` takes other scripts, and int() would read them.
_KEY = re.compile(r"(bw-[0-9a-z]{1,8}-([0-9]{1,9})-(-?[0-9]{1,9})-([0-9]{1,9})-([0-9]{1,9}))-([0-9a-f]{16})")

PROBE_INDEX = -1


@dataclass(frozen=True, slots=True)
class KeyScope:
    """Which attempt a call belongs to."""

    invocation: int
    index: int
    trial: int
    attempt: int


def proof_index(row: int) -> int:
    """The key index of a proof run on sample row `row`."""
    return -2 - row


def proof_row(index: int) -> int | None:
    """The sample row of a proof run's key, None for every other key."""
    return -2 - index if index <= -2 else None


def make_key(secret: bytes, run: str, invocation: int, index: int, trial: int, attempt: int) -> str:
    """The fake key of one attempt. `run` is shortened to its last 8 letters and digits, for people who read logs."""
    run8 = re.sub(r"[^0-9a-z]", "", str(run).lower())[-8:] or "0"
    body = f"bw-{run8}-{invocation:d}-{index:d}-{trial:d}-{attempt:d}"
    return f"{body}-{_mac(secret, body)}"


def read_key(secret: bytes, key: str) -> KeyScope | None:
    """The scope of a key made with this secret, else None."""
    match = _KEY.fullmatch(key)
    if match is None or not hmac.compare_digest(_mac(secret, match[1]), match[6]):
        return None
    return KeyScope(int(match[2]), int(match[3]), int(match[4]), int(match[5]))


def _mac(secret: bytes, body: str) -> str:
    return hmac.digest(secret, body.encode("ascii"), hashlib.sha256).hex()[:16]

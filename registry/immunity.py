"""What an official scorer must have withstood, read from its stored proof. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The reference passes; nothing, a refusal, an order to the scorer, all options at once and another row's reference do
# not; the same input scores the same twice. Advisory in a run, where a person may know better, decisive here.
ASKED = {
    "oracle": "the reference itself must pass",
    "empty": "an empty answer must fail",
    "refusal": "a refusal must fail",
    "injection": "an answer that gives orders to the scorer must fail",
    "every_option": "all options at once must fail",
    "wrong": "another row's reference must fail",
    "deterministic": "the same answer must score the same twice",
}
# Rows without options can't be asked for all of them.
MAY_BE_ABSENT = frozenset({"every_option"})


def checks_of(proof: Mapping[str, Any] | Any) -> dict[str, bool]:
    """Each check that the proof has, with whether it held."""
    listed = proof.get("checks") if isinstance(proof, Mapping) else None
    found = listed if isinstance(listed, list) else []
    return {str(c["name"]): c.get("ok") is True for c in found if isinstance(c, Mapping) and c.get("name")}


def failings(proof: Mapping[str, Any] | Any) -> dict[str, str]:
    """Why a scorer with this proof is not immune: each check that failed, or that nobody made, in words."""
    checks = checks_of(proof)
    out = {}
    for name, means in ASKED.items():
        if name not in checks and name not in MAY_BE_ABSENT:
            out[name] = f"never tried: {means}"
        elif checks.get(name) is False:
            out[name] = f"failed: {means}"
    return out | {name: "failed" for name, ok in checks.items() if not ok and name not in ASKED}

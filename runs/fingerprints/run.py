"""The run's fingerprint: is this the same experiment, subject included? Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from benchwright.lib.canonical import canonical
from runs.fingerprints.rules import LOAD_BEARING

SEPARATOR = "\x1e"


def inputs(artifacts: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The artifacts in emission order, reduced to what counts. A later artifact of the same type replaces an earlier
    one in its place: a restarted phase counts once."""
    out: dict[str, dict[str, Any]] = {}
    for kind, data in artifacts:
        if kind in LOAD_BEARING:
            out[kind] = {"type": kind, **{path: _pick(data, path) for path in LOAD_BEARING[kind]}}
    return list(out.values())


def fingerprint(reduced: list[dict[str, Any]]) -> str:
    """64 hex digits; show the first 12."""
    return hashlib.sha256(SEPARATOR.join(canonical(item) for item in reduced).encode()).hexdigest()


def _pick(data: dict[str, Any], path: str) -> Any:
    head, _, rest = path.partition(".")
    value = data.get(head)
    if not rest:
        return value
    return [_pick(item, rest) for item in value or []]

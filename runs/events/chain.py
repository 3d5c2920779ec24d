"""The digest chain, standard library only: the same code verifies a log in the server and from an exported file.

A row's text is canonical JSON of {at, data, seq, type}; its digest is SHA-256 over the previous digest (64 hex digits;
empty before seq 0), a line feed, and that text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator


def canonical_body(seq: int, kind: str, at: str, data_text: str) -> str:
    """The row's text. `data_text` is already canonical JSON, so the four keys are only put round it in order."""
    return f'{{"at":{json.dumps(at)},"data":{data_text},"seq":{seq},"type":{json.dumps(kind)}}}'


def link(previous: str, body: str) -> str:
    """The digest of a row, 64 hex digits."""
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def broken_links(rows: Iterable[tuple[int, str, str]]) -> Iterator[str]:
    """What is wrong with a log given as (seq, body, digest) in order; nothing when it is whole."""
    previous, expected = "", 0
    for seq, body, stored in rows:
        if seq != expected:
            yield f"seq {expected} is missing (found {seq})"
            expected = seq
        digest = link(previous, body)
        if digest != stored:
            yield f"seq {seq}: the text does not match its digest"
        if json.loads(body).get("seq") != seq:
            yield f"seq {seq}: the text carries another seq"
        previous, expected = stored, seq + 1

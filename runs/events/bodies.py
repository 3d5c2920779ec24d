"""Bodies that are too big for the log: the event keeps the name, the size and how it begins."""

from __future__ import annotations

from typing import Any

from benchwright.lib.canonical import canonical
from registry.models.blob import get_blob, put_blob

INLINE_BYTES = 8 << 10
PREVIEW_CHARS = 500


def fold_body(value: Any) -> Any:
    """The value itself, or {"blob": {sha256, size, preview}} when its canonical text is over 8 kB."""
    if value is None or (isinstance(value, str) and len(value) < INLINE_BYTES // 6):
        return value
    encoded = canonical(value)
    if len(encoded) <= INLINE_BYTES:
        return value
    shown = value if isinstance(value, str) else encoded
    return {"blob": {"sha256": put_blob(encoded.encode()), "size": len(encoded), "preview": shown[:PREVIEW_CHARS]}}


def unfold_body(value: Any) -> Any:
    """The whole value again; an expired one stays {"blob": …}."""
    import json

    if isinstance(value, dict) and set(value) == {"blob"} and isinstance(value["blob"], dict):
        data = get_blob(str(value["blob"].get("sha256", "")))
        return value if data is None else json.loads(data)
    return value

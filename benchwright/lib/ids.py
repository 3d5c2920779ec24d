"""Ids: time-ordered UUIDs and short public names."""

from __future__ import annotations

import os
import re
import secrets
import time
import unicodedata
import uuid


def uuid7() -> uuid.UUID:
    """A version 7 UUID (RFC 9562): milliseconds first, so that new rows land at the end of the index."""
    ms = time.time_ns() // 1_000_000
    raw = bytearray(ms.to_bytes(6, "big") + os.urandom(10))
    raw[6] = 0x70 | raw[6] & 0x0F
    raw[8] = 0x80 | raw[8] & 0x3F
    return uuid.UUID(bytes=bytes(raw))


def slug(text: str, *, limit: int = 48) -> str:
    """Lower-case ASCII words joined by `-`; `untitled` when nothing is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:limit].strip("-") or "untitled"


def token(prefix: str, size: int = 12) -> str:
    """A random public id such as `file_1f…`."""
    return f"{prefix}_{secrets.token_hex(size)}"

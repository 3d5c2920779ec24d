"""Frames between sandboxd and its clients, on a Unix stream socket.

A request or an answer: two big-endian lengths, a JSON head, raw bytes. After `start` and `reattach` the same connection
carries the command: a kind byte, a length, raw bytes. Standard library only, no asyncio: the client imports it.
"""

from __future__ import annotations

import json
import struct
from typing import Any

HEAD = struct.Struct("!II")
CHUNK = struct.Struct("!cI")

MAX_HEAD = 4 << 20
MAX_BODY = 256 << 20
MAX_CHUNK = 1 << 20

# Kinds of chunk, from the daemon…
STDOUT = b"o"
END = b"e"  # JSON: code, reason; then a newline and the tail of stderr. The last chunk.
# …and from the client.
STDIN = b"i"
CLOSE_STDIN = b"c"
KILL = b"k"


def pack(head: dict[str, Any], body: bytes = b"") -> bytes:
    """One request or answer."""
    text = json.dumps(head).encode()
    return HEAD.pack(len(text), len(body)) + text + body


def pack_chunk(kind: bytes, data: bytes = b"") -> bytes:
    """One chunk of a command's stream."""
    return CHUNK.pack(kind, len(data)) + data

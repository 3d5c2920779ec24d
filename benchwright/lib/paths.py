"""Where this installation keeps what changes. Standard library only: `./bw` imports it before anything is installed."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def state_dir() -> Path:
    """`BENCHWRIGHT_STATE`, else `.benchwright` beside `manage.py`. Not created here."""
    return Path(os.environ.get("BENCHWRIGHT_STATE") or ROOT / ".benchwright").expanduser().resolve()


def state_key() -> str:
    """Ten hex digits that tell two installations on one machine apart."""
    return hashlib.sha256(str(state_dir()).encode()).hexdigest()[:10]


def runtime_dir() -> Path:
    """A short directory for sockets: a Unix socket's path must stay under 107 bytes, so it can't lie in the
    checkout.
    """
    return Path(tempfile.gettempdir()) / f"bw-{os.geteuid()}-{state_key()}"


def sandboxd_socket() -> Path:
    """`BENCHWRIGHT_SANDBOXD`, else the socket in `runtime_dir()/sandboxd`."""
    given = os.environ.get("BENCHWRIGHT_SANDBOXD")
    return Path(given) if given else runtime_dir() / "sandboxd" / "rpc.sock"

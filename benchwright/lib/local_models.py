"""Models that this machine serves itself, told by whoever serves them. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from benchwright.lib.paths import state_dir


def _file() -> Path:
    return state_dir() / "run" / "local_models.json"


def local_models() -> list[dict[str, str]]:
    """[{id, label, base_url}], empty when nothing is served. A server that died without a word is left out."""
    try:
        listed = json.loads(_file().read_text())
    except (OSError, ValueError):
        return []
    return [{k: str(m[k]) for k in ("id", "label", "base_url")} for m in listed if _alive(m.get("pid"))]


@contextlib.contextmanager
def served(model: str, label: str, base_url: str) -> Iterator[None]:
    """Lists the model while this process serves it."""
    entry = {"id": model, "label": label, "base_url": base_url, "pid": os.getpid()}
    path = _file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([entry]))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _alive(pid: object) -> bool:
    try:
        os.kill(int(str(pid)), 0)
    except (ValueError, OSError):
        return False
    return True

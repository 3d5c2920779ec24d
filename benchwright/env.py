"""Readers of the environment that fail loudly: a typo in a setting must not become a default."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from benchwright.lib.paths import state_dir

_YES = {"1", "true", "yes", "on"}
_NO = {"0", "false", "no", "off", ""}


def flag(name: str, default: bool = False) -> bool:
    """A yes/no variable. Raises ValueError on anything else."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    low = raw.strip().lower()
    if low in _YES:
        return True
    if low in _NO:
        return False
    raise ValueError(f"{name}={raw!r}: say 1 or 0")


def integer(name: str, default: int, *, least: int = 0) -> int:
    """A whole number of at least `least`."""
    raw = os.environ.get(name)
    if raw is None or not raw.strip():
        return default
    try:
        value = int(raw)
    except ValueError:
        raise ValueError(f"{name}={raw!r}: not a whole number") from None
    if value < least:
        raise ValueError(f"{name}={value}: must be at least {least}")
    return value


def words(name: str) -> list[str]:
    """A comma-separated list."""
    return [w.strip() for w in os.environ.get(name, "").split(",") if w.strip()]


def secret_key() -> str:
    """`BENCHWRIGHT_SECRET_KEY`, else one made once and kept in the state directory (mode 0600)."""
    given = os.environ.get("BENCHWRIGHT_SECRET_KEY")
    if given:
        return given
    path: Path = state_dir() / "secret_key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass  # another process of this installation made it in the meantime
        else:
            with os.fdopen(fd, "w") as f:
                f.write(secrets.token_urlsafe(48))
    return path.read_text().strip()

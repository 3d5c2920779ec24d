"""The time of day, in one place, so that a test can stop it."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def stamp(at: datetime) -> str:
    """ISO 8601 with microseconds and `Z`."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

"""One server-sent event: id, event, data."""

from __future__ import annotations

HEARTBEAT = b": still here\n\n"


def frame(data: str, *, event: str | None = None, id: int | str | None = None) -> bytes:
    """The bytes of one frame. Line breaks in `data` become several data lines, as the format asks."""
    out = []
    if id is not None:
        out.append(f"id: {id}")
    if event:
        out.append(f"event: {event}")
    out.extend(f"data: {line}" for line in (data.splitlines() or [""]))
    return ("\n".join(out) + "\n\n").encode()

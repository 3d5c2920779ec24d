"""A long answer in pieces: made while it is sent, and never whole in memory, whichever server there is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

PIECE_BYTES = 64 << 10


def streamed(request: HttpRequest, parts: Iterator[str], content_type: str, name: str) -> StreamingHttpResponse:
    """A file to download, as UTF-8. `parts` may ask the database: it is always run in a thread that may."""
    pieces = _pieces(parts)
    content = _awaited(pieces) if isinstance(request, ASGIRequest) else pieces
    answer = StreamingHttpResponse(content, content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _pieces(parts: Iterator[str]) -> Iterator[bytes]:
    held, size = [], 0
    for part in parts:
        held.append(part.encode())
        size += len(held[-1])
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


async def _awaited(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Django would make a list of a plain iterator before the first byte goes out."""
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece

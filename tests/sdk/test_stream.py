"""Following a log over a connection that breaks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from benchwright_client import Client, NotFound, Unreachable
from benchwright_client.sse import Frames

from benchwright.lib.sse import HEARTBEAT, frame
from tests.sdk.conftest import URL


def event(seq: int) -> bytes:
    """One event in the server's frame."""
    given = {"seq": seq, "type": "X", "at": "2026-01-01T00:00:00.000000Z", "data": {"n": seq}, "digest": "d"}
    return frame(json.dumps(given), event="X", id=seq)


class Broken(httpx.SyncByteStream):
    """Some bytes, then the cable is pulled."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[bytes]:
        yield from self.parts
        raise httpx.ReadError("pulled")


def followed(*answers: httpx.Response) -> tuple[Client, list[str]]:
    """A client that gets these answers in turn, and where each request went on from."""
    left, asked = list(answers), []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["Last-Event-ID"])
        return left.pop(0)

    return Client(URL, "x", transport=httpx.MockTransport(handler)), asked


def test_a_stream_that_breaks_goes_on_from_the_last_seq_and_repeats_nothing() -> None:
    client, asked = followed(
        httpx.Response(200, stream=Broken(HEARTBEAT, event(0), event(1), event(2)[:20])),
        httpx.Response(503),
        httpx.Response(200, content=event(1) + event(2)),
        httpx.Response(200, content=event(3) + frame("", event="end")),
    )
    assert [e.seq for e in client.runs.events("r")] == [0, 1, 2, 3]
    assert asked == ["-1", "1", "1", "2"]


def test_a_stream_that_never_comes_back_is_given_up() -> None:
    client, asked = followed(*[httpx.Response(503) for _ in range(9)])
    with pytest.raises(Unreachable):
        list(client.runs.events("r", failures=3))
    assert len(asked) == 4


def test_a_run_that_is_not_there_is_not_asked_for_again() -> None:
    error = {"error": {"code": "unknown_run", "message": "There is no such run."}}
    client, asked = followed(httpx.Response(404, json=error))
    with pytest.raises(NotFound):
        list(client.runs.events("r"))
    assert len(asked) == 1


def test_frames_are_read_as_the_server_writes_them() -> None:
    text = HEARTBEAT + frame("two\nlines", event="X", id=7) + frame("", event="end")
    frames = Frames()
    found = [f for line in text.decode().split("\n") if (f := frames.line(line))]
    assert [(f.id, f.event, f.data) for f in found] == [("7", "X", "two\nlines"), ("", "end", "")]

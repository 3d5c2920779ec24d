"""`call_sut` against an endpoint that is slow to start, drops connections and answers in pieces."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runs.guest.sut import Endpoint, Loop, Reply, SutError, SutResult, SutTimeout, Threads, encode, read_answer

OK = json.dumps(
    {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
).encode()


def response(body: bytes = OK, head: bytes = b"", status: bytes = b"200 OK") -> bytes:
    """A whole HTTP response."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), head, body)


@contextlib.contextmanager
def raw_server(serve: Callable[[socket.socket, int], None]) -> Iterator[str]:
    """`serve(connection, number)` talks to each connection by hand."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        number = 0
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection, number), daemon=True).start()
            number += 1

    def talk(connection: socket.socket, number: int) -> None:
        with connection, contextlib.suppress(OSError):
            serve(connection, number)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        listener.close()


def read_request(connection: socket.socket) -> bytes:
    """One request; b"" at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def ask(transport: Threads, seconds: float = 5.0) -> SutResult:
    """One call with the key k."""
    body, _ = encode("hi", None, None, None, None)
    return read_answer(transport.post(transport.endpoint.head("k"), body, time.monotonic() + seconds))


def test_a_connection_is_used_again_and_carries_the_key() -> None:
    seen: list[tuple[int, bytes]] = []

    def serve(connection: socket.socket, number: int) -> None:
        while request := read_request(connection):
            seen.append((number, request))
            connection.sendall(response())

    with raw_server(serve) as url:
        transport = Threads(Endpoint(url))
        assert [ask(transport).text for _ in range(3)] == ["hello"] * 3
    assert [number for number, _ in seen] == [0, 0, 0]
    assert seen[0][1].startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert b"Authorization: Bearer k\r\n" in seen[0][1]


def test_a_connection_dropped_while_idle_is_opened_again_once() -> None:
    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(response())

    with raw_server(serve) as url:
        transport = Threads(Endpoint(url))
        for _ in range(3):
            assert ask(transport).text == "hello"
            time.sleep(0.02)


def test_a_call_that_was_begun_is_not_sent_twice() -> None:
    seen: list[int] = []

    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        seen.append(number)
        connection.sendall(response()[:40])

    with raw_server(serve) as url, pytest.raises(SutError) as caught:
        ask(Threads(Endpoint(url)))
    assert seen == [0]
    assert caught.value.type == "upstream_unreachable"
    assert caught.value.retryable


def test_an_answer_in_single_bytes_and_chunks_is_put_together() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked += b"".join(b"%x;x=1\r\n%s\r\n" % (len(part), part) for part in (OK[:7], OK[7:])) + b"0\r\n\r\n"
    for data in (response(), chunked, b"HTTP/1.1 100 Continue\r\n\r\n" + response()):
        reply = Reply()
        done = [reply.feed(data[i : i + 1]) for i in range(len(data))]
        assert done[-1] is True
        assert not any(done[:-1])
        assert read_answer(reply).text == "hello"


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    reply = Reply()
    assert not reply.feed(b"HTTP/1.1 200 OK\r\n\r\n" + OK)
    assert reply.feed(b"")
    assert reply.close
    assert read_answer(reply).text == "hello"


@pytest.mark.parametrize(
    "data", [b"hello\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]
)
def test_what_is_not_http_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        Reply().feed(data)


def test_a_silent_model_ends_the_attempt_in_time() -> None:
    with raw_server(lambda connection, number: time.sleep(3)) as url:
        started = time.monotonic()
        with pytest.raises(SutTimeout):
            ask(Threads(Endpoint(url)), seconds=0.3)
    assert time.monotonic() - started < 1


def test_a_trickle_of_bytes_does_not_stretch_the_attempt() -> None:
    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        for byte in response():
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    with raw_server(serve) as url:
        started = time.monotonic()
        with pytest.raises(SutTimeout):
            ask(Threads(Endpoint(url)), seconds=0.4)
    assert time.monotonic() - started < 1


def test_a_proxy_that_is_just_starting_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    def start_late() -> None:
        time.sleep(0.3)
        with socket.create_server(("127.0.0.1", port)) as listener:
            connection, _ = listener.accept()
            with connection:
                read_request(connection)
                connection.sendall(response())

    threading.Thread(target=start_late, daemon=True).start()
    assert ask(Threads(Endpoint(f"http://127.0.0.1:{port}/v1"))).text == "hello"


def test_coroutines_share_a_pool_and_survive_a_dropped_connection() -> None:
    numbers: set[int] = set()

    def serve(connection: socket.socket, number: int) -> None:
        numbers.add(number)
        for _ in range(3):
            if read_request(connection):
                time.sleep(0.02)
                connection.sendall(response())

    async def main(url: str) -> list[str]:
        transport = Loop(Endpoint(url), asyncio.get_running_loop())
        body, _ = encode([{"role": "user", "content": "hi"}], None, None, None, None)

        async def one() -> str:
            return read_answer(await transport.post(transport.endpoint.head("k"), body, time.monotonic() + 5)).text

        found = []
        for _ in range(5):
            found += await asyncio.gather(one(), one(), one())
            await asyncio.sleep(0.02)
        return found

    with raw_server(serve) as url:
        assert asyncio.run(main(url)) == ["hello"] * 15
    assert len(numbers) <= 8


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (b"429 Slow", {"error": {"type": "rate_limited", "message": "slow down"}}, "rate_limited", True),
        (b"400 Bad", {"error": {"type": "parameter_refused", "message": "top_k"}}, "parameter_refused", False),
        (b"404 No", {"error": {"type": "model_not_found", "message": "no"}}, "model_not_found", False),
        (b"402 Pay", {"error": {"type": "ceiling", "message": "limit"}}, "ceiling", False),
        (b"502 Bad", {"error": "plain words"}, "upstream_error", True),
        (b"200 OK", {"error": {"message": "hidden in a 200"}}, "upstream_error", True),
        (b"200 OK", {"choices": []}, "upstream_error", True),
        (b"200 OK", ["list"], "upstream_error", True),
        (b"422 What", {"detail": "?"}, "upstream_error", False),
    ],
)
def test_errors_keep_the_proxys_word_and_say_whether_to_try_again(
    status: bytes, body: Any, kind: str, retryable: bool
) -> None:
    reply = Reply()
    assert reply.feed(response(json.dumps(body).encode(), status=status))
    with pytest.raises(SutError) as caught:
        read_answer(reply)
    assert (caught.value.type, caught.value.retryable) == (kind, retryable)


def test_an_answer_is_read_with_its_reasoning_tool_calls_and_parts() -> None:
    message = {
        "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}],
        "reasoning_content": "because",
        "tool_calls": [
            {"id": "1", "function": {"name": "f", "arguments": '{"x": 1}'}},
            {"id": "2", "function": {"name": "g", "arguments": "not json"}},
            {"id": "3", "function": {"name": "h", "arguments": ""}},
            "rubbish",
        ],
    }
    result = SutResult({"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": None})
    assert (result.text, result.reasoning, result.usage) == ("ab", "because", {})
    assert [c["arguments"] for c in result.tool_calls] == [{"x": 1}, "not json", {}, None]
    assert SutResult({"choices": [{"message": {"content": None}}]}).text == ""


def test_a_prompt_is_text_or_messages() -> None:
    assert encode("a\ud800", None, None, None, True)[0] == (
        b'{"messages":[{"role":"user","content":"a\\ud800"}],"logprobs":true}'
    )
    for wrong in (None, 3, {"role": "user"}, ["text"]):
        with pytest.raises(TypeError):
            encode(wrong, None, None, None, None)  # type: ignore[arg-type]


def test_an_endpoint_must_be_an_http_url() -> None:
    assert Endpoint("http://[::1]:4000/v1/").address == ("::1", 4000)
    assert Endpoint("https://model.test/v1").address == ("model.test", 443)
    with pytest.raises(ValueError, match="not an http"):
        Endpoint("unix:/x")

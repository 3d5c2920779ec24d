"""A provider that costs next to nothing: what is left of a run's time is Benchwright's own.

`python -m benchmarks.mock_provider --port 0 --latency-ms 100` prints its base URL. Speaks just enough of OpenAI's chat
completions over HTTP/1.1 with keep-alive, on a bare asyncio Protocol. `GET /stats` says how many calls it answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
from collections import deque
from typing import cast

import uvloop

_SUM = re.compile(rb"What is (-?[0-9]+) \+ (-?[0-9]+)\?")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)
DEFAULT_ANSWER = 18


def _response(payload: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(payload) + payload


def completion(answer: int) -> bytes:
    """A whole HTTP response whose text ends like a GSM8K solution."""
    text = f"Adding the two numbers gives {answer}.\n#### {answer}"
    return _response(
        json.dumps(
            {
                "id": "chatcmpl-mock",
                "object": "chat.completion",
                "created": 0,
                "model": "mock-1",
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"},
                ],
                "usage": {"prompt_tokens": 60, "completion_tokens": 20, "total_tokens": 80},
            }
        ).encode()
    )


class MockProvider:
    """What all connections share: the latency, the count, and one queue of answers that are due."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.calls = 0
        self.ready = completion(DEFAULT_ANSWER)
        self._due: deque[tuple[float, Connection, bytes]] = deque()
        self._loop = asyncio.get_running_loop()

    def answer(self, connection: Connection, body: bytes) -> None:
        """Sends the answer after the latency. One timer serves all: equal delays come due in order."""
        self.calls += 1
        match = _SUM.search(body)
        data = completion(int(match[1]) + int(match[2])) if match else self.ready
        if not self.latency_s:
            connection.write(data)
            return
        self._due.append((self._loop.time() + self.latency_s, connection, data))
        if len(self._due) == 1:
            self._loop.call_at(self._due[0][0], self._send)

    def _send(self) -> None:
        now = self._loop.time()
        while self._due and self._due[0][0] <= now:
            _, connection, data = self._due.popleft()
            connection.write(data)
        if self._due:
            self._loop.call_at(self._due[0][0], self._send)


class Connection(asyncio.Protocol):
    """One keep-alive connection. Bodies need a Content-Length."""

    def __init__(self, provider: MockProvider) -> None:
        self._provider = provider
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the way back."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def connection_lost(self, exc: Exception | None) -> None:
        """Answers still due go nowhere."""
        self._transport = None

    def write(self, data: bytes) -> None:
        """Sends, if anybody is still there."""
        if self._transport is not None:
            self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        """Takes whole requests out of the bytes."""
        self._buffer = self._buffer + data if self._buffer else data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end]
            match = _LENGTH.search(head)
            total = end + 4 + (int(match[1]) if match else 0)
            if len(self._buffer) < total:
                return
            body, self._buffer = self._buffer[end + 4 : total], self._buffer[total:]
            if head.startswith(b"GET /stats"):
                self.write(_response(b'{"calls": %d}' % self._provider.calls))
            elif head.startswith(b"GET"):
                self.write(_response(b'{"object": "list", "data": [{"id": "mock-1", "object": "model"}]}'))
            else:
                self._provider.answer(self, body)


async def serve(host: str, port: int, latency_s: float) -> None:
    """Serves until SIGTERM or SIGINT; prints the base URL first."""
    loop = asyncio.get_running_loop()
    provider = MockProvider(latency_s)
    server = await loop.create_server(lambda: Connection(provider), host, port, backlog=4096)
    print(f"http://{host}:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
    server.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A provider of fixed latency for load tests.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    options = parser.parse_args()
    uvloop.run(serve(options.host, options.port, options.latency_ms / 1000))


if __name__ == "__main__":
    main()

"""The least that N calls can cost: a bare asyncio client, raw HTTP, nothing kept, nothing scored.

A run is measured against this: same provider, same tasks, same concurrency. Prints JSON: wall and CPU seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from typing import cast
from urllib.parse import urlsplit

import uvloop


class _Client(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""
        self._waiter: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionResetError("the provider closed the connection"))

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiter

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        at = self._buffer[:end].lower().find(b"content-length:")
        if at < 0:
            raise ValueError("the provider must send a Content-Length")
        length = int(self._buffer[at + 15 : end].split(b"\r\n", 1)[0])
        if len(self._buffer) < end + 4 + length:
            return
        body, self._buffer = self._buffer[end + 4 : end + 4 + length], self._buffer[end + 4 + length :]
        if self._waiter is not None:
            self._waiter.set_result(body)


async def measure(url: str, tasks: int, concurrency: int, key: str = "-") -> dict[str, float | int]:
    """Asks `tasks` sums over `concurrency` connections. `errors` counts answers that are not the sum."""
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(min(concurrency, tasks)):
        _, client = await loop.create_connection(_Client, parts.hostname or "127.0.0.1", parts.port or 80)
        clients.append(client)
    path = f"{parts.path.rstrip('/')}/chat/completions"
    head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {key}\r\n"
    head += "Content-Type: application/json\r\n"
    numbers = iter(range(tasks))
    latencies: list[float] = []
    errors = 0

    async def work(client: _Client) -> None:
        nonlocal errors
        for i in numbers:
            content = f"What is {i} + 7?"
            body = json.dumps({"model": "mock-1", "messages": [{"role": "user", "content": content}]}).encode()
            began = time.perf_counter()
            answer = await client.ask(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            latencies.append(time.perf_counter() - began)
            document = json.loads(answer)
            choices = document.get("choices")
            errors += not choices or not choices[0]["message"]["content"].endswith(f"#### {i + 7}")

    before, began = _cpu(), time.perf_counter()
    await asyncio.gather(*map(work, clients))
    wall = time.perf_counter() - began
    latencies.sort()
    return {
        "tasks": tasks,
        "concurrency": len(clients),
        "errors": errors,
        "wall_s": round(wall, 4),
        "cpu_s": round(_cpu() - before, 4),
        "per_s": round(tasks / wall, 1),
        "p50_ms": round(latencies[len(latencies) // 2] * 1000, 3),
        "p99_ms": round(latencies[int(len(latencies) * 0.99)] * 1000, 3),
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="The floor under a run's wall and CPU time.")
    parser.add_argument("url", help="base URL, such as the one mock_provider prints")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--key", default="-", help="bearer token")
    options = parser.parse_args()
    print(json.dumps(uvloop.run(measure(options.url, options.tasks, options.concurrency, options.key))))


if __name__ == "__main__":
    main()

"""The client for programs on an event loop. What each verb does is told in `client.py`; here they are awaited.

async with AsyncClient("http://127.0.0.1:8800", "bw_…") as client:
    run = await client.runs.create(benchmark="sample-arithmetic", model="control/oracle")
    async for event in run.events():
        print(event.seq, event.type)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchwright_client import calls, models, transport
from benchwright_client.errors import ServerFault, Unreachable, WaitTimeout
from benchwright_client.sse import SILENCE_SECONDS, Frames, Place
from benchwright_client.transport import options


@dataclass(frozen=True)
class AsyncRun(models.RunData):
    """A run, with what can be done to it."""

    _runs: AsyncRuns = field(repr=False, compare=False, kw_only=True)

    async def refresh(self) -> AsyncRun:
        """The run as it is now."""
        return await self._runs.get(self.id)

    async def wait(self, timeout: float | None = None, every: float = 1.0) -> AsyncRun:
        """The run once it has ended or is parked. Raises WaitTimeout."""
        return await self._runs.wait(self.id, timeout, every)

    def events(self, after: int = -1) -> AsyncIterator[models.Event]:
        """Each event as it comes, until the run ends."""
        return self._runs.events(self.id, after)

    def tasks(self, outcome: str | None = None) -> AsyncIterator[models.Task]:
        """The tasks of the latest sweep."""
        return self._runs.tasks(self.id, outcome)

    async def halt(self) -> AsyncRun:
        """Stops it for good; what is settled stays."""
        return await self._runs.halt(self.id)

    async def receipt(self) -> dict[str, Any]:
        """The signed receipt."""
        return await self._runs.receipt(self.id)


class AsyncClient:
    """One installation, one key. Use it in an `async with` block, or await `close()`."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._retries = retries
        self.http = httpx.AsyncClient(**options(self.url, key, timeout), transport=transport)
        self.runs = AsyncRuns(self)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the connections."""
        await self.http.aclose()

    async def send(self, call: calls.Call) -> httpx.Response:
        """The answer to a call, whatever it is but an error."""
        tried = 0
        while True:
            answer = error = None
            try:
                answer = await self.http.request(**transport.arguments(call))
            except httpx.TransportError as e:
                error = e
            pause = transport.pause_before_retry(call, answer, error, tried, self._retries)
            if pause is None:
                return transport.accepted(answer, error, self.url)
            await asyncio.sleep(pause)
            tried += 1

    async def ask(self, call: calls.Call) -> Any:
        """The JSON of the answer to a call."""
        return transport.json_of(await self.send(call))

    async def upload(self, file: str | Path | tuple[str, bytes]) -> models.Upload:
        """A path, or (name, bytes). A launch takes the answer's `id` in `files`."""
        return models.upload_of(await self.ask(calls.upload(file)))

    async def benchmarks(self) -> list[models.Benchmark]:
        """Those that are public or yours."""
        found = await self.ask(calls.Call("GET", "/registry/benchmarks"))
        return [models.benchmark_of(b) for b in found["data"]]


class AsyncRuns:
    """`client.runs`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def _run(self, given: dict[str, Any]) -> AsyncRun:
        return AsyncRun(**models.run_fields(given), _runs=self)

    async def create(self, *, idempotency_key: str | None = None, **body: Any) -> AsyncRun:
        """Launches a run. `body`: the keys of a launch (docs/api.md)."""
        return self._run(await self._client.ask(calls.create(body, idempotency_key)))

    async def get(self, run_id: str) -> AsyncRun:
        """One run as it is now."""
        return self._run(await self._client.ask(calls.get(run_id)))

    async def list(self, *, most: int | None = None, **filters: Any) -> AsyncIterator[AsyncRun]:
        """Newest first. `filters`: q, status, benchmark, subset, impl, model, group, visibility."""
        cursor, given = None, 0
        while True:
            page = await self._client.ask(calls.runs(cursor, filters))
            for row in page["data"]:
                if most is not None and given >= most:
                    return
                given += 1
                yield self._run(row)
            cursor = page["next_cursor"]
            if not cursor:
                return

    async def wait(self, run_id: str, timeout: float | None = None, every: float = 1.0) -> AsyncRun:
        """The run once it has ended or is parked. Raises WaitTimeout; the run goes on then."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            run = await self.get(run_id)
            if run.ended or run.parked:
                return run
            if until is not None and time.monotonic() + every > until:
                raise WaitTimeout(f"Run {run_id} is still {run.status} after {timeout:g} s.", hint="It goes on.")
            await asyncio.sleep(every)

    async def events(self, run_id: str, after: int = -1, *, failures: int = 20) -> AsyncIterator[models.Event]:
        """Each event with seq > `after`, once and in order, as it comes, until the run ends."""
        place = Place(after)
        while not place.ended:
            try:
                async for event in self._stream(run_id, place):
                    yield event
            except (httpx.TransportError, ServerFault) as e:
                if place.failures >= failures:
                    raise Unreachable(f"{self._client.url}: the stream of events was lost ({e}).") from e
            if not place.ended:
                await asyncio.sleep(place.pause())

    async def _stream(self, run_id: str, place: Place) -> AsyncIterator[models.Event]:
        frames, headers = Frames(), {"Last-Event-ID": str(place.after), "Accept": "text/event-stream"}
        async with self._client.http.stream(
            "GET",
            "/v1" + calls.run_path(run_id, "/events/stream"),
            headers=headers,
            timeout=httpx.Timeout(30.0, read=SILENCE_SECONDS),
        ) as answer:
            if answer.status_code != 200:
                await answer.aread()
                transport.accepted(answer, None, self._client.url)
            async for line in answer.aiter_lines():
                frame = frames.line(line)
                given = place.take(frame) if frame else None
                if given is not None:
                    yield models.event_of(given)
                if place.ended:
                    return

    async def tasks(self, run_id: str, outcome: str | None = None) -> AsyncIterator[models.Task]:
        """The tasks of the latest sweep. `outcome`: pass, fail, err or running."""
        after = -1
        while True:
            page = await self._client.ask(calls.tasks(run_id, after, outcome))
            for given in page["data"]:
                yield models.task_of(given)
            if page["next_after"] is None:
                return
            after = page["next_after"]

    async def pause(self, run_id: str) -> AsyncRun:
        """Parks a run until it is resumed."""
        return self._run(await self._client.ask(calls.verb(run_id, "pause")))

    async def resume(self, run_id: str) -> AsyncRun:
        """Goes on with a paused run."""
        return self._run(await self._client.ask(calls.verb(run_id, "resume")))

    async def halt(self, run_id: str) -> AsyncRun:
        """Stops a run for good."""
        return self._run(await self._client.ask(calls.verb(run_id, "halt")))

    async def receipt(self, run_id: str) -> dict[str, Any]:
        """The signed receipt."""
        return dict(await self._client.ask(calls.Call("GET", calls.run_path(run_id, "/receipt"))))

    async def export(self, run_id: str, format: str = "jsonl") -> bytes:
        """The results as a file: jsonl, csv or inspect."""
        return (await self._client.send(calls.export(run_id, format))).content

"""The client for programs that wait.

from benchwright_client import Client

client = Client("http://127.0.0.1:8800", "bw_…")
run = client.runs.create(benchmark="sample-arithmetic", model="control/oracle")
for event in run.events():
    print(event.seq, event.type)
print(run.wait().score)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchwright_client import calls, models, transport
from benchwright_client.errors import ServerFault, Unreachable, WaitTimeout
from benchwright_client.sse import SILENCE_SECONDS, Frames, Place
from benchwright_client.transport import options


@dataclass(frozen=True)
class Run(models.RunData):
    """A run, with what can be done to it."""

    _runs: Runs = field(repr=False, compare=False, kw_only=True)

    def refresh(self) -> Run:
        """The run as it is now."""
        return self._runs.get(self.id)

    def wait(self, timeout: float | None = None, every: float = 1.0) -> Run:
        """The run once it has ended or is parked. Raises WaitTimeout."""
        return self._runs.wait(self.id, timeout, every)

    def events(self, after: int = -1) -> Iterator[models.Event]:
        """Each event as it comes, until the run ends."""
        return self._runs.events(self.id, after)

    def tasks(self, outcome: str | None = None) -> Iterator[models.Task]:
        """The tasks of the latest sweep."""
        return self._runs.tasks(self.id, outcome)

    def pause(self) -> Run:
        """Parks it until it is resumed."""
        return self._runs.pause(self.id)

    def resume(self) -> Run:
        """Goes on with a paused run."""
        return self._runs.resume(self.id)

    def halt(self) -> Run:
        """Stops it for good; what is settled stays."""
        return self._runs.halt(self.id)

    def receipt(self) -> dict[str, Any]:
        """The signed receipt."""
        return self._runs.receipt(self.id)

    def to_pandas(self) -> Any:
        """The tasks as a pandas DataFrame; pandas must be installed."""
        import pandas

        return pandas.DataFrame([task.raw for task in self.tasks()])


class Client:
    """One installation, one key. Close it, or use it in a `with` block.

    Proxies and certificate authorities come from the environment as usual; an address of this machine is reached
    without a proxy. Answers that got lost are asked for again where that is safe. Raises ClientError and below.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._retries = retries
        self._http = httpx.Client(**options(self.url, key, timeout), transport=transport)
        self.runs = Runs(self)
        self.files = Files(self)
        self.registry = Registry(self)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the connections."""
        self._http.close()

    def send(self, call: calls.Call) -> httpx.Response:
        """The answer to a call, whatever it is but an error."""
        tried = 0
        while True:
            answer = error = None
            try:
                answer = self._http.request(**transport.arguments(call))
            except httpx.TransportError as e:
                error = e
            pause = transport.pause_before_retry(call, answer, error, tried, self._retries)
            if pause is None:
                return transport.accepted(answer, error, self.url)
            time.sleep(pause)
            tried += 1

    def ask(self, call: calls.Call) -> Any:
        """The JSON of the answer to a call."""
        return transport.json_of(self.send(call))

    def receipt_key(self) -> dict[str, str]:
        """The public key of this installation's receipts."""
        return dict(self.ask(calls.Call("GET", "/receipt-key")))


class Runs:
    """`client.runs`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def _run(self, given: dict[str, Any]) -> Run:
        return Run(**models.run_fields(given), _runs=self)

    def create(
        self,
        *,
        model: str | dict[str, Any],
        prompt: str | None = None,
        benchmark: str | None = None,
        subset: str | None = None,
        impl: str | None = None,
        files: list[str] | None = None,
        trials: dict[str, Any] | None = None,
        sample: dict[str, Any] | None = None,
        limits: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> Run:
        """Launches a run. `more`: any other key of a launch (docs/api.md); the server refuses unknown ones by name."""
        body: dict[str, Any] = {"model": model, "prompt": prompt, "benchmark": benchmark, "subset": subset}
        body |= {"impl": impl, "files": files, "trials": trials, "sample": sample, "limits": limits}
        body["metadata"] = metadata
        return self._run(self._client.ask(calls.create({**body, **more}, idempotency_key)))

    def get(self, run_id: str) -> Run:
        """One run as it is now."""
        return self._run(self._client.ask(calls.get(run_id)))

    def list(self, *, most: int | None = None, **filters: Any) -> Iterator[Run]:
        """Newest first. `filters`: q, status, benchmark, subset, impl, model, group, visibility."""
        cursor, given = None, 0
        while True:
            page = self._client.ask(calls.runs(cursor, filters))
            for row in page["data"]:
                if most is not None and given >= most:
                    return
                given += 1
                yield self._run(row)
            cursor = page["next_cursor"]
            if not cursor:
                return

    def wait(self, run_id: str, timeout: float | None = None, every: float = 1.0) -> Run:
        """The run once it has ended or is parked. Raises WaitTimeout; the run goes on then."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            run = self.get(run_id)
            if run.ended or run.parked:
                return run
            if until is not None and time.monotonic() + every > until:
                raise WaitTimeout(f"Run {run_id} is still {run.status} after {timeout:g} s.", hint="It goes on.")
            time.sleep(every)

    def events(self, run_id: str, after: int = -1, *, failures: int = 20) -> Iterator[models.Event]:
        """Each event with seq > `after`, once and in order, as it comes, until the run ends.

        A lost connection is made again from the last seq. Raises Unreachable after so many failures in a row.
        """
        place = Place(after)
        while not place.ended:
            try:
                yield from self._stream(run_id, place)
            except (httpx.TransportError, ServerFault) as e:
                if place.failures >= failures:
                    raise Unreachable(f"{self._client.url}: the stream of events was lost ({e}).") from e
            if not place.ended:
                time.sleep(place.pause())

    def _stream(self, run_id: str, place: Place) -> Iterator[models.Event]:
        frames, headers = Frames(), {"Last-Event-ID": str(place.after), "Accept": "text/event-stream"}
        with self._client._http.stream(
            "GET",
            "/v1" + calls.run_path(run_id, "/events/stream"),
            headers=headers,
            timeout=httpx.Timeout(30.0, read=SILENCE_SECONDS),
        ) as answer:
            if answer.status_code != 200:
                answer.read()
                transport.accepted(answer, None, self._client.url)
            for line in answer.iter_lines():
                frame = frames.line(line)
                given = place.take(frame) if frame else None
                if given is not None:
                    yield models.event_of(given)
                if place.ended:
                    return

    def log(self, run_id: str, after: int = -1, types: tuple[str, ...] = ()) -> Iterator[models.Event]:
        """What is in the log now, in order."""
        while True:
            page = self._client.ask(calls.log(run_id, after, types))
            yield from map(models.event_of, page["data"])
            if page["next_after"] is None:
                return
            after = page["next_after"]

    def tasks(self, run_id: str, outcome: str | None = None) -> Iterator[models.Task]:
        """The tasks of the latest sweep. `outcome`: pass, fail, err or running."""
        after = -1
        while True:
            page = self._client.ask(calls.tasks(run_id, after, outcome))
            yield from map(models.task_of, page["data"])
            if page["next_after"] is None:
                return
            after = page["next_after"]

    def task(self, run_id: str, index: int) -> dict[str, Any]:
        """One task: prompt, response, target, usage of each trial."""
        return dict(self._client.ask(calls.Call("GET", calls.run_path(run_id, f"/tasks/{index}"))))

    def pause(self, run_id: str) -> Run:
        """Parks a run until it is resumed. Raises Conflict for an ended one."""
        return self._run(self._client.ask(calls.verb(run_id, "pause")))

    def resume(self, run_id: str) -> Run:
        """Goes on with a paused run. Raises Conflict for any other."""
        return self._run(self._client.ask(calls.verb(run_id, "resume")))

    def halt(self, run_id: str) -> Run:
        """Stops a run for good."""
        return self._run(self._client.ask(calls.verb(run_id, "halt")))

    def change(self, run_id: str, **changes: Any) -> Run:
        """`visibility`, `metadata`, or `review_resolution`: the answer to a waiting run's question."""
        return self._run(self._client.ask(calls.change(run_id, changes)))

    def receipt(self, run_id: str) -> dict[str, Any]:
        """The signed receipt, as `benchwright_client.verify` takes it."""
        return dict(self._client.ask(calls.Call("GET", calls.run_path(run_id, "/receipt"))))

    def export(self, run_id: str, format: str = "jsonl") -> bytes:
        """The results as a file: jsonl, csv or inspect."""
        return self._client.send(calls.export(run_id, format)).content

    def save_export(self, run_id: str, format: str, folder: str | Path) -> Path:
        """The same, written into a folder under the name that the server gives it: Inspect View goes by names."""
        answer = self._client.send(calls.export(run_id, format))
        path = Path(folder) / (transport.file_name(answer) or f"{run_id}.{format}")
        path.write_bytes(answer.content)
        return path

    def artifact(self, run_id: str, name: str) -> bytes:
        """A file of the run: `task_impl.py`, or `events.jsonl` to check a receipt against."""
        return self._client.send(calls.Call("GET", calls.run_path(run_id, f"/artifacts/{name}"))).content


class Files:
    """`client.files`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def upload(self, file: str | Path | tuple[str, bytes]) -> models.Upload:
        """A path, or (name, bytes). A launch takes the answer's `id` in `files`."""
        return models.upload_of(self._client.ask(calls.upload(file)))


class Registry:
    """`client.registry`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def benchmarks(self) -> list[models.Benchmark]:
        """Those that are public or yours."""
        return [models.benchmark_of(b) for b in self._client.ask(calls.Call("GET", "/registry/benchmarks"))["data"]]

    def benchmark(self, benchmark_id: str) -> models.Benchmark:
        """One, with its subsets; its scorers are in `raw["impls"]`."""
        return models.benchmark_of(self._client.ask(calls.benchmark(benchmark_id)))

"""A model endpoint of a few lines and the guest runner as a real subprocess."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RUNNER = Path(__file__).resolve().parents[2] / "runs" / "guest" / "run_tasks.py"

PLAIN = """
class TaskImpl:
    def extract(self, row):
        return row["q"]
    def solve(self, row, call_sut):
        return call_sut(self.extract(row)).text
    def score(self, row, response):
        return response == "ok"
"""


@dataclass
class Model:
    """Answers every request with what `reply` says: (status, body, seconds to wait)."""

    reply: Callable[[str, dict[str, Any]], tuple[int, Any, float]]
    url: str = ""
    keys: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)


def completion(text: str | None = "ok", finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": {"prompt_tokens": 1}}


@contextlib.contextmanager
def model_server(
    reply: Callable[[str, dict[str, Any]], tuple[int, Any, float]] | None = None,
) -> Iterator[Model]:
    """A listening endpoint on a free port."""
    model = Model(reply or (lambda key, body: (200, completion(), 0.0)))
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers["Authorization"].removeprefix("Bearer ")
            with lock:
                model.keys[key] += 1
                model.bodies.append(body)
            status, answer, seconds = model.reply(key, body)
            time.sleep(seconds)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            with contextlib.suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Ran:
    """What one run of the guest printed."""

    frames: list[dict[str, Any]]
    code: int
    stderr: str
    seconds: float

    def of(self, kind: str) -> list[dict[str, Any]]:
        """All frames of one type."""
        return [f for f in self.frames if f["t"] == kind]

    @property
    def results(self) -> dict[int, dict[str, Any]]:
        """The one result of each index; a second one is a failure."""
        found = self.of("result")
        assert len({(f["index"], f["trial"]) for f in found}) == len(found), "a task has two results"
        return {f["index"]: f for f in found}

    def log(self) -> str:
        """Everything that the scorer printed."""
        return "".join(f["text"] for f in self.of("log"))


def write_job(
    folder: Path, impl: str, tasks: int | list[dict[str, Any]], url: str = "http://127.0.0.1:9/v1", **settings: Any
) -> Path:
    """Scorer file, task lines and job file; `tasks` may be a number of plain rows."""
    (folder / "task_impl.py").write_text(textwrap.dedent(impl))
    if isinstance(tasks, int):
        tasks = [{"row": {"q": f"q{i}", "i": i}} for i in range(tasks)]
    lines = []
    for number, task in enumerate(tasks):
        keys = [f"k-{number}-{attempt}" for attempt in (1, 2, 3)]
        lines.append(json.dumps({"index": number, "trial": 0, "keys": keys, **task}))
    (folder / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    job = {
        "impl": str(folder / "task_impl.py"),
        "tasks": str(folder / "tasks.jsonl"),
        "base_url": url,
        "concurrency": 8,
        "attempt_seconds": 20,
        "score_seconds": 20,
        "memory_mb": 512,
        "invocation": 1,
        "max_attempts": 1,
    }
    path = folder / "job.json"
    path.write_text(json.dumps({**job, **settings}))
    return path


def run_guest(job: Path, *, timeout: float = 30) -> Ran:
    """The runner as the sandbox starts it."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-I", str(RUNNER), str(job)], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout
    )
    assert not re.search(rb"[^\x00-\x7f]", done.stdout), "a frame is not ASCII"
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    return Ran(frames, done.returncode, done.stderr.decode(), time.monotonic() - started)

"""A gateway as a real process in `--listen` mode, with its records at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from sandboxes.model_proxy.keys import make_key
from tests.fakes.hub import FakeHub

SECRET = bytes(range(32))
RUN = "0192b5a0-1111-7222-8333-444455556666"
ROOT = Path(__file__).resolve().parents[2]


def endpoint(base_url: str, **more: Any) -> dict[str, Any]:
    """A route to an OpenAI-compatible server."""
    return {"kind": "endpoint", "model": "fake-1", "base_url": base_url, **more}


class RunningGateway:
    """`with RunningGateway(route) as gateway:`; its lines on stdout are `lines`, as parsed JSON."""

    def __init__(
        self, route: dict[str, Any], *, env: dict[str, str] | None = None, hub: FakeHub | None = None, **config: Any
    ) -> None:
        retries = {"max": 3, "base_s": 0.01, "cap_s": 0.02}
        secret = SECRET.hex()
        self._config = {"run": RUN, "secret": secret, "route": route, "retries": retries, "timeout_s": 10, **config}
        self._env = env or {}
        self._hub = hub
        self._folder = tempfile.TemporaryDirectory()
        self._syncs = 0
        self._changed = threading.Condition()
        self.lines: list[dict[str, Any]] = []
        self.raw = b""
        self.stderr = ""
        self.port = 0

    def __enter__(self) -> RunningGateway:
        path = Path(self._folder.name) / "gateway.json"
        path.write_text(json.dumps(self._config))
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")} | self._env
        self._errors = (Path(self._folder.name) / "stderr").open("w+b")
        where = ["--listen", "127.0.0.1:0"]
        if self._hub is not None:
            where, env["BW_HUB_FD"] = [], str(self._hub.theirs.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sandboxes.model_proxy.gateway", str(path), *where],
            pass_fds=[] if self._hub is None else [self._hub.theirs.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env=env,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        ready = self.wait_for(lambda line: line["t"] == "ready", 30)
        self.port = ready["port"] if self._hub is None else self._hub.give_listener()
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}/v1", timeout=20)
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self.stop()

    def stop(self) -> int:
        """Ends it and returns its exit code; `raw` and `stderr` are complete afterwards."""
        if self._process.poll() is None:
            self.order({"op": "stop"})
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(5)
        if not self._errors.closed:
            self._errors.seek(0)
            self.stderr = self._errors.read().decode()
            self._errors.close()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._folder.cleanup()
        return self._process.returncode

    def order(self, order: dict[str, Any]) -> None:
        """One line on its stdin."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def key(self, index: int = 0, *, trial: int = 0, attempt: int = 1, invocation: int = 1) -> str:
        """A fake key of this run."""
        return make_key(SECRET, RUN, invocation, index, trial, attempt)

    def post(self, path: str = "/chat/completions", *, key: str | None = None, **body: Any) -> httpx.Response:
        """One request; `prompt=` alone makes a chat message of it."""
        if path == "/chat/completions" and "prompt" in body:
            body["messages"] = [{"role": "user", "content": body.pop("prompt")}]
        return self.http.post(path, json=body, headers={"Authorization": f"Bearer {key or self.key()}"})

    def ask(self, prompt: str, **more: Any) -> dict[str, Any]:
        """The parsed answer to a chat message."""
        answer: dict[str, Any] = self.post(prompt=prompt, **more).json()
        return answer

    def stream(self, prompt: str, **body: Any) -> list[str]:
        """The `data:` payloads of a streamed answer, or its error."""
        headers = {"Authorization": f"Bearer {self.key()}"}
        message = {"messages": [{"role": "user", "content": prompt}], "stream": True, **body}
        with self.http.stream("POST", "/chat/completions", json=message, headers=headers) as response:
            lines = list(response.iter_lines())
        # A stream that never began is answered with plain JSON.
        return [line.removeprefix("data: ") for line in lines if line.startswith(("data: ", "{"))]

    def synced(self) -> list[dict[str, Any]]:
        """Every line so far, after a sync."""
        self._syncs += 1
        number = self._syncs
        self.order({"op": "sync", "id": number})
        self.wait_for(lambda line: line["t"] == "synced" and line["id"] == number, 10)
        return list(self.lines)

    def calls(self) -> list[dict[str, Any]]:
        """Every call on record."""
        return [line for line in self.synced() if line["t"] == "call"]

    def retries(self) -> list[dict[str, Any]]:
        """Every failed attempt on record."""
        return [line for line in self.synced() if line["t"] == "retry"]

    def wait_for(self, test: Any, seconds: float) -> dict[str, Any]:
        """The first line that passes the test. Raises TimeoutError."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                for line in self.lines:
                    if test(line):
                        return line
                left = end - time.monotonic()
                if left <= 0 or (self._process.poll() is not None and not self._reader.is_alive()):
                    self._errors.flush()
                    said = Path(self._errors.name).read_text() if not self._errors.closed else ""
                    raise TimeoutError(f"no such line; stderr: {said}")
                self._changed.wait(min(left, 0.2))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.raw += line
                self.lines.append(json.loads(line))
                self._changed.notify_all()

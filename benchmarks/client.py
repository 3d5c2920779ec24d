"""The little of API v1 that the benchmarks speak, with the standard library."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

ENDED = frozenset({"ok", "error", "killed", "halted", "waiting", "paused"})


class Refused(Exception):
    """The API answered with an error."""


class Api:
    """One installation, one key. `url` and `key` default to BENCHWRIGHT_URL and BENCHWRIGHT_API_KEY."""

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        self.url = (url or os.environ["BENCHWRIGHT_URL"]).rstrip("/")
        self.key = key or os.environ["BENCHWRIGHT_API_KEY"]
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, kind: str = "application/json"
    ) -> Any:
        """The JSON answer. Raises Refused with the API's message."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": kind}
        request = urllib.request.Request(f"{self.url}/v1{path}", data, headers, method=method)
        try:
            with self._opener.open(request, timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            raise Refused(f"{method} {path}: {e.code} {e.read().decode(errors='replace')[:800]}") from None

    def upload(self, path: Path) -> str:
        """The id of the uploaded file."""
        edge = uuid.uuid4().hex
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'.encode()
        raw = head + path.read_bytes() + f"\r\n--{edge}--\r\n".encode()
        answer = self.call("POST", "/files", raw=raw, kind=f"multipart/form-data; boundary={edge}")
        return str(answer["id"])

    def launch(self, **body: Any) -> dict[str, Any]:
        """The launched run."""
        run: dict[str, Any] = self.call("POST", "/runs", body)
        return run

    def wait(self, run_id: str, seconds: float = 3600, every: float = 0.25) -> dict[str, Any]:
        """The run once it has ended or is parked."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            run: dict[str, Any] = self.call("GET", f"/runs/{run_id}")
            if run["display_status"] in ENDED:
                return run
            time.sleep(every)
        raise Refused(f"run {run_id} did not end in {seconds:g} s")

    def events(self, run_id: str, types: str = "") -> list[dict[str, Any]]:
        """All events of these types, in order."""
        out: list[dict[str, Any]] = []
        after = -1
        while True:
            page = self.call(
                "GET", f"/runs/{run_id}/events?limit=1000&after={after}" + (f"&types={types}" if types else "")
            )
            out.extend(page["data"])
            if page["next_after"] is None:
                return out
            after = page["next_after"]

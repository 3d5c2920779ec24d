"""What benchmarks and flow tests do with API v1: upload, launch, wait, read the log."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import Any

from benchwright.embedded.client import Api as LocalApi
from benchwright.embedded.client import ApiFailed

ENDED = frozenset({"ok", "error", "killed", "halted", "waiting", "paused"})


class Api:
    """One installation, one key. `url` and `key` default to BENCHWRIGHT_URL and BENCHWRIGHT_API_KEY."""

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        self._api = LocalApi(url or os.environ["BENCHWRIGHT_URL"], key or os.environ["BENCHWRIGHT_API_KEY"])
        self.url, self.key, self.call = self._api.url, self._api.key, self._api.call

    def upload(self, path: Path) -> str:
        """The id of the uploaded file."""
        edge = uuid.uuid4().hex
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'.encode()
        body = head + path.read_bytes() + f"\r\n--{edge}--\r\n".encode()
        return str(self.call("POST", "/files", body, kind=f"multipart/form-data; boundary={edge}")["id"])

    def launch(self, **body: Any) -> dict[str, Any]:
        """The launched run."""
        return self._api.launch(body)

    def wait(self, run_id: str, seconds: float = 3600, every: float = 0.25) -> dict[str, Any]:
        """The run once it has ended or is parked. Raises ApiFailed when it takes longer."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            run = self._api.run(run_id)
            if run["display_status"] in ENDED:
                return run
            time.sleep(every)
        raise ApiFailed(f"run {run_id} did not end in {seconds:g} s", None)

    def events(self, run_id: str, types: str = "") -> list[dict[str, Any]]:
        """All events of these types, in order."""
        out: list[dict[str, Any]] = []
        after = -1
        while True:
            asked = f"limit=1000&after={after}" + (f"&types={types}" if types else "")
            page = self.call("GET", f"/runs/{run_id}/events?{asked}")
            out.extend(page["data"])
            if page["next_after"] is None:
                return out
            after = page["next_after"]

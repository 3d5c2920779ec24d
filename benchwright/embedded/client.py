"""API v1 of an installation on this machine, on the standard library: for `./bw demo`, benchmarks and tests."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

ApiObject = dict[str, Any]
SECONDS = 60


class ApiFailed(Exception):
    """The API refused or could not be reached. `status` is None when nothing answered; `code` is the API's."""

    def __init__(self, message: str, status: int | None, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Api:
    """`url`: the server's address on this machine; `key`: an API key."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url.rstrip("/"), key
        # Never through a proxy: it is this machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def launch(self, body: ApiObject) -> ApiObject:
        """POST /v1/runs. Raises ApiFailed."""
        return self.call("POST", "/runs", body)

    def run(self, run_id: str) -> ApiObject:
        """GET /v1/runs/{id}. Raises ApiFailed."""
        return self.call("GET", f"/runs/{run_id}")

    def halt(self, run_id: str) -> ApiObject:
        """POST /v1/runs/{id}/halt. Raises ApiFailed."""
        return self.call("POST", f"/runs/{run_id}/halt", {})

    def call(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> ApiObject:
        """The answer at /v1<path>. `body`: JSON, or bytes of the content type `kind`. Raises ApiFailed."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": kind}
        request = urllib.request.Request(f"{self.url}/v1{path}", data, headers, method=method)
        try:
            with self._opener.open(request, timeout=SECONDS) as reply:
                found = json.loads(reply.read())
        except urllib.error.HTTPError as error:
            words, code = _reason(error)
            raise ApiFailed(words, error.code, code) from None
        except (OSError, ValueError) as error:
            raise ApiFailed(f"{self.url} does not answer ({error})", None) from None
        return found if isinstance(found, dict) else {}


def _reason(error: urllib.error.HTTPError) -> tuple[str, str]:
    """The API's own message and hint, and its code."""
    try:
        found = json.loads(error.read()).get("error") or {}
        words = [str(found[name]) for name in ("message", "hint") if found.get(name)]
        code = str(found.get("code") or "")
    except (ValueError, AttributeError, OSError):
        words, code = [], ""
    return " ".join(words) or f"HTTP {error.code}", code

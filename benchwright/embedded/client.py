"""Three calls of API v1, on the standard library: what following one run takes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

ApiObject = dict[str, Any]


class ApiFailed(Exception):
    """The API refused or could not be reached. `status` is None when there was no answer at all."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """`url`: the server's address on this machine; `key`: an API key."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url.rstrip("/"), key
        # Never through a proxy: it is this machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def launch(self, body: ApiObject) -> ApiObject:
        """POST /v1/runs. Raises ApiFailed."""
        return self._call("POST", "/v1/runs", body)

    def run(self, run_id: str) -> ApiObject:
        """GET /v1/runs/{id}. Raises ApiFailed."""
        return self._call("GET", f"/v1/runs/{run_id}")

    def halt(self, run_id: str) -> ApiObject:
        """POST /v1/runs/{id}/halt. Raises ApiFailed."""
        return self._call("POST", f"/v1/runs/{run_id}/halt", {})

    def _call(self, method: str, path: str, body: ApiObject | None = None) -> ApiObject:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=30) as reply:
                found = json.loads(reply.read())
        except urllib.error.HTTPError as error:
            raise ApiFailed(_reason(error), error.code) from None
        except (OSError, ValueError) as error:
            raise ApiFailed(f"{self.url} does not answer ({error})", None) from None
        return found if isinstance(found, dict) else {}


def _reason(error: urllib.error.HTTPError) -> str:
    """The API's own message and hint."""
    try:
        found = json.loads(error.read()).get("error") or {}
        words = [str(found[name]) for name in ("message", "hint") if found.get(name)]
    except (ValueError, AttributeError, OSError):
        words = []
    return " ".join(words) or f"HTTP {error.code}"

"""How requests are sent and answers taken, for both clients: addresses, retries, errors."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import httpx

from benchwright_client.calls import VERSION, Call
from benchwright_client.errors import NotLoggedIn, Unreachable, error_of

BUSY = {429, 502, 503, 504}
FIRST_PAUSE_SECONDS = 0.25
MOST_PAUSE_SECONDS = 30.0


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """What both kinds of httpx client are made with. Raises NotLoggedIn for an address that is none."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise NotLoggedIn(f"{url!r} is not an address.", hint="For example http://127.0.0.1:8800")
    headers = {"User-Agent": f"benchwright-client/{VERSION}", "Accept": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return {"base_url": url, "headers": headers, "timeout": timeout, "trust_env": not _is_here(parsed.host)}


def _is_here(host: str) -> bool:
    """An address of this machine: a proxy could not lead there."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def arguments(call: Call) -> dict[str, Any]:
    """A call as httpx takes it."""
    out: dict[str, Any] = {"method": call.method, "url": f"/v1{call.path}", "headers": call.headers}
    if call.params:
        out["params"] = call.params
    if call.json is not None:
        out["json"] = call.json
    if call.file is not None:
        out["files"] = {"file": call.file}
    return out


def pause_before_retry(
    call: Call, answer: httpx.Response | None, error: httpx.TransportError | None, tried: int, most: int
) -> float | None:
    """Seconds to wait before the same call is sent again; None when it is not to be."""
    if tried >= most:
        return None
    pause = FIRST_PAUSE_SECONDS * 2**tried
    if error is not None:
        # Where nothing was sent, nothing can have happened twice.
        return pause if call.safe or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else None
    if answer is None or answer.status_code not in BUSY or not (call.safe or answer.status_code == 429):
        return None
    asked = answer.headers.get("Retry-After", "")
    return min(MOST_PAUSE_SECONDS, float(asked)) if asked.isdigit() else pause


def accepted(answer: httpx.Response | None, error: httpx.TransportError | None, url: str) -> httpx.Response:
    """The answer when it is one of success. Raises Unreachable or an ApiError."""
    if answer is None:
        raise Unreachable(
            f"{url} does not answer ({error}).", hint="Is Benchwright up there (./bw up), and is the address right?"
        ) from error
    if not answer.is_success:
        raise error_of(answer.status_code, _json(answer), answer.text)
    return answer


def json_of(answer: httpx.Response) -> Any:
    """The JSON of a successful answer. Raises ApiError when something else answers there."""
    found = _json(answer)
    if found is None:
        raise error_of(answer.status_code, None, answer.text)
    return found


def file_name(answer: httpx.Response) -> str | None:
    """The name that the server gives to a file: a name alone, it can't lead into another folder."""
    found = re.search(r'filename="([\w.+-]+)"', answer.headers.get("Content-Disposition", ""))
    return found[1] if found and found[1].strip(".") else None


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None

"""What can go wrong between a program and Benchwright.

ClientError
├── Unreachable         no answer: the address, the network, a server that is down
├── WaitTimeout         the run did not end in the time that was given
├── NotLoggedIn         no address or no key is known here
└── ApiError            the server answered with an error: `code`, `message`, `hint`, `field`, `request_id`
    ├── BadRequest      400, 402, 413: something in the request
    ├── NotSignedIn     401
    ├── NotAllowed      403
    ├── NotFound        404, 410
    ├── Conflict        409
    ├── RateLimited     429
    └── ServerFault     5xx
"""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """Anything that this package raises by itself. `message` is for people, `hint` says what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Unreachable(ClientError):
    """There was no answer."""


class WaitTimeout(ClientError):
    """The run goes on; only the waiting has ended."""


class NotLoggedIn(ClientError):
    """No address or no key is known here."""


class ApiError(ClientError):
    """The server's answer. `code` is for programs and does not change."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        hint: str | None = None,
        field: str | None = None,
        request_id: str | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code
        self.field = field
        self.request_id = request_id
        self.data = data or {}


class BadRequest(ApiError):
    """Something in the request; `field` names it."""


class NotSignedIn(ApiError):
    """No key, an unknown one, or a revoked one."""


class NotAllowed(ApiError):
    """You may look and not change."""


class NotFound(ApiError):
    """There is no such thing, or it is not yours."""


class Conflict(ApiError):
    """It is not in a state for that."""


class RateLimited(ApiError):
    """Too many requests."""


class ServerFault(ApiError):
    """A fault of the server; the request id finds it in its log."""


_BY_STATUS = {401: NotSignedIn, 403: NotAllowed, 404: NotFound, 409: Conflict, 410: NotFound, 429: RateLimited}


def error_of(status: int, body: Any, words: str = "") -> ApiError:
    """The error of an answer. `body`: its JSON, or None when it is none; `words`: what it says instead."""
    given = body.get("error") if isinstance(body, dict) else None
    if not isinstance(given, dict):
        given = {"code": "not_benchwright", "message": f"HTTP {status}: {words[:200] or 'no words'}"}
        given["hint"] = "Is this the address of Benchwright, or of a proxy before it?"
    cls = _BY_STATUS.get(status, ServerFault if status >= 500 else BadRequest)
    return cls(
        str(given.get("message", "")),
        status=status,
        code=str(given.get("code", "error")),
        hint=given.get("hint"),
        field=given.get("field"),
        request_id=given.get("request_id"),
        data=given.get("data"),
    )

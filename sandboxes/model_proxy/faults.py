"""Why a call could not be answered, in the shape OpenAI's clients understand."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import orjson

from sandboxes.model_proxy.lenient import printable

MESSAGE_LIMIT = 2000


class FaultKind(StrEnum):
    """The `type` of an error answer and the `kind` in the record."""

    INVALID_KEY = "invalid_key"  # the caller's fake key is not one of this run
    PARAMETER_REFUSED = "parameter_refused"  # the caller sent what only Attach may set, or no valid request at all
    UPSTREAM_AUTH = "upstream_auth"  # the provider refuses the real key
    MODEL_NOT_FOUND = "model_not_found"  # the provider does not know the model or the address
    RATE_LIMITED = "rate_limited"  # still 429 after all retries
    UPSTREAM_ERROR = "upstream_error"  # the provider failed, or answered something that is no answer
    UPSTREAM_UNREACHABLE = "upstream_unreachable"  # no connection
    TIMEOUT = "timeout"  # no answer in time
    CEILING = "ceiling"  # a limit of the run or the attempt is reached


class Fault(Exception):
    """One failed call or attempt.

    `status`: what the caller gets. `upstream_status`: what the provider said, if it said anything.
    `retryable`: another try may help. `retry_after`: seconds the provider asked to wait.
    `param`: the parameter at fault, when known.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        status: int,
        upstream_status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        param: str | None = None,
    ) -> None:
        message = printable(" ".join(message.split())[:MESSAGE_LIMIT])
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.upstream_status = upstream_status
        self.retryable = retryable
        self.retry_after = retry_after
        self.param = param
        self.sent: dict[str, Any] | None = None  # the request as it went upstream, for whoever may bend it

    def body(self) -> bytes:
        """The error answer, OpenAI's shape."""
        return orjson.dumps(
            {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.kind}}
        )

    def record(self) -> dict[str, object]:
        """The `error` of a record."""
        return {"kind": self.kind, "status": self.upstream_status or self.status, "message": self.message}


RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})


def is_retryable_status(status: int) -> bool:
    """Whether the same request may succeed a moment later."""
    return status in RETRYABLE_STATUSES or 500 <= status <= 599


def from_status(
    status: int, message: str, *, retry_after: float | None = None, code: object = None, param: str | None = None
) -> Fault:
    """The fault for an error status of a provider. `code` is the provider's own word, such as `insufficient_quota`."""
    retryable = is_retryable_status(status)
    out = status
    if status in (401, 403):
        kind = FaultKind.UPSTREAM_AUTH
    elif status == 404:
        kind = FaultKind.MODEL_NOT_FOUND
    elif status == 429:
        kind = FaultKind.RATE_LIMITED
        retryable = code != "insufficient_quota"  # an empty account does not fill up between two tries
    elif status in (408, 504):
        kind, out = FaultKind.TIMEOUT, 504
    elif status >= 500:
        kind, out = FaultKind.UPSTREAM_ERROR, 502
    else:
        kind, out = FaultKind.UPSTREAM_ERROR, status if 400 <= status < 500 else 502
    return Fault(
        kind,
        message,
        status=out,
        upstream_status=status,
        retryable=retryable,
        retry_after=retry_after,
        param=param,
    )


def malformed(message: str, *, status: int | None = None) -> Fault:
    """The provider answered, but not with an answer."""
    return Fault(FaultKind.UPSTREAM_ERROR, message, status=502, upstream_status=status)

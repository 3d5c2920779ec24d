"""The one error tree: what went wrong, in words that say what to do next.

    BenchwrightError
    ├── billing.errors     balance, keys, payments
    ├── sandboxes.errors   a sandbox is down, a host is refused
    ├── registry.errors    unknown or unchangeable benchmarks
    └── runs.errors        refused launches, failed phases

API and pages show the same text: `code` is for programs, `message` for people, `hint` says what to do.
"""

from __future__ import annotations

from typing import Any


class BenchwrightError(Exception):
    """Something a person can act on.

    `code`: stable snake_case word. `status`: the HTTP status it is answered with. `field`: the key of the
    request that caused it. `data`: extra values for programs.
    """

    code = "error"
    status = 400

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        field: str | None = None,
        hint: str | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.status = status or type(self).status
        self.field = field
        self.hint = hint
        self.data = data or {}

    def as_dict(self) -> dict[str, Any]:
        """The body of an API error, without the request id."""
        out: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.field:
            out["field"] = self.field
        if self.hint:
            out["hint"] = self.hint
        if self.data:
            out["data"] = self.data
        return out


class NotFound(BenchwrightError):
    """There is no such thing, or it is not yours to see: the two look the same on purpose."""

    code = "not_found"
    status = 404


class NotAllowed(BenchwrightError):
    """You may see it, but not change it."""

    code = "not_allowed"
    status = 403

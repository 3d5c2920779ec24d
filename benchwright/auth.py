"""Turns an API key or the browser's session into a person and an account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from benchwright.lib.errors import NotAllowed
from billing.errors import NotSignedIn
from billing.models import Account, User
from billing.queries import account_of, key_owner, role_in
from billing.vocabulary import MemberRole


@dataclass(frozen=True)
class Caller:
    """Who asks. Readers may look at everything of the account and change nothing."""

    user: User
    account: Account
    may_write: bool


def caller(request: HttpRequest) -> Caller:
    """Raises NotSignedIn, KeyRevoked, or NotAllowed on a write without the CSRF token of a session."""
    header = request.headers.get("Authorization", "")
    if header:
        scheme, _, raw = header.partition(" ")
        if scheme.lower() != "bearer" or not raw.strip():
            raise NotSignedIn("The Authorization header must be `Bearer bw_…`.")
        key = key_owner(raw.strip())
        return Caller(key.user, key.account, not key.read_only and _writes(key.user, key.account.pk))
    user: Any = request.user
    if not user.is_authenticated:
        raise NotSignedIn("Sign in, or send an API key.", hint="Authorization: Bearer bw_… (Settings, API keys).")
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        _check_csrf(request)
    account = account_of(user)
    if account is None:
        raise NotAllowed("You belong to no account.")
    return Caller(user, account, _writes(user, account.pk))


def writer(request: HttpRequest) -> Caller:
    """The caller, if they may change things. Raises NotAllowed."""
    who = caller(request)
    if not who.may_write:
        raise NotAllowed(
            "You may look, but not change anything here.", hint="Ask the owner of the account for another role or key."
        )
    return who


def _writes(user: User, account_id: int) -> bool:
    return role_in(user, account_id) in {MemberRole.OWNER, MemberRole.ADMIN, MemberRole.MEMBER}


def _check_csrf(request: HttpRequest) -> None:
    checker = CsrfViewMiddleware(lambda r: None)  # type: ignore[arg-type]
    checker.process_request(request)
    if checker.process_view(request, _nothing, (), {}) is not None:
        raise NotAllowed(
            "The CSRF token is missing or old.",
            code="csrf_failed",
            hint=f"Send the {settings.CSRF_COOKIE_NAME} cookie's value as X-CSRFToken, or use an API key.",
        )


def _nothing() -> HttpResponse:
    """Stands for a view that is not exempt."""
    return HttpResponse()

"""Who is looking: the account of the request, and the doors that need one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse

from benchwright.lib.errors import BenchwrightError
from billing.queries import account_of, role_in
from billing.vocabulary import MemberRole
from runs.pages.fragments import refusal
from runs.queries.access import own_run

Page = Callable[..., HttpResponse]


def account(request: HttpRequest) -> Any:
    """The account of the signed-in user, or None."""
    return account_of(request.user) if request.user.is_authenticated else None


def owns(request: HttpRequest, run_id: UUID | str) -> bool:
    """Whether the viewer may press this run's buttons."""
    mine = account(request)
    try:
        own_run(mine, run_id)
    except BenchwrightError:
        return False
    return mine is not None and role_in(request.user, mine.pk) not in (None, MemberRole.VIEWER)


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    """A whole page goes there; a part of one must not be filled with the form, so htmx is told to go."""
    if getattr(request, "htmx", False):
        back = urlsplit(request.headers.get("HX-Current-URL", "")).path or "/"
        return HttpResponse(status=204, headers={"HX-Redirect": redirect_to_login(back).headers["Location"]})
    return redirect_to_login(request.get_full_path())


def page(view: Page) -> Page:
    """A page that answers an error of ours with a page, never with a stack trace."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except BenchwrightError as error:
            if error.status in (401, 404) and not request.user.is_authenticated:
                # It may exist for whoever signs in: offering that says nothing about whether it does.
                return _to_sign_in(request)
            return refusal(request, error)

    return wrapped


def signed_in(view: Page) -> Page:
    """A page only for people who are signed in."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        return view(request, *args, **kwargs)

    return page(wrapped)

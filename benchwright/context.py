"""What every template knows: the account that is looking, and where it is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


def shell(request: HttpRequest) -> dict[str, Any]:
    """`account`: the signed-in user's account, or None."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"account": None}
    from billing.queries import account_of

    return {"account": account_of(user)}

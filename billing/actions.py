"""Open accounts, make keys and sign-in links."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db import transaction

from benchwright.lib.canonical import sha256
from benchwright.lib.clock import now
from benchwright.lib.ids import slug
from billing.errors import NotSignedIn
from billing.models import Account, ApiKey, Membership, SignInLink, User
from billing.vocabulary import MemberRole


@transaction.atomic
def open_account(
    username: str, *, admin: bool = False, password: str | None = None, email: str = ""
) -> tuple[User, Account]:
    """A person and their own account; returns the existing pair when the name is taken."""
    user = User.objects.filter(username=username).first()
    if user is None:
        user = User(username=username, email=email, is_staff=admin, is_superuser=admin)
        user.set_password(password) if password else user.set_unusable_password()
        user.save()
    member = Membership.objects.select_related("account").filter(user=user).order_by("id").first()
    if member:
        return user, member.account
    account = Account.objects.create(slug=_free_slug(username), name=username)
    Membership.objects.create(account=account, user=user, role=MemberRole.OWNER)
    return user, account


def make_key(user: User, account: Account, name: str, *, read_only: bool = False) -> str:
    """A new key, returned once."""
    raw = "bw_" + secrets.token_urlsafe(32)
    ApiKey.objects.create(
        user=user, account=account, name=name[:80], prefix=raw[:10], sha256=sha256(raw), read_only=read_only
    )
    return raw


def revoke_key(account: Account, key_id: int) -> bool:
    """True when there was a live key with this id."""
    return bool(ApiKey.objects.filter(account=account, pk=key_id, revoked_at=None).update(revoked_at=now()))


def make_sign_in_link(user: User, *, hours: int = 24) -> str:
    """The token of a one-time link, `/sign-in/<token>/`."""
    raw = secrets.token_urlsafe(24)
    SignInLink.objects.create(user=user, sha256=sha256(raw), expires_at=now() + timedelta(hours=hours))
    return raw


def use_sign_in_link(raw: str) -> User:
    """The person behind the link, which is spent by this. Raises NotSignedIn."""
    link = SignInLink.objects.select_related("user").filter(sha256=sha256(raw)).first()
    spent = link and SignInLink.objects.filter(pk=link.pk, used_at=None, expires_at__gt=now()).update(used_at=now())
    if not link or not spent or not link.user.is_active:
        raise NotSignedIn(
            "This sign-in link was used already or has expired.", hint="Ask for a new one: ./bw manage sign_in_link"
        )
    return link.user


def _free_slug(name: str) -> str:
    base = slug(name, limit=50)
    taken = set(Account.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    candidate, n = base, 2
    while candidate in taken:
        candidate, n = f"{base}-{n}", n + 1
    return candidate

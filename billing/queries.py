"""Who is asking, and for which account."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from benchwright.lib.canonical import sha256
from benchwright.lib.clock import now
from billing.errors import KeyRevoked, NotSignedIn
from billing.models import Account, ApiKey, Membership, User
from billing.vocabulary import MemberRole


def account_of(user: User) -> Account | None:
    """The account a person works in: the one they joined first."""
    member = Membership.objects.select_related("account").filter(user=user).order_by("id").first()
    return member.account if member else None


def role_in(user: User | AnonymousUser, account_id: int) -> MemberRole | None:
    """The person's role in that account, or None for a stranger."""
    if isinstance(user, AnonymousUser):
        return None
    member = Membership.objects.filter(user=user, account_id=account_id).first()
    return MemberRole(member.role) if member else None


def key_owner(raw: str) -> ApiKey:
    """The live key behind `bw_…`. Raises NotSignedIn or KeyRevoked."""
    key = ApiKey.objects.select_related("account", "user").filter(sha256=sha256(raw)).first()
    if key is None or not key.user.is_active:
        raise NotSignedIn("This API key is not known here.", hint="Make one under Settings, API keys.")
    if key.revoked_at is not None:
        raise KeyRevoked("This API key was revoked.", hint="Make a new one under Settings, API keys.")
    at = now()
    if key.last_used_at is None or (at - key.last_used_at).total_seconds() > 60:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=at)
    return key

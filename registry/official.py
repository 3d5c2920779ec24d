"""Make a scorer official, or no longer: an admin's act, with a reason, told for good."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from benchwright.lib.clock import now
from benchwright.lib.errors import BenchwrightError, NotAllowed
from billing.models import User
from registry.errors import NotImmune, StandingUnchanged
from registry.immunity import checks_of, failings
from registry.models import AdminAct, Impl
from registry.vocabulary import Act

MOST_WORDS = 2000


@transaction.atomic
def promote(user: User, impl: Impl, reason: str, *, override: str = "") -> Impl:
    """The scorer becomes official; `latest:official` is the one promoted last.

    Its stored proof must hold every check of `immunity.ASKED`; otherwise `override` must say why that is right here.
    Raises NotAllowed, NotImmune, StandingUnchanged, and BenchwrightError without a reason.
    """
    _admin(user)
    reason, override = _words(reason, "reason"), _words(override, "override", needed=False)
    missing = failings(impl.proof)
    if missing and not override:
        raise NotImmune(
            "This scorer did not withstand everything that an official one must: "
            + "; ".join(f"{name} {why}" for name, why in missing.items())
            + ".",
            field="override",
            hint="Say in `override` why it may be official all the same.",
            data={"failings": missing},
        )
    values = {"promoted_by": user, "promoted_at": now(), "promotion_reason": reason}
    if not Impl.objects.filter(pk=impl.pk, official=False).update(official=True, **values):
        raise StandingUnchanged("This scorer is official already.")
    _tell(user, Act.PROMOTE, impl, reason, {"checks": checks_of(impl.proof), "failings": missing, "override": override})
    impl.refresh_from_db()
    return impl


@transaction.atomic
def demote(user: User, impl: Impl, reason: str) -> Impl:
    """The scorer is no longer official; runs with it stay as they are. Raises as promote does."""
    _admin(user)
    reason = _words(reason, "reason")
    if not Impl.objects.filter(pk=impl.pk, official=True).update(official=False):
        raise StandingUnchanged("This scorer is not official.")
    _tell(user, Act.DEMOTE, impl, reason, {})
    impl.refresh_from_db()
    return impl


def acts_on(*impl_ids: str) -> list[AdminAct]:
    """All that admins did to these scorers, newest first."""
    return list(AdminAct.objects.filter(subject__in=impl_ids).order_by("-id"))


def _admin(user: User) -> None:
    if not (user.is_active and user.is_staff):
        raise NotAllowed("Only an admin of this installation may do that.")


def _words(text: str, field: str, *, needed: bool = True) -> str:
    said = text.strip()
    if needed and not said:
        raise BenchwrightError("Say why.", code="invalid_request", field=field, hint=f"`{field}` must be words.")
    if len(said) > MOST_WORDS:
        raise BenchwrightError(f"At most {MOST_WORDS} characters.", code="invalid_request", field=field)
    return said


def _tell(user: User, act: Act, impl: Impl, reason: str, data: dict[str, Any]) -> None:
    AdminAct.objects.create(act=act, subject=impl.pk, by=user.username, user_id=user.pk, reason=reason, data=data)

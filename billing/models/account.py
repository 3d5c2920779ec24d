"""People and the accounts that own what they make."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models

from billing.vocabulary import MemberRole


class User(AbstractUser):
    """A person who signs in. What they make belongs to an Account, so that people can come and go."""

    class Meta:
        db_table = "users"


class Account(models.Model):
    """A person's or an organisation's: every owned row points here."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    personal = models.BooleanField(default=True)
    plan = models.CharField(max_length=20, default="local")
    markup = models.DecimalField(max_digits=6, decimal_places=4, default=0)
    default_driver = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "accounts"

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person in one account. The role says what they may do there."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=[(r.value, r.value) for r in MemberRole], default=MemberRole.OWNER)

    class Meta:
        db_table = "memberships"
        constraints = [models.UniqueConstraint(fields=["account", "user"], name="one_membership_per_account")]

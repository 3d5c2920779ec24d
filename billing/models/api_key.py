"""Ways in that are not a password: API keys and one-time sign-in links. Only hashes are kept."""

from __future__ import annotations

from django.db import models


class ApiKey(models.Model):
    """One key of one account. `prefix` is for people to recognise it; the key itself is shown once and never stored."""

    account = models.ForeignKey("billing.Account", models.CASCADE, related_name="api_keys")
    user = models.ForeignKey("billing.User", models.CASCADE)
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16)
    sha256 = models.CharField(max_length=64, unique=True)
    read_only = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "api_keys"


class SignInLink(models.Model):
    """A link that signs one person in, once."""

    user = models.ForeignKey("billing.User", models.CASCADE)
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "sign_in_links"

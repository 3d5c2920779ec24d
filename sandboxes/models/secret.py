"""Provider secrets, encrypted with a key derived from the installation's secret."""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.db import models


def _box() -> Fernet:
    return Fernet(
        base64.urlsafe_b64encode(hashlib.sha256(b"provider-secrets\0" + settings.SECRET_KEY.encode()).digest())
    )


class ProviderSecret(models.Model):
    """One secret. `run_id` set: given with one launch and used by that run alone. The value is write-only."""

    account = models.ForeignKey("billing.Account", models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=80)
    host_pattern = models.CharField(max_length=260, blank=True)
    ciphertext = models.BinaryField()
    run_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "provider_secrets"
        indexes = [models.Index(fields=["run_id"], name="secret_of_run")]

    def seal(self, value: str) -> None:
        """Encrypts; call before save."""
        self.ciphertext = _box().encrypt(value.encode())

    def open(self) -> str | None:
        """The value, or None when the installation's secret key has changed since."""
        try:
            return _box().decrypt(bytes(self.ciphertext)).decode()
        except InvalidToken:
            return None

"""Signatures of this installation: Ed25519, with a key that is derived from the secret key and so never stored."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from benchwright.lib.canonical import canonical

ALGORITHM = "Ed25519"
_PURPOSE = b"benchwright receipts 1"  # another purpose would be another key


def _key() -> Ed25519PrivateKey:
    derived = HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(settings.SECRET_KEY.encode())
    return Ed25519PrivateKey.from_private_bytes(derived)


def _public(key: Ed25519PrivateKey) -> dict[str, str]:
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {
        "algorithm": ALGORITHM,
        "key_id": hashlib.sha256(raw).hexdigest()[:16],
        "public_key": base64.b64encode(raw).decode(),
    }


def public_key() -> dict[str, str]:
    """`algorithm`, `public_key` (32 bytes, base64), `key_id` (first 16 hex digits of its SHA-256)."""
    return _public(_key())


def sign(value: Any) -> dict[str, str]:
    """The public key with `signature` (64 bytes, base64) over the canonical text of `value`. The same value and secret
    give the same signature.
    """
    key = _key()
    return {**_public(key), "signature": base64.b64encode(key.sign(canonical(value).encode())).decode()}

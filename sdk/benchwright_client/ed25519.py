"""Checks an Ed25519 signature (RFC 8032) with the standard library alone, so that a receipt can be checked anywhere.

Checking handles nothing secret, so that it takes milliseconds and not always the same time does no harm. There is no
signing here.
"""

from __future__ import annotations

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)

# A point as (X, Y, Z, T) with x = X / Z, y = Y / Z, x * y = T / Z.
Point = tuple[int, int, int, int]
ZERO: Point = (0, 1, 1, 0)


def _x_of(y: int, odd: bool) -> int | None:
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    if square == 0:
        return None if odd else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P:
        return None
    return x if bool(x & 1) == odd else P - x


def _decode(data: bytes) -> Point | None:
    number = int.from_bytes(data, "little")
    y, odd = number & (2**255 - 1), bool(number >> 255)
    x = _x_of(y, odd) if y < P else None
    return None if x is None else (x, y, 1, x * y % P)


def _add(a: Point, b: Point) -> Point:
    m, n = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    t, z = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = n - m, z - t, z + t, n + m
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _times(factor: int, point: Point) -> Point:
    out = ZERO
    while factor:
        if factor & 1:
            out = _add(out, point)
        point = _add(point, point)
        factor >>= 1
    return out


def _same(a: Point, b: Point) -> bool:
    return not (a[0] * b[2] - b[0] * a[2]) % P and not (a[1] * b[2] - b[1] * a[2]) % P


def _base() -> Point:
    y = 4 * pow(5, -1, P) % P
    x = _x_of(y, False)
    assert x is not None
    return (x, y, 1, x * y % P)


BASE = _base()


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` (64 bytes) over `message` was made with the secret half of `public_key` (32 bytes)."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key, nonce = _decode(public_key), _decode(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or nonce is None or scalar >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % ORDER
    return _same(_times(scalar, BASE), _add(nonce, _times(challenge, key)))

"""Exact decimals in and out; a float never holds money. Unknown (None) stays unknown through every sum."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

PLACES = Decimal("0.000000000001")  # 12 places, as stored


def usd(value: str | int | Decimal | None) -> Decimal | None:
    """Dollars from text or a whole number. Raises ValueError on anything that is not a finite number."""
    if value is None:
        return None
    if isinstance(value, float):
        raise ValueError("a float can't hold money: give text")
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise ValueError(f"{value!r} is not an amount") from None
    if not number.is_finite():
        raise ValueError(f"{value!r} is not an amount")
    return number.quantize(PLACES)


def total(parts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum, or None when any part is unknown."""
    out = Decimal(0)
    for part in parts:
        if part is None:
            return None
        out += part
    return out


def text(value: Decimal | None) -> str | None:
    """A plain decimal string without an exponent, trailing zeros removed."""
    if value is None:
        return None
    out = format(value.normalize(), "f")
    return "0" if out in {"-0", ""} else out

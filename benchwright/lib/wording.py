"""Numbers as people read them. Unknown is said, never shown as zero."""

from __future__ import annotations

import datetime as dt
from decimal import ROUND_HALF_EVEN, Decimal

UNKNOWN = "unknown"
DASH = "\u2013"
MINUS = "\u2212"


def usd(amount: Decimal | str | int | None) -> str:
    """Dollars: two places from a dollar up, four from a cent, else three significant figures."""
    if amount is None or amount == "":
        return UNKNOWN
    value = Decimal(amount)
    if value == 0:
        return "$0.00"
    size = abs(value)
    if size >= 1:
        places = 2
    elif size >= Decimal("0.01"):
        places = 4
    else:
        places = min(12, 2 - size.adjusted())
    rounded = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    text = f"{abs(rounded):,f}"
    if places > 2:
        head, _, tail = text.partition(".")
        text = f"{head}.{tail.rstrip('0').ljust(2, '0')}"
    return f"{MINUS if rounded < 0 else ''}${text}"


def percent(share: float | None, places: int = 1) -> str:
    """A share in [0, 1] as a percentage; a dash when there is none."""
    if share is None:
        return DASH
    return f"{100 * share:.{places}f}%"


def count(number: int | float | None) -> str:
    """A whole number with thousands separators; a dash when there is none."""
    if number is None:
        return DASH
    return f"{number:,.0f}"


def duration(ms: float | None) -> str:
    """Milliseconds as the two largest units that matter."""
    if ms is None:
        return DASH
    if ms < 1:
        return "<1 ms"
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24} h"


def size(number: int | None) -> str:
    """Bytes in decimal units."""
    if number is None:
        return DASH
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def ago(then: dt.datetime, now: dt.datetime) -> str:
    """How long ago, in one unit; a date once it is more than a month."""
    seconds = (now - then).total_seconds()
    if seconds < 45:
        return "just now"
    if seconds < 3600:
        return f"{max(1, round(seconds / 60))} min ago"
    if seconds < 86_400:
        return f"{round(seconds / 3600)} h ago"
    if seconds < 30 * 86_400:
        return f"{round(seconds / 86_400)} d ago"
    return f"{then:%d %b %Y}"

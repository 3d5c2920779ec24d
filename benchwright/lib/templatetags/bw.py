"""What templates can say: numbers in words, marks, icons, the interval picture, folded text."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from benchwright.lib import wording
from benchwright.lib.inert import inert as make_inert
from benchwright.lib.inert import readable as make_readable

register = template.Library()

FOLD_CHARS = 1200  # longer text starts folded

PILL_ICONS = {
    "running": "spinner",
    "ok": "check",
    "error": "cross",
    "killed": "stop",
    "paused": "pause",
    "waiting": "hand",
    "halted": "octagon",
}
OUTCOMES = {
    "p": ("pass", "Pass"),
    "f": ("fail", "Fail"),
    "e": ("err", "Error"),
    "r": ("run", "Running"),
    ".": ("idle", "Not started"),
}


@register.filter
def usd(value: Decimal | None) -> str:
    """Dollars, or the word unknown."""
    return wording.usd(value)


@register.filter
def pct(value: float | None, places: int = 1) -> str:
    """A share in [0, 1] as a percentage."""
    return wording.percent(value, places)


@register.filter
def count(value: int | None) -> str:
    """A whole number with separators."""
    return wording.count(value)


@register.filter
def duration(ms: float | None) -> str:
    """Milliseconds in words."""
    return wording.duration(ms)


@register.filter
def filesize(value: int | None) -> str:
    """Bytes in words."""
    return wording.size(value)


@register.filter
def score(value: float | None) -> str:
    """A task's score without needless zeros."""
    return wording.DASH if value is None else f"{value:.4g}"


@register.filter
def short(value: object, length: int = 12) -> str:
    """The first hex digits of a digest or an id."""
    return str(value or "")[:length]


@register.filter
def inert(value: object) -> str:
    """Untrusted text in which nothing is invisible or active; the template still escapes it."""
    return make_inert(value)


@register.filter
def readable(value: object) -> str:
    """Untrusted text or JSON, laid out for reading; the template still escapes it."""
    return make_readable(value)


@register.filter
def wordy(value: object) -> str:
    """A word of the API as words: underscores become spaces."""
    return str(value).replace("_", " ")


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """An icon from the sprite at the top of the page. Decorative: the words stand beside it."""
    return format_html('<svg class="icon {}" aria-hidden="true"><use href="#i-{}"/></svg>', extra, name)


@register.simple_tag
def when(value: dt.datetime | None) -> SafeString | str:
    """A moment: how long ago in words, exact in the tooltip."""
    if value is None:
        return wording.DASH
    return format_html(
        '<time class="nowrap" datetime="{}" title="{}" data-ago>{}</time>',
        value.isoformat(),
        f"{value.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC",
        wording.ago(value, timezone.now()),
    )


@register.inclusion_tag("components/pill.html")
def pill(display_status: str, large: bool = False) -> dict[str, Any]:
    """The status of a run: a word, a colour and a sign."""
    return {"status": display_status, "icon_name": PILL_ICONS.get(display_status, "octagon"), "large": large}


@register.inclusion_tag("components/mark.html")
def mark(outcome: str | None, word: str | None = None, bare: bool = False) -> dict[str, Any]:
    """The sign of an outcome: shape and colour, with its word unless `bare`."""
    first = (outcome or ".")[:1]
    kind, label = OUTCOMES.get(first, OUTCOMES["."])
    return {"kind": kind, "label": label if word is None else word, "bare": bare}


@register.inclusion_tag("components/interval.html")
def interval(shown: Any, mini: bool = False) -> dict[str, Any]:
    """The score with its interval and error band on a 0 to 100 % axis. `shown`: has accuracy, low, high."""

    def at(value: float | None) -> float | None:
        return None if value is None else round(min(1.0, max(0.0, value)) * 100, 2)

    low, high = at(getattr(shown, "low", None)), at(getattr(shown, "high", None))
    band_low, band_high = at(getattr(shown, "band_low", None)), at(getattr(shown, "band_high", None))
    point = at(getattr(shown, "accuracy", None))
    return {
        "mini": mini,
        "point": point,
        "low": low,
        "high": high,
        "band": None if band_low is None or band_high is None or band_high - band_low < 0.05 else band_low,
        "band_width": None if band_low is None or band_high is None else round(band_high - band_low, 2),
    }


@register.filter
def position(share: float | None) -> str:
    """A share in [0, 1] as a coordinate on a picture that is 100 wide, in any language."""
    return "0" if share is None else f"{min(1.0, max(0.0, share)) * 100:.2f}"


@register.inclusion_tag("components/text.html")
def longtext(value: object, label: str, plain: bool = False, none: str = "Nothing was recorded.") -> dict[str, Any]:
    """Untrusted text with a copy button, folded when it is long."""
    text = make_readable(value)
    return {
        "text": text,
        "label": label,
        "plain": plain,
        "none": none,
        "folded": len(text) > FOLD_CHARS,
        "preview": re.sub(r"\s+", " ", text[:160]),
        "chars": len(text),
    }

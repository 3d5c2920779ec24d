"""Numbers in words: exact where it matters, unknown where it is."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from benchwright.lib import wording


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "unknown"),
        (Decimal(0), "$0.00"),
        (Decimal("1234.5"), "$1,234.50"),
        (Decimal("0.4182"), "$0.4182"),
        (Decimal("0.1"), "$0.10"),
        (Decimal("0.00312"), "$0.00312"),
        (Decimal("0.000000123456"), "$0.000000123"),
        (Decimal("-2"), "\u2212$2.00"),
    ],
)
def test_dollars_show_as_many_places_as_they_need(amount: Decimal | None, text: str) -> None:
    assert wording.usd(amount) == text


def test_a_missing_share_is_a_dash_and_not_zero() -> None:
    assert wording.percent(None) == "\u2013"
    assert wording.percent(0.7283) == "72.8%"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.2, "<1 ms"),
        (820, "820 ms"),
        (3400, "3.4 s"),
        (72_000, "1 min 12 s"),
        (3_720_000, "1 h 02 min"),
        (None, "\u2013"),
    ],
)
def test_durations_use_the_units_that_matter(ms: float | None, text: str) -> None:
    assert wording.duration(ms) == text


def test_a_moment_older_than_a_month_is_a_date() -> None:
    now = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
    assert wording.ago(now - dt.timedelta(seconds=5), now) == "just now"
    assert wording.ago(now - dt.timedelta(hours=5), now) == "5 h ago"
    assert wording.ago(now - dt.timedelta(days=60), now) == "02 Oct 2026"

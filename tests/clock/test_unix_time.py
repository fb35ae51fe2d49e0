"""Datetimes and microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from zenlake.clock.unix_time import datetime_at, micros_of


@pytest.mark.parametrize(
    ("when", "micros"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), -1),
        (datetime(2026, 11, 19, 12, 0, 0, 5, UTC), 1_795_089_600_000_005),
        (datetime(1, 1, 1, tzinfo=UTC), -62_135_596_800_000_000),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), 253_402_300_799_999_999),
    ],
)
def test_a_moment_is_a_whole_number_of_microseconds(when: datetime, micros: int) -> None:
    assert (micros_of(when), datetime_at(micros)) == (micros, when)


def test_the_zone_of_a_moment_counts() -> None:
    assert micros_of(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))) == -3600 * 10**6


def test_a_number_beyond_the_calendar_is_no_moment() -> None:
    with pytest.raises(OverflowError):
        datetime_at(253_402_300_800_000_000)

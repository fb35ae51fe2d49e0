"""How much of a disk the journal takes, and when the disk is full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.supervise.disk import Disk, Trend, default_budget, forecast, reserve

GB = 10**9
HALF = Disk(total=100 * GB, free=50 * GB, journal=0)


def test_the_journal_gets_a_fifth_of_a_disk_with_room() -> None:
    assert default_budget(HALF) == 20 * GB


def test_on_a_disk_that_is_nearly_full_it_gets_a_part_of_what_is_left() -> None:
    assert default_budget(Disk(100 * GB, 10 * GB)) == 4 * GB
    assert default_budget(Disk(100 * GB, 10 * GB, journal=30 * GB)) == 16 * GB


@pytest.mark.parametrize(
    ("budget", "journal_rate", "other_rate", "seconds"),
    [
        (None, 0.0, 0.0, None),
        (None, 1e6, 0.0, 48_000),
        (20 * GB, 1e6, 0.0, None),
        (20 * GB, 1e6, 1e6, 20_000 + 8_000),
        (40 * GB, 1e6, 1e6, 24_000),
        (20 * GB, -5.0, -5.0, None),
    ],
)
def test_the_journal_grows_to_its_budget_and_the_rest_for_ever(
    budget: int | None, journal_rate: float, other_rate: float, seconds: float | None
) -> None:
    assert forecast(HALF, budget, journal_rate, other_rate) == seconds


def test_a_disk_counts_as_full_before_its_last_byte() -> None:
    assert reserve(HALF) == 2 * GB
    assert forecast(Disk(100 * GB, 2 * GB), None, 0.0, 0.0) == 0


@given(st.integers(0, 50), st.integers(1, 30), st.floats(0, 1e9), st.floats(0, 1e9))
def test_more_data_never_fills_a_disk_later(
    journal: int, budget: int, journal_rate: float, other_rate: float
) -> None:
    disk = Disk(100 * GB, 40 * GB, journal * GB)
    slow = forecast(disk, budget * GB, journal_rate, other_rate)
    fast = forecast(disk, budget * GB, journal_rate, other_rate * 2 + 1)
    assert slow is None or (fast is not None and fast <= slow * (1 + 1e-9))


def test_a_trend_knows_nothing_for_a_minute_and_forgets_after_an_hour() -> None:
    trend = Trend()
    for second in range(60):
        trend.add(second, second * 5)
    assert trend.rate is None
    trend.add(60, 300)
    assert trend.rate == 5
    for second in range(60, 10_000, 7):
        trend.add(second, 300)
    assert trend.rate == 0
    assert len(trend._seen) <= 2 * 3600 / 10 + 2

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.rows import rows
from zenlake.errors import LocalError, SelectorError
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.reading.times import Times, micros_of
from zenlake.keys import Instant, TimeBound, TimeRange

NOW = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (None, None),
        ((1, 2), (1, 2)),
        ((None, 5), (None, 5)),
        ("[now(-1s)..]", (1_699_999_999_000_000, None)),
        ("[..now()[", (None, 1_700_000_000_000_000)),
        ("[..now()]", (None, 1_700_000_000_000_001)),
        ("]now()..]", (1_700_000_000_000_001, None)),
        ((datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None), (1_000_000, None)),
        (
            (
                datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
                datetime(1970, 1, 2, tzinfo=UTC),
            ),
            (0, 86_400_000_000),
        ),
    ],
)
def test_ranges_are_written_as_text_as_datetimes_or_as_microseconds(
    told: Times, meant: object
) -> None:
    assert micros_of(told, NOW) == meant


def test_a_datetime_without_a_zone_is_local() -> None:
    local = datetime(2026, 7, 1, 12)
    assert micros_of((local, None), NOW) == (int(local.timestamp()) * 10**6, None)


@pytest.mark.parametrize("wrong", [5, (1,), (1, 2, 3), ("now", None), (1.5, None), (True, None)])
def test_what_is_no_range_is_refused(wrong: Times) -> None:
    with pytest.raises(LocalError, match=r"is no (range|time)"):
        micros_of(wrong, NOW)


def test_text_that_is_no_range_is_refused() -> None:
    with pytest.raises(SelectorError):
        micros_of("last week", NOW)


@given(
    st.sampled_from("[]"), st.integers(-5000, 5000), st.integers(0, 5000), st.sampled_from("[]"),
    st.integers(-12, 12),
)  # fmt: skip
def test_a_whole_microsecond_is_in_the_range_if_its_time_is(
    left: str, start: int, length: int, right: str, micros: int
) -> None:
    written = TimeRange(
        TimeBound(Instant(start), left == "["), TimeBound(Instant(start + length), right == "]")
    )
    low, high = micros_of(written, 0) or (None, None)
    inside = (low is None or low <= micros) and (high is None or micros < high)
    assert inside == written.contains(micros * 1000, 0)


def test_a_scan_takes_what_the_command_line_takes(tmp_path: Path) -> None:
    now = time.time_ns() // 1000
    with JournalWriter.open(tmp_path / "j") as writer:
        writer.append(0, rows(["old", "new"], time=[now - 600 * 10**6, now]))
    journal = Journal.open(tmp_path / "j")

    def keys(when: Times) -> list[str]:
        return [key for batch in journal.scan(time=when) for key in batch["key"].to_pylist()]

    assert keys("[now(-5m)..]") == ["new"]
    assert keys("[..now(-5m)]") == ["old"]
    since = datetime.now(UTC) - timedelta(minutes=5)
    assert keys((since, None)) == ["new"]
    assert keys((None, since)) == ["old"]

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.journal.rows import rows
from zenlake.errors import LocalError, SelectorError
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.reading.times import Times, bounds_of

NOW = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (None, (None, None)),
        ((1, 2), (1, 2)),
        ((None, 5), (None, 5)),
        ("[now(-1s)..]", (1_699_999_999_000_000, None)),
        ("[..now()[", (None, 1_700_000_000_000_000)),
        ("[..now()]", (None, 1_700_000_000_000_001)),
        ("]now()..]", (1_700_000_000_000_000, None)),
        ((datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None), (1_000_000, None)),
        (
            (
                datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
                datetime(1970, 1, 2, tzinfo=UTC),
            ),
            (None, 86_400_000_000),
        ),
    ],
)
def test_ranges_are_written_as_text_as_datetimes_or_as_microseconds(
    told: Times, meant: object
) -> None:
    assert bounds_of(told, NOW).micros == meant


def test_a_datetime_without_a_zone_is_local() -> None:
    local = datetime(2026, 7, 1, 12)
    assert bounds_of((local, None), NOW).micros == (int(local.timestamp()) * 10**6, None)


@pytest.mark.parametrize("wrong", [5, (1,), (1, 2, 3), ("now", None), (1.5, None), (True, None)])
def test_what_is_no_range_is_refused(wrong: Times) -> None:
    with pytest.raises(LocalError, match=r"is no (range|time)"):
        bounds_of(wrong, NOW)


def test_text_that_is_no_range_is_refused() -> None:
    with pytest.raises(SelectorError):
        bounds_of("last week", NOW)


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

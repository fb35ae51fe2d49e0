"""A sample is inside a range in one form if it is in every other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zenlake.clock import NTP64
from zenlake.journal.ingest.rows import hlc_nanos
from zenlake.journal.reading.filter import KeyChoice, RowFilter
from zenlake.keys import ResolvedRange, TimeRange
from zenlake.lake.history.file_reader import RowRange
from zenlake.recorded.time_bounds import ALL_TIME, HLC_BIAS, TimeBounds, last_of

TOP = (1 << 64) - 1
RAW = st.integers(0, TOP) | st.builds(
    lambda second, below: second << 32 | below,
    st.integers(0, 2**32 - 1),
    st.integers(0, 8) | st.integers(2**32 - 8, 2**32 - 1),
)
NEAR = st.integers(-2, 2) | st.integers(-2_000, 2_000) | st.integers(-(1 << 62), 1 << 62)


def in_journal(raw: int, bounds: TimeBounds) -> bool:
    """Whether a scan of a journal keeps a row of this time."""
    hlc = raw - HLC_BIAS
    chosen = RowFilter(time=bounds, columns=["hlc"])
    batch = pa.record_batch({"hlc": pa.array([hlc], pa.int64())}, schema=chosen.schema)
    kept = chosen.apply(batch, KeyChoice(()), timed=True, hide=False) is not None
    # What is decided for a whole block is decided the same way.
    assert chosen.meets_time(hlc, hlc) == chosen.within_time(hlc, hlc) == kept
    return kept


@given(RAW, NEAR, NEAR, st.booleans(), st.booleans(), st.booleans(), st.booleans())
@example(0, 0, 0, True, True, True, True)
@example(0, 0, 0, False, True, True, True)
@example(TOP, 0, 0, True, True, True, True)
@example(TOP, 1, 2, True, True, True, True)
def test_a_time_is_in_a_range_in_every_form_or_in_none(
    raw: int, start: int, end: int, opens: bool, closes: bool, bottom: bool, top: bool
) -> None:
    nanos = NTP64.from_raw(raw).as_nanos()
    low, high = (nanos + start if bottom else None), (nanos + end if top else None)
    range = ResolvedRange(low, high, opens, closes)
    bounds = TimeBounds.of(range)
    inside = range.contains(nanos)
    assert (bounds.first <= raw <= bounds.last) == inside
    assert (bounds.hlc[0] <= raw - HLC_BIAS <= bounds.hlc[1]) == inside
    assert in_journal(raw, bounds) == inside
    sought = RowRange.within("**", range)
    assert (sought.low <= raw - HLC_BIAS <= sought.high) == inside
    since, until = bounds.micros
    touched = (since is None or since <= nanos // 1000) and (until is None or nanos // 1000 < until)
    assert touched or not inside


@given(RAW, st.none() | NEAR, st.none() | NEAR)
def test_a_time_is_between_two_microseconds_in_every_form_or_in_none(
    raw: int, start: int | None, end: int | None
) -> None:
    micros = NTP64.from_raw(raw).as_nanos() // 1000
    low, high = (None if one is None else micros + one for one in (start, end))
    bounds = TimeBounds.of_micros(low, high)
    inside = (low is None or low <= micros) and (high is None or micros < high)
    assert (bounds.first <= raw <= bounds.last) == inside
    assert in_journal(raw, bounds) == inside
    since, until = bounds.micros
    assert ((since is None or since <= micros) and (until is None or micros < until)) == inside


@given(RAW)
def test_the_last_time_of_a_nanosecond_is_followed_by_one_of_a_later_nanosecond(raw: int) -> None:
    nanos = NTP64.from_raw(raw).as_nanos()
    last = last_of(nanos)
    assert raw <= last
    assert NTP64.from_raw(last).as_nanos() == nanos
    assert last == TOP or NTP64.from_raw(last + 1).as_nanos() > nanos
    assert int(hlc_nanos(np.array([last - HLC_BIAS], np.int64))[0]) == nanos


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("[..]", [0, 1, 2]),
        ("[1970-01-01T00:00:01Z..1970-01-01T00:00:02Z]", [1, 2]),
        ("]1970-01-01T00:00:01Z..1970-01-01T00:00:02Z]", [2]),
        ("[1970-01-01T00:00:01Z..1970-01-01T00:00:02Z[", [1]),
        ("[..1969-12-31T00:00:00Z]", []),
        ("]1969-12-31T00:00:00Z..]", [0, 1, 2]),
        ("[2200-01-01T00:00:00Z..]", []),
        ("[..2200-01-01T00:00:00Z]", [0, 1, 2]),
    ],
)
def test_a_range_of_time_is_exact(text: str, chosen: list[int]) -> None:
    bounds = TimeBounds.of(TimeRange.parse(text).resolve(0))
    assert [n for n in range(3) if bounds.first <= n << 32 <= bounds.last] == chosen
    assert bounds.nothing == (not chosen)


def test_a_sample_at_the_very_start_of_a_range_is_in_it() -> None:
    """Its nanosecond has several times of the wire, and a clock gives the last of them."""
    start = 1_700_000_000_123_456_789
    bounds = TimeBounds.of(ResolvedRange(start))
    assert bounds.first <= int(NTP64.from_nanos(start)) <= bounds.last
    assert TimeBounds.of(ResolvedRange(start, start_inclusive=False)).first > int(
        NTP64.from_nanos(start)
    )


def test_without_ends_it_is_all_time() -> None:
    assert TimeBounds.of(None) == TimeBounds.of(ResolvedRange()) == ALL_TIME
    assert TimeBounds.of_micros(None, None) == ALL_TIME
    assert ALL_TIME.micros == (None, None)
    assert ALL_TIME.hlc == (-(1 << 63), (1 << 63) - 1)

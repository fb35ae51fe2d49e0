from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zenlake.errors import SelectorError
from zenlake.keys import Instant, Now, ResolvedRange, TimeBound, TimeRange
from zenlake.keys.time_range import FURTHEST, UNITS

S = 1_000_000_000
JUNE = int(datetime(2022, 6, 30, 1, 2, 3, tzinfo=UTC).timestamp()) * S


def only_start(text: str) -> Instant | Now:
    bound = TimeRange.parse(f"[{text}..]").start
    assert bound is not None
    return bound.at


@pytest.mark.parametrize(
    ("text", "start_inclusive", "end_inclusive"),
    [
        ("[now()..now()]", True, True),
        ("]now()..now()]", False, True),
        ("[now()..now()[", True, False),
        ("]now()..now()[", False, False),
    ],
)
def test_a_bracket_turned_outwards_excludes_its_end(
    text: str, start_inclusive: bool, end_inclusive: bool
) -> None:
    found = TimeRange.parse(text)
    assert found == TimeRange(TimeBound(Now(), start_inclusive), TimeBound(Now(), end_inclusive))
    assert found.contains(5, now_ns=5) is (start_inclusive and end_inclusive)
    assert str(found) == text


def test_an_end_left_out_is_open() -> None:
    assert TimeRange.parse("[..]") == TimeRange()
    assert TimeRange.parse("]..[") == TimeRange()
    assert TimeRange().contains(-(10**30), 0)
    assert str(TimeRange()) == "[..]"
    assert TimeRange.parse("[now()..]").contains(10**30, now_ns=0)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("1.2", 1_200_000_000),
        ("123.45", 123_450_000_000),
        ("1u", 1_000),
        ("1.5ms", 1_500_000),
        ("100ms", 100_000_000),
        ("10s", 10 * S),
        ("0.1s", 100_000_000),
        ("1.1m", 66 * S),
        ("1.5h", 5_400 * S),
        ("2d", 172_800 * S),
        ("0.1w", 60_480 * S),
        (".5", 500_000_000),
        ("5.", 5 * S),
        ("1e3ms", S),
        ("2E-3", 2_000_000),
        ("0.000000001", 1),
        ("1e-999999", 0),
        ("0e999999", 0),
        ("9007199254740993u", 9007199254740993 * 1000),
    ],
)
def test_durations_are_exact(text: str, ns: int) -> None:
    assert only_start(f"now({text})") == Now(ns)
    assert only_start(f"now(-{text})") == Now(-ns)
    assert only_start(f"now(+{text})") == Now(ns)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2022-06-30T01:02:03.226942997Z", JUNE + 226_942_997),
        ("2022-06-30T01:02:03Z", JUNE),
        ("2022-06-30T01:02:03", JUNE),
        ("2022-06-30 01:02:03Z", JUNE),
        ("2022-06-30 01:02:03.5", JUNE + 500_000_000),
        ("2022-06-30T01:02:03.1234567899Z", JUNE + 123_456_789),
        ("1970-01-01T00:00:00Z", 0),
        ("2016-12-31T23:59:60Z", int(datetime(2017, 1, 1, tzinfo=UTC).timestamp()) * S),
        ("2024-02-29T00:00:00Z", int(datetime(2024, 2, 29, tzinfo=UTC).timestamp()) * S),
    ],
)
def test_instants_are_utc_with_t_or_space_and_optional_fraction_and_z(text: str, ns: int) -> None:
    assert only_start(text) == Instant(ns)


def test_a_length_counts_from_the_start() -> None:
    assert TimeRange.parse("]now(-1h);30m[") == TimeRange.parse("]now(-1h)..now(-30m)[")
    assert TimeRange.parse("[2022-06-30T01:02:03Z;1.5s]") == TimeRange(
        TimeBound(Instant(JUNE)), TimeBound(Instant(JUNE + 1_500_000_000))
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[.]",
        "[;]",
        "[;1h]",
        "[now()]",
        "[now();]",
        "[now();-1h]",
        "now()..now()",
        "(now()..)",
        "[1h..]",
        "[2020-11-05..]",
        "[2020-13-05T00:00:00Z..]",
        "[2023-02-29T00:00:00Z..]",
        "[2020-01-01T24:00:00Z..]",
        "[2020-01-01T00:00:00+01:00..]",
        "[now(--1h)..]",
        "[now(inf)..]",
        "[now(nan)..]",
        "[now(1y)..]",
        "[now(1 h)..]",
        "[now(.)..]",
        "[now(1_0)..]",
        "[now(٣)..]",
        "[ now()..]",
        "[now(" + "9" * 300 + ")..]",
    ],
)
def test_a_refusal_says_what_to_write(text: str) -> None:
    with pytest.raises(SelectorError, match="write"):
        TimeRange.parse(text)


def test_an_offset_beyond_every_clock_is_no_bound() -> None:
    for huge in ("1e30w", "1e999999999", "9" * 100):
        found = TimeRange.parse(f"[now(-{huge})..now({huge})]")
        assert found.resolve(S) == ResolvedRange()
    far = TimeRange.parse("[now(-100000w)..now()]")
    assert far.resolve(S).start_ns == S - 100_000 * UNITS["w"]


def test_resolution_fixes_now() -> None:
    hour = TimeRange.parse("[now(-1h)..now()[")
    now = JUNE
    resolved = hour.resolve(now)
    assert resolved == ResolvedRange(now - 3_600 * S, now, True, False)
    assert resolved.contains(now - 1)
    assert resolved.contains(now - 3_600 * S)
    assert not resolved.contains(now)
    assert not resolved.contains(now - 3_600 * S - 1)


@pytest.mark.parametrize(
    "text",
    [
        "[now(-1h)..now(2d)]",
        "]now(-1.500000001s)..]",
        "[..now(250ms)[",
        "[2022-06-30T01:02:03.226942997Z..2022-06-30T01:02:04Z]",
        "[2022-06-30T01:02:03.500Z..now(3u)[",
        "[0033-01-01T00:00:00Z..]",
    ],
)
def test_canonical_text_is_printed_back(text: str) -> None:
    assert str(TimeRange.parse(text)) == text


def test_a_moment_past_the_year_9999_has_no_text_and_says_so() -> None:
    late = TimeRange.parse("[9999-12-31T23:59:59Z;1w]")
    assert late.contains(JUNE, JUNE) is False
    with pytest.raises(SelectorError, match="leave that bound open"):
        str(late)


moments = st.one_of(
    st.builds(Now, st.integers(-FURTHEST, FURTHEST)),
    st.builds(Instant, st.integers(-S * 10**10, S * 10**11)),
)
bounds = st.one_of(st.none(), st.builds(TimeBound, moments, st.booleans()))
ranges = st.builds(TimeRange, bounds, bounds)


@given(ranges)
def test_printing_and_reading_agree_to_the_nanosecond(range_: TimeRange) -> None:
    assert TimeRange.parse(str(range_)) == range_


@given(ranges, st.integers(0, S * 10**10), st.integers(0, S * 10**10))
def test_belonging_is_the_same_before_and_after_resolution(
    range_: TimeRange, time_ns: int, now_ns: int
) -> None:
    resolved = range_.resolve(now_ns)
    assert range_.contains(time_ns, now_ns) == resolved.contains(time_ns)
    if resolved.start_ns is not None:
        assert resolved.contains(resolved.start_ns - 1) is False


@given(st.decimals(0, 10**9, places=6), st.sampled_from(list(UNITS)))
def test_any_decimal_is_the_nearest_nanosecond(number: object, unit: str) -> None:
    assert only_start(f"now({number}{unit})") == Now(round(Fraction(str(number)) * UNITS[unit]))


pieces = st.sampled_from(
    ["", "now()", "now(-1h)", "now(", "2022-06-30T01:02:03Z", "1.5s", "-", "9e"]
)
ends = st.lists(pieces, max_size=2).map("".join)
almost_ranges = st.tuples(
    st.sampled_from("[]("), ends, st.sampled_from(["..", ";", "."]), ends, st.sampled_from("[])")
)


@given(almost_ranges)
@example(("[", "now(-1h)", ";", "1.5s", "["))
@example(("]", "", "..", "", "]"))
def test_almost_a_range_is_read_or_refused(parts: tuple[str, str, str, str, str]) -> None:
    text = "".join(parts)
    try:
        found = TimeRange.parse(text)
    except SelectorError:
        assert not {parts[0], parts[4]} <= {"[", "]"} or parts[1:4] != ("", "..", "")
        return
    assert TimeRange.parse(str(found)) == found
    assert {parts[0], parts[4]} <= {"[", "]"}
    assert (found.start is None) is (parts[1] == "")


@given(st.text(st.sampled_from("[]now().;-0129eZT: sm"), max_size=24))
def test_hostile_text_is_a_range_or_refused(text: str) -> None:
    try:
        found: object = TimeRange.parse(text)
    except SelectorError as refusal:
        found = str(refusal)
    assert found

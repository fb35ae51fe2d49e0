from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import NTP64
from zenlake.errors import TimestampError

TOP = (1 << 64) - 1
raws = st.one_of(
    st.integers(0, TOP),
    st.builds(
        lambda s, f: s << 32 | f, st.integers(0, 2**32 - 1), st.integers(2**32 - 8, 2**32 - 1)
    ),
)
nanos = st.integers(0, (1 << 32) * 10**9 - 1)


@pytest.mark.parametrize(
    ("seconds", "nanoseconds", "raw"),
    [
        (0, 0, 0),
        (1, 0, 1 << 32),
        (1, 500_000_000, 6442450944),
        (1, 1, 4294967300),
        (1, 999_999_999, 8589934587),
        (1, 1_999_999_999, 12884901883),
        (1_700_000_000, 123_456_789, 7301444403730242871),
    ],
)
def test_nanoseconds_become_the_unit_not_after_them(
    seconds: int, nanoseconds: int, raw: int
) -> None:
    moment = NTP64(seconds, nanoseconds)
    assert int(moment) == raw
    assert str(moment) == str(raw)
    assert moment.as_nanos() == seconds * 10**9 + nanoseconds


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("1970-01-01T00:00:00.000000000Z", 0),
        ("2023-11-14T22:13:20.123456789Z", 7301444403730242871),
        ("2106-02-07T06:28:15.999999999Z", 18446744073709551611),
    ],
)
def test_rfc3339_text_has_nine_decimals_and_comes_back(text: str, raw: int) -> None:
    assert int(NTP64.parse_rfc3339(text)) == raw
    assert NTP64.from_raw(raw).to_string_rfc3339_lossy() == text


@pytest.mark.parametrize(
    "text",
    [
        "2023-11-14T22:13:20Z",
        "2023-11-14t22:13:20.0z",
        "2023-11-14 22:13:20.000000000999Z",
        "2023-11-14T23:43:20+01:30",
        "2023-11-13T22:14:20-23:59",
    ],
)
def test_one_moment_has_many_spellings(text: str) -> None:
    assert NTP64.parse_rfc3339(text) == NTP64(1_700_000_000, 0)


def test_a_leap_second_is_told_as_the_one_before() -> None:
    assert NTP64.parse_rfc3339("2016-12-31T23:59:60Z") == NTP64(1483228799, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "123",
        "2023-11-14T22:13:20",
        "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13:20Z ",
        "2023-11-14T22:13:20Z\n",
        "2023-13-14T22:13:20Z",
        "2023-02-29T22:13:20Z",
        "2023-11-14T24:13:20Z",
        "2023-11-14T22:13:61Z",
        "2023-11-14T22:13:20+24:00",
        "0001-01-01T00:00:00+23:59",
        "1969-12-31T23:59:59Z",
        "2106-02-07T06:28:16Z",
        "9999-12-31T23:59:59-23:59",
        "２０２３-11-14T22:13:20Z",
        "2023-11-14T22:13:20." + "1" * 100_000 + "Z",
    ],
)
def test_text_that_names_no_moment_is_refused(text: str) -> None:
    with pytest.raises(TimestampError):
        NTP64.parse_rfc3339(text)


@pytest.mark.parametrize(("seconds", "nanoseconds"), [(-1, 0), (0, -1), (1 << 32, 0), (0, 1 << 63)])
def test_moments_outside_1970_to_2106_are_refused(seconds: int, nanoseconds: int) -> None:
    with pytest.raises(TimestampError):
        NTP64(seconds, nanoseconds)


@pytest.mark.parametrize("raw", [-1, 1 << 64])
def test_more_than_64_bits_are_refused(raw: int) -> None:
    with pytest.raises(TimestampError):
        NTP64.from_raw(raw)
    with pytest.raises(TimestampError):
        NTP64.from_1900(raw)


def test_a_datetime_needs_its_time_zone() -> None:
    with pytest.raises(TypeError, match="time zone"):
        NTP64.from_datetime(datetime(2023, 11, 14))
    east = datetime(2023, 11, 14, 1, 2, 3, 123456, tzinfo=timezone(timedelta(hours=2)))
    assert int(NTP64.from_datetime(east)) == 7301085872745271290
    assert NTP64.from_datetime(east).to_datetime() == east
    with pytest.raises(TimestampError):
        NTP64.from_datetime(datetime(1960, 1, 1, tzinfo=UTC))


def test_the_last_moment_stays_in_its_second() -> None:
    last = NTP64.from_raw(TOP)
    assert last.to_string_rfc3339_lossy() == "2106-02-07T06:28:15.999999999Z"
    assert last.as_nanos() == (1 << 32) * 10**9 - 1


def test_ntp_counts_from_1900_and_wraps_in_2036() -> None:
    # 70 years with 17 leap days (RFC 5905, figure 4).
    assert NTP64.from_1900(2_208_988_800 << 32) == NTP64(0, 0)
    assert NTP64(0, 0).to_1900() == 2_208_988_800 << 32
    second_era = datetime(2036, 2, 7, 6, 28, 16, tzinfo=UTC)
    assert NTP64.from_1900(0).to_datetime() == second_era


def test_a_moment_is_not_a_number() -> None:
    assert NTP64(1, 0) != 1 << 32
    with pytest.raises(TypeError):
        _ = NTP64(1, 0) < 5


@given(nanos)
def test_nanoseconds_survive_the_trip(count: int) -> None:
    moment = NTP64.from_nanos(count)
    assert moment.as_nanos() == count
    assert NTP64.parse_rfc3339(moment.to_string_rfc3339_lossy()) == moment
    assert moment.as_secs() * 10**9 + moment.subsec_nanos() == count


@given(raws)
def test_every_64_bits_are_a_moment_and_lose_less_than_a_nanosecond_as_text(raw: int) -> None:
    moment = NTP64.from_raw(raw)
    back = NTP64.parse_rfc3339(moment.to_string_rfc3339_lossy())
    assert abs(int(back) - raw) <= 4
    assert moment.to_datetime() <= datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC)
    assert NTP64.from_1900(moment.to_1900()) == moment
    assert pickle.loads(pickle.dumps(moment)) == moment
    assert eval(repr(moment)) == moment
    assert moment.as_secs_f64() == pytest.approx(raw / 2**32)


@given(raws, raws)
def test_order_is_the_order_of_the_bits_and_text_never_reverses_it(a: int, b: int) -> None:
    one, two = NTP64.from_raw(a), NTP64.from_raw(b)
    assert (one < two, one <= two, one > two, one >= two) == (a < b, a <= b, a > b, a >= b)
    if a < b:
        assert one.as_nanos() <= two.as_nanos()
        assert one.to_string_rfc3339_lossy() <= two.to_string_rfc3339_lossy()


@given(st.datetimes(datetime(1970, 1, 1), datetime(2106, 2, 7), timezones=st.just(UTC)))
def test_a_datetime_comes_back_exactly(when: datetime) -> None:
    assert NTP64.from_datetime(when).to_datetime() == when

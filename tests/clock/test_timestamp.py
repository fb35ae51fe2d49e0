from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import NTP64, Timestamp, ZenohId
from zenlake.errors import LocatorError, TimestampError

ids = st.binary(min_size=1, max_size=16).filter(any)
halves = st.integers(0, 2**32 - 1)
timestamps = st.builds(Timestamp, halves, ids, halves)
near = st.builds(
    Timestamp, st.integers(0, 2), st.sampled_from([b"\1", b"\2", b"\0\1"]), st.integers(0, 2)
)

SOME = Timestamp(NTP64(1_700_000_000, 123_456_789), b"\1\2")


def test_it_is_written_exactly_or_readably() -> None:
    assert str(SOME) == "7301444403730242871/201"
    assert SOME.to_string_rfc3339_lossy() == "2023-11-14T22:13:20.123456789Z/201"
    assert Timestamp.parse(str(SOME)) == SOME
    assert Timestamp.parse(SOME.to_string_rfc3339_lossy()) == SOME
    assert Timestamp.parse_rfc3339("2023-11-14T22:13:20.123456789Z/201") == SOME


def test_it_gives_its_parts_back() -> None:
    assert SOME.get_time() == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
    assert SOME.get_time_as_ntp64() == NTP64(1_700_000_000, 123_456_789)
    assert SOME.get_id() == ZenohId(b"\1\2")
    assert (SOME.seconds, SOME.fraction, SOME.id_bytes) == (1_700_000_000, 530242871, b"\1\2")


def test_it_is_made_of_a_datetime_a_moment_or_halves() -> None:
    when = datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)
    made = Timestamp(when, ZenohId(b"\1"))
    assert made == Timestamp(NTP64(1_700_000_000, 500_000_000), bytearray(b"\1\0"))
    assert made == Timestamp(1_700_000_000, b"\1", 1 << 31)
    with pytest.raises(TypeError, match="float"):
        Timestamp(1.5, b"\1")  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "fraction"), [(-1, 0), (1 << 32, 0), (0, -1), (0, 1 << 32)])
def test_halves_wider_than_32_bits_are_refused(seconds: int, fraction: int) -> None:
    with pytest.raises(TimestampError, match="from_raw"):
        Timestamp(seconds, b"\1", fraction)


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\1" * 17])
def test_an_id_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(LocatorError):
        Timestamp(0, data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "/1",
        "5/",
        "5/0",
        "5/01",
        "5/xyz",
        "5/1/1",
        "-5/1",
        "٥/1",
        f"{1 << 64}/1",
        "9" * 9999 + "/1",
    ],
)
def test_text_that_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises((TimestampError, LocatorError)):
        Timestamp.parse(text)


def test_the_decimal_form_is_not_rfc3339() -> None:
    with pytest.raises(TimestampError):
        Timestamp.parse_rfc3339(str(SOME))


def test_capital_digits_of_an_id_are_read() -> None:
    assert Timestamp.parse("5/AB") == Timestamp.parse("5/ab")


def test_a_difference_has_a_sign() -> None:
    late, early = Timestamp(5, b"a"), Timestamp(4, b"a")
    assert late.get_diff_duration(early) == timedelta(seconds=1)
    assert early.get_diff_duration(late) == timedelta(seconds=-1)


def test_it_compares_with_timestamps_only() -> None:
    assert SOME != 5
    with pytest.raises(TypeError):
        _ = SOME < 5


@given(timestamps)
def test_text_pickle_and_repr_bring_the_same_timestamp_back(timestamp: Timestamp) -> None:
    assert Timestamp.parse(str(timestamp)) == timestamp
    assert pickle.loads(pickle.dumps(timestamp)) == timestamp
    assert hash(pickle.loads(pickle.dumps(timestamp))) == hash(timestamp)
    assert eval(repr(timestamp)) == timestamp


@given(near, near, near)
def test_order_is_total_time_first_then_id(a: Timestamp, b: Timestamp, c: Timestamp) -> None:
    def place(t: Timestamp) -> tuple[int, bytes]:
        return int(t.get_time_as_ntp64()), bytes(t.get_id()).ljust(16, b"\0")

    assert (a < b) + (a == b) + (a > b) == 1
    assert (a < b) == (place(a) < place(b))
    assert (a <= b) == (place(a) <= place(b))
    assert (a >= b) == (place(a) >= place(b))
    assert not (a < b and b < c) or a < c

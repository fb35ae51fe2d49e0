from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import MAX_AHEAD_NS, NTP64, Hlc, Timestamp, ZenohId
from zenlake.clock.hlc import word_of
from zenlake.errors import TimestampError

MINE = ZenohId(b"\1")
OTHER = ZenohId(b"\2")
NOW = 1_700_000_000_000_000_000
MAX_NS = (1 << 32) * 10**9 - 1


def raw(timestamp: Timestamp) -> int:
    return int(timestamp.get_time_as_ntp64())


def said(nanos: int) -> Timestamp:
    return Timestamp(NTP64.from_nanos(nanos), OTHER)


def test_the_reading_loses_its_last_four_bits() -> None:
    clock = Hlc(MINE)
    reading = NOW + 123_456_789
    assert raw(clock.new_timestamp(reading)) == int(NTP64.from_nanos(reading)) & ~0xF
    assert clock.last.get_id() == MINE == clock.id


def test_a_clock_that_stands_still_counts_ticks() -> None:
    clock = Hlc(MINE)
    first = raw(clock.new_timestamp(NOW))
    assert [raw(clock.new_timestamp(NOW)) - first for _ in range(20)] == list(range(1, 21))


def test_a_clock_that_is_set_back_goes_on_from_the_last_time() -> None:
    clock = Hlc(MINE)
    first = raw(clock.new_timestamp(NOW))
    assert raw(clock.new_timestamp(NOW - 10**12)) == first + 1


@pytest.mark.parametrize(
    ("ahead_ms", "accepted"),
    [(-100_000, True), (0, True), (450, True), (600, False), (10_000, False)],
)
def test_others_may_be_half_a_second_ahead(ahead_ms: int, accepted: bool) -> None:
    clock = Hlc(MINE)
    assert clock.update(said(NOW + ahead_ms * 1_000_000), NOW) is accepted


def test_the_limit_itself_is_accepted_and_one_unit_more_is_not() -> None:
    limit = raw(Hlc(MINE).new_timestamp(NOW)) + (1 << 31)
    assert Hlc(MINE).update(Timestamp(NTP64.from_raw(limit), OTHER), NOW)
    assert not Hlc(MINE).update(Timestamp(NTP64.from_raw(limit + 1), OTHER), NOW)


def test_a_refused_time_does_not_move_the_clock() -> None:
    clock = Hlc(MINE)
    before = clock.new_timestamp(NOW)
    assert not clock.update(said(NOW + 10**9), NOW)
    assert clock.last == before


def test_an_accepted_time_is_in_the_past_from_then_on() -> None:
    clock = Hlc(MINE)
    heard = said(NOW + 400_000_000)
    assert clock.update(heard, NOW)
    assert raw(clock.new_timestamp(NOW)) == raw(heard) + 1


def test_an_old_time_changes_nothing_but_the_reading_counts() -> None:
    clock = Hlc(MINE)
    assert clock.update(said(0), NOW)
    assert raw(clock.last) == int(NTP64.from_nanos(NOW)) & ~0xF


@pytest.mark.parametrize("now", [-1, MAX_NS + 1, 1 << 80])
def test_a_wall_clock_outside_1970_to_2106_is_refused(now: int) -> None:
    with pytest.raises(TimestampError, match="set the clock"):
        Hlc(MINE).new_timestamp(now)
    with pytest.raises(TimestampError, match="set the clock"):
        Hlc(MINE).update(said(0), now)


def test_after_the_last_moment_there_is_none() -> None:
    clock = Hlc(MINE)
    top = Timestamp(NTP64.from_raw((1 << 64) - 1), OTHER)
    assert clock.update(top, MAX_NS)
    for _ in range(2):
        with pytest.raises(TimestampError, match="no later timestamp"):
            clock.new_timestamp(MAX_NS)
    assert raw(clock.last) == (1 << 64) - 1


def test_ticks_carry_into_the_next_second() -> None:
    clock = Hlc(MINE)
    assert clock.update(Timestamp(7, OTHER, 0xFFFF_FFFF), 7_900_000_000)
    assert clock.new_timestamp(7_900_000_000) == Timestamp(8, MINE)


def test_how_far_others_may_be_ahead_is_a_choice() -> None:
    assert Hlc(MINE, max_ahead_ns=20 * 10**9).update(said(NOW + 19 * 10**9), NOW)
    assert not Hlc(MINE, max_ahead_ns=0).update(said(NOW + 100), NOW)
    with pytest.raises(TimestampError):
        Hlc(MINE, max_ahead_ns=-1)


readings = st.one_of(
    st.integers(0, MAX_NS),
    st.integers(NOW - 50, NOW + 50),
    st.integers(MAX_NS - 50, MAX_NS),
)
heards = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(int(NTP64.from_nanos(NOW)) - 99, int(NTP64.from_nanos(NOW)) + 2**31 + 99),
    st.integers(2**64 - 99, 2**64 - 1),
)
steps = st.lists(st.tuples(readings, st.none() | heards), max_size=40)


@given(steps)
def test_time_never_stands_still_nor_goes_back(steps: list[tuple[int, int | None]]) -> None:
    """Against a model in plain 64-bit numbers."""
    clock = Hlc(MINE)
    last = 0
    for now, heard in steps:
        reading = int(NTP64.from_nanos(now)) & ~0xF
        if heard is None:
            wanted = reading if reading > last else last + 1
            if wanted >= 1 << 64:
                with pytest.raises(TimestampError):
                    clock.new_timestamp(now)
                continue
            told = clock.new_timestamp(now)
            assert raw(told) == wanted > last
            last = wanted
        else:
            ahead = (MAX_AHEAD_NS << 32) // 10**9
            accepted = clock.update(Timestamp(NTP64.from_raw(heard), OTHER), now)
            assert accepted is (heard - reading <= ahead)
            if accepted:
                last = max(last, reading, heard)
        assert raw(clock.last) == last


@given(steps)
def test_the_rules_for_machine_words_are_those_of_the_clock(
    steps: list[tuple[int, int | None]],
) -> None:
    clock, words = Hlc(MINE), Hlc(MINE)
    for now, heard in steps:
        if not words.may_tick(now):
            break
        last, reading = words.last_word(), words.reading_word(now)
        if heard is None:
            told = raw(clock.new_timestamp(now))
            last = max(last + 1, reading)
            assert last == told - 2**63
        else:
            stamp = Timestamp(NTP64.from_raw(heard), OTHER)
            word = word_of(stamp.seconds, stamp.fraction)
            accepted = word <= words.limit_word(now)
            assert clock.update(stamp, now) is accepted
            if accepted:
                last = max(last, word, reading)
        words.move_to(last)
        assert words.last == clock.last

"""The log of events: fingerprints, eras under a clock that is set, and what is forgotten."""

from __future__ import annotations

from functools import reduce
from operator import xor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from tests.newest.oracle import Said
from tests.replication.simulated import BEGIN, ERAS, Node, ntp64, round_of_digests
from zenlake.newest import Contents, Value
from zenlake.replication import Action, Digest, Eras, Event, Replica, ReplicationLog
from zenlake.replication.eras import milliseconds

#: Where it is, as Eclipse counts: interval 100 of a second each.
NOW = 100_500


def put(name: str, at: int, id: bytes = b"\1") -> Event:
    return Event(name, Action.PUT, ntp64(at), id, ntp64(at), id)


def test_the_fingerprint_of_an_event_is_that_of_its_name_and_timestamp() -> None:
    event = Event("a/b", Action.PUT, 0x0102030405060708, b"\xaa\xbb")
    raw = b"a/b" + bytes.fromhex("0807060504030201") + b"\xaa\xbb" + bytes(14)
    assert event.fingerprint == xxh3_64_intdigest(raw)
    assert Event(None, Action.DELETE, 1, b"\1").fingerprint == xxh3_64_intdigest(
        b"\1" + bytes(7) + b"\1" + bytes(15)
    )


def test_the_fingerprint_of_the_settings_tells_storages_apart() -> None:
    raw = (
        b"demo/**demo"
        + (10_000).to_bytes(16, "little")
        + b"".join(number.to_bytes(8, "little") for number in (5, 6, 30))
        + (250).to_bytes(16, "little")
    )
    eras = Eras("demo/**", "demo", 10_000, 5, 6, 30, 250)
    assert eras.fingerprint == xxh3_64_intdigest(raw)
    different = {
        eras.fingerprint,
        eras._replace(key_expr="demo/*").fingerprint,
        eras._replace(prefix=None).fingerprint,
        eras._replace(interval=10_001).fingerprint,
        eras._replace(sub_intervals=4).fingerprint,
        eras._replace(hot=5).fingerprint,
        eras._replace(warm=31).fingerprint,
        eras._replace(propagation_delay=251).fingerprint,
    }
    assert len(different) == 8


@pytest.mark.parametrize(
    ("time", "interval", "part"),
    [(0, 0, 0), (1999, 0, 0), (2000, 0, 1), (9999, 0, 4), (10_000, 1, 0), (18_000, 1, 4)],
)
def test_a_timestamp_lies_in_one_part_of_one_interval(time: int, interval: int, part: int) -> None:
    eras = Eras("a", None, 10_000, 5, 1, 5, 250)
    assert milliseconds(ntp64(time)) == time
    assert eras.place(ntp64(time)) == (interval, part)
    assert (eras.hot_from(10), eras.warm_from(10)) == (10, 5)
    # Near 1970 there is nothing before.
    assert (eras.hot_from(0), eras.warm_from(3)) == (0, 0)
    # An interval that does not divide has one part more.
    assert Eras("a", None, 1000, 3, 1, 1, 0).place(ntp64(999)) == (0, 3)
    assert Eras("a", None, 1000, 3, 1, 1, 0).parts == 4


def test_events_move_from_hot_to_warm_to_cold_as_time_goes_by() -> None:
    log = ReplicationLog(ERAS)
    event = put("a", NOW)
    log.record(event)
    found, mark = event.fingerprint, log.fingerprint
    assert log.digest(NOW) == Digest(mark, 0, {}, {100: {2: found}})
    assert log.digest(NOW + 1000) == Digest(mark, 0, {}, {100: {2: found}})
    for later in (2000, 3000, 4000):
        assert log.digest(NOW + later) == Digest(mark, 0, {100: found}, {})
    assert log.digest(NOW + 5000) == Digest(mark, found, {}, {})
    assert log.digest(NOW + 5_000_000) == Digest(mark, found, {}, {})
    # The clock is set back: what lies ahead of it is in no digest.
    assert log.digest(NOW - 1000) == Digest(mark, 0, {}, {})
    assert log.digest(NOW) == Digest(mark, 0, {}, {100: {2: found}})


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.integers(0, 9000), st.booleans()), max_size=20
    ),
    st.lists(st.integers(0, 10_000), min_size=1, max_size=4),
)
def test_a_digest_is_what_looking_at_every_event_gives(
    changes: list[tuple[str, int, bool]], moments: list[int]
) -> None:
    log = ReplicationLog(ERAS)
    for name, time, keep in changes:
        event = put(name, time)
        log.record(event)
        if not keep:
            log.remove(event)
    events = [event for at in log.intervals() for event in log.events(at)]
    assert len(events) == len(log)
    for now in moments:
        current = now // 1000
        digest = log.digest(now)
        placed = [(*ERAS.place(event.time), event.fingerprint) for event in events]
        cold = [found for at, _, found in placed if at < max(0, current - 4)]
        assert digest.cold == reduce(xor, cold, 0)
        warm = {at for at, _, _ in placed if max(0, current - 4) <= at < max(0, current - 1)}
        assert set(digest.warm) == warm
        hot = {(at, part) for at, part, _ in placed if max(0, current - 1) <= at <= current}
        assert {(at, part) for at, parts in digest.hot.items() for part in parts} == hot


def test_a_clock_that_is_an_interval_off_sees_no_difference_in_what_is_cold() -> None:
    one, other = ReplicationLog(ERAS), ReplicationLog(ERAS)
    for at in range(80, 100):
        one.record(put(f"a/{at}", at * 1000))
        other.record(put(f"a/{at}", at * 1000))
    for skew in (-1000, 0, 1000):
        assert other.differences(one.digest(NOW + skew), NOW) is None
    one.record(put("a/old", 81_000))
    diff = other.differences(one.digest(NOW), NOW)
    assert diff is not None
    assert (diff.cold, diff.warm, diff.hot) == (True, frozenset(), {})
    assert other.differences(one.digest(NOW)._replace(configuration=1), NOW) is None


def test_deletions_are_forgotten_and_not_taken_from_others_when_they_are_old() -> None:
    one, other = Node("1"), Node("2")
    for node in (one, other):
        node.hear(Said("a/x", ntp64(BEGIN - 90_000), b"\1", None))
        node.hear(Said("a/**", ntp64(BEGIN - 80_000), b"\1", "v"))
        node.hear(Said("a/y", ntp64(BEGIN - 70_000), b"\1", "kept"))
    before = ntp64(BEGIN - 75_000)
    one.contents.collect(before)
    one.replica.forget(before)
    assert [e.name for at in one.replica.log.intervals() for e in one.replica.log.events(at)] == [
        "a/y"
    ]
    # The other is later: what it still has is not taken, and counted.
    assert round_of_digests([one, other], BEGIN) == 2
    assert (len(one.replica.log), one.replica.counts.expired) == (1, 2)
    other.contents.collect(before)
    other.replica.forget(before)
    assert round_of_digests([one, other], BEGIN) == 0


def test_too_many_deletions_push_the_oldest_out() -> None:
    contents = Contents(keeps=False)
    replica = Replica(ERAS, contents, "1", most_deletions=10)
    for number in range(11):
        contents.delete(f"a/{number}", ntp64(number * 100), b"\1")
        replica.delete(f"a/{number}", ntp64(number * 100), b"\1")
    assert replica.log.deletions == 5
    assert replica.counts.forgotten == 6
    assert replica.log.newest("a/10") is not None
    assert replica.log.newest("a/0") is None


def test_events_of_keys_that_a_storage_does_not_have_are_not_taken() -> None:
    eras = ERAS._replace(prefix="a/b", key_expr="a/b/**")
    contents = Contents(keeps=False)
    replica = Replica(eras, contents, "1")
    for name in ("x//y", "", "*", "x/$*", "#"):
        assert not replica.apply(put(name, BEGIN), Value(b"v"))
    assert not replica.apply(Event("z/**", Action.PUT_MANY, ntp64(BEGIN), b"\1"), Value(b"v"))
    assert not replica.apply(Event("a/b/c", Action.PUT_MANY, ntp64(BEGIN), b"\1"), Value(b"v"))
    assert (replica.counts.outside, len(replica.log), len(contents)) == (7, 0, 0)
    assert replica.apply(put("x", BEGIN), Value(b"v"))
    assert replica.apply(Event(None, Action.PUT, ntp64(BEGIN), b"\1"), Value(b"v"))
    assert sorted(contents.keys("**")) == ["a/b", "a/b/x"]
    assert not replica.apply(put("x", BEGIN), Value(b"v"))
    assert not replica.apply(put("new", BEGIN), None)

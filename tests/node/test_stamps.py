"""Values that pass without a time are given one, and times of the future are not believed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import Hlc, ZenohId
from zenlake.node.stamps import Timestamper
from zenlake.wire.codec_zenoh import Put, Timestamp

NOW = 1_700_000_000


def stamps(drop_future: bool = False) -> Timestamper:
    return Timestamper(Hlc(ZenohId(b"\x01")), lambda: NOW * 10**9, drop_future)


def test_a_value_without_a_time_is_given_one_of_ours() -> None:
    body = Put(payload=b"x")
    assert stamps().stamp(body)
    assert body.timestamp is not None
    assert (body.timestamp.seconds, body.timestamp.id) == (NOW, b"\x01")


def test_a_time_that_can_be_true_is_left_alone_and_ours_are_later() -> None:
    ours = stamps()
    theirs = Timestamp(seconds=NOW, fraction=1 << 30, id=b"\x02")
    body = Put(payload=b"x", timestamp=theirs)
    assert ours.stamp(body)
    assert body.timestamp is theirs
    assert ours.new().fraction > theirs.fraction


def test_a_time_of_the_future_is_replaced_or_its_value_dropped() -> None:
    theirs = Timestamp(seconds=NOW + 2, fraction=0, id=b"\x02")
    replacing, dropping = stamps(), stamps(drop_future=True)
    body = Put(payload=b"x", timestamp=theirs)
    assert replacing.stamp(body)
    assert body.timestamp is not None
    assert (body.timestamp.seconds, body.timestamp.id) == (NOW, b"\x01")
    assert not dropping.stamp(Put(payload=b"x", timestamp=theirs))
    assert (replacing.replaced, dropping.dropped) == (1, 1)


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_every_value_leaves_with_a_time_that_can_be_true(offsets: list[int]) -> None:
    ours = stamps()
    given_out: list[tuple[int, int]] = []
    for offset in offsets:
        body = Put(payload=b"", timestamp=None)
        if offset:
            body.timestamp = Timestamp(seconds=NOW + offset, fraction=0, id=b"\x02")
        assert ours.stamp(body)
        assert body.timestamp is not None
        assert body.timestamp.seconds <= NOW
        if body.timestamp.id == b"\x01":
            given_out.append((body.timestamp.seconds, body.timestamp.fraction))
    assert given_out == sorted(set(given_out))

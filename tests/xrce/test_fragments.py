from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.xrce.weather import Pair, Weather, payloads
from zenlake import xrce
from zenlake.errors import DecodeError, EncodeError
from zenlake.xrce.fragments import OutOfRoom, SliceReassembly, sliced
from zenlake.xrce.session import CLOSED


def slice_of(
    sn: int, payload: bytes, base: int = 0, count: int | None = None, id: int = 2
) -> xrce.StreamData:
    frag = xrce.Frag(sn_base=base, count=count)
    return xrce.StreamData(reliable=True, sn=sn, id=id, payload=payload, markers=(frag,))


@given(st.binary(min_size=1, max_size=40000), st.integers(12, 3000))
def test_slices_are_equal_and_make_the_payload(payload: bytes, mtu: int) -> None:
    parts = sliced(payload, 9, mtu, 1 << 20)
    assert b"".join(parts) == payload
    assert {len(part) for part in parts[:-1]} <= {len(parts[0])}
    assert len(parts[-1]) <= len(parts[0])


@pytest.mark.parametrize("reliable", [True, False])
@pytest.mark.parametrize("mtu", [20, 200, 1400])
def test_a_payload_of_any_size_crosses_packets_of_any_size(mtu: int, reliable: bool) -> None:
    pair = Pair(near={"mtu": mtu, "conduits": 1}, far={"mtu": mtu, "conduits": 1}).opened()
    large = bytes(range(256)) * 20
    pair.send(b"before", reliable)
    pair.send(large, reliable)
    pair.send(b"after", reliable)
    pair.settle()
    pair.run(0.1)
    assert payloads(pair.heard) == [b"before", large, b"after"]


def test_names_and_spaces_stay_with_the_slices() -> None:
    pair = Pair(near={"mtu": 60}, far={"mtu": 60}).opened()
    message = xrce.WriteData(reliable=True, sn=0, resource="/a/b", payload=b"x" * 200)
    assert pair.a.send(message, True, conduit=3, space=7)
    pair.flush()
    pair.settle()
    (found,) = pair.heard
    assert isinstance(found, xrce.WriteData)
    assert (found.resource, found.payload) == ("/a/b", b"x" * 200)
    assert (xrce.conduit_of(found), xrce.space_of(found), xrce.fragment_of(found)) == (3, 7, None)


@given(seed=st.integers(0, 1 << 30))
def test_a_best_effort_payload_arrives_whole_or_not_at_all(seed: int) -> None:
    pair = Pair(Weather(0.05, 0.1, 0.001, 0.002), Random(seed), near={"mtu": 100}).opened()
    sent = [bytes([i]) * (50 * i) for i in range(1, 20)]
    for payload in sent:
        pair.send(payload, reliable=False)
        pair.run(0.01)
    pair.run(0.1)
    assert set(payloads(pair.heard)) <= set(sent)


def test_without_a_count_a_series_ends_with_the_next_message() -> None:
    made = SliceReassembly(14)
    assert made.take(slice_of(0, b"ab")) == []
    assert made.take(slice_of(1, b"c")) == []
    plain = xrce.StreamData(reliable=True, sn=2, id=2, payload=b"next")
    assert [m.payload for m in made.take(plain) if isinstance(m, xrce.StreamData)] == [
        b"abc", b"next",
    ]  # fmt: skip
    made.take(slice_of(3, b"de", 3))
    (found,) = made.take(slice_of(4, b"fg", 4))
    assert isinstance(found, xrce.StreamData)
    assert found.payload == b"de"


def test_a_series_that_contradicts_itself_is_refused() -> None:
    made = SliceReassembly(14)
    made.take(slice_of(0, b"a", count=3))
    with pytest.raises(DecodeError, match="different resources"):
        made.take(slice_of(1, b"b", id=4))
    with pytest.raises(DecodeError, match="a series of 1 fragments"):
        SliceReassembly(14).take(slice_of(0, b"a", count=1))
    frag = (xrce.Frag(sn_base=0),)
    with pytest.raises(DecodeError, match="only samples"):
        SliceReassembly(14).take(xrce.Declare(sn=0, declarations=(), markers=frag))


def test_a_series_has_a_bound() -> None:
    made = SliceReassembly(14, limit=10)
    made.take(slice_of(0, b"x" * 8))
    assert made.held == 8
    with pytest.raises(OutOfRoom):
        made.take(slice_of(1, b"x" * 8))


def test_a_payload_above_the_bound_of_the_other_side_ends_the_session_with_no_room() -> None:
    pair = Pair(near={"mtu": 100}, far={"room": 500}).opened()
    pair.send(b"x" * 1000)
    pair.run(0.5)
    assert pair.a.state == pair.b.state == CLOSED
    assert (pair.b.reason, pair.a.reason) == (3, 3)


def test_a_peer_that_puts_nothing_together_is_sent_nothing_cut() -> None:
    pair = Pair(near={"mtu": 100}).opened()
    pair.a.habits.complete = False
    with pytest.raises(EncodeError, match="does not put fragments together"):
        pair.send(b"x" * 200)


def test_a_name_that_fills_a_packet_is_refused_with_advice() -> None:
    pair = Pair(near={"mtu": 20, "conduits": 1}, far={"mtu": 20, "conduits": 1}).opened()
    with pytest.raises(EncodeError, match="declare a resource and use its id"):
        pair.a.send(xrce.WriteData(sn=0, resource="/a/long/name", payload=b"x" * 9), True)

"""One datagram for all peers: numbered once, acknowledged and repeated session by session."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.xrce.weather import Pair, Weather, payloads
from zenlake import xrce
from zenlake.errors import DecodeError
from zenlake.xrce.group import GROUP_CONDUIT, Group, heard
from zenlake.xrce.session import OPEN

PEER = {"conduits": GROUP_CONDUIT + 1, "shared": GROUP_CONDUIT, "lease": 0}


class Peers:
    """One that sends to a group, and its sessions with others, each in its own weather."""

    def __init__(self, count: int, loss: float, seed: int) -> None:
        self.random = Random(seed)
        self.loss = loss
        self.group = Group(b"near")
        self.pairs: list[Pair] = []
        for _ in range(count):
            self.come()

    def come(self) -> Pair:
        weather = Weather(loss=self.loss, jitter=0.01)
        pair = Pair(weather, Random(self.random.random()), dict(PEER), dict(PEER)).opened()
        pair.run(1)
        assert self.group.join(pair.a)
        pair.flush()
        self.pairs.append(pair)
        return pair

    def put(self, payload: bytes, reliable: bool = True) -> None:
        for _ in range(2000):
            if not self.group.full:
                break
            self.run(0.05)
        packet = self.group.packet("/x", payload, reliable, self.pairs[0].now)
        for pair in self.pairs:
            if self.random.random() >= self.loss:
                pid, messages = heard(packet)
                assert pid == pair.b.peer
                assert pair.far is not None
                pair.far.got += pair.far.session.take(messages, pair.now)
            pair.flush()

    def run(self, seconds: float) -> None:
        for pair in self.pairs:
            pair.run(seconds)


@given(seed=st.integers(0, 1 << 30), loss=st.sampled_from([0.0, 0.1, 0.3]), count=st.integers(1, 3))
def test_every_peer_gets_exactly_what_was_sent(seed: int, loss: float, count: int) -> None:
    peers = Peers(count, loss, seed)
    sent = [b"%d" % i for i in range(30)]
    for payload in sent:
        peers.put(payload)
    peers.run(20)
    for pair in peers.pairs:
        assert pair.a.state == pair.b.state == OPEN, (pair.a.why, pair.b.why)
        assert payloads(pair.heard) == sent
    assert peers.group.sent == 30


def test_who_joins_later_is_told_where_the_channel_stands() -> None:
    peers = Peers(1, 0.0, 1)
    peers.put(b"before")
    peers.run(1)
    late = peers.come()
    late.run(1)
    peers.put(b"after")
    peers.run(1)
    assert payloads(late.heard) == [b"after"]
    assert payloads(peers.pairs[0].heard) == [b"before", b"after"]


def test_best_effort_is_never_out_of_order_and_never_repeated() -> None:
    peers = Peers(2, 0.4, 3)
    for i in range(50):
        peers.put(b"%02d" % i, reliable=False)
    for pair in peers.pairs:
        found = payloads(pair.heard)
        assert found == sorted(set(found))
        assert 5 < len(found) < 50


def test_a_session_that_ends_holds_nobody_up() -> None:
    peers = Peers(2, 0.0, 1)
    gone = peers.pairs.pop()
    for _ in range(300):
        if peers.group.full:
            break
        peers.put(b"x")
        peers.run(0.05)
    assert peers.group.full
    gone.a.fail(0, "gone")
    peers.group.sweep()
    assert not peers.group.full
    assert len(peers.group) == 1


def test_what_does_not_fit_one_packet_or_one_session_is_left_to_sessions() -> None:
    group = Group(b"near")
    assert group.packet("/x", bytes(2000), True, 0.0) == b""
    assert not group.join(Pair().opened().a)  # it has no such conduit


@pytest.mark.parametrize("packet", [b"", b"\x10", b"\x49\x00\x01x\x00", b"\xff" * 9])
def test_a_packet_of_nobody_is_refused(packet: bytes) -> None:
    with pytest.raises(DecodeError):
        heard(packet)


def test_only_the_conduit_of_the_group_is_heard_there() -> None:
    close = xrce.write(xrce.Close(pid=b"x", reason=0))
    other = xrce.write(xrce.WriteData(sn=0, resource="/x", payload=b""))
    assert heard(xrce.write(xrce.KeepAlive(pid=b"x")) + close + other) == (b"x", [])

"""Peers of one router are introduced to each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zenlake.clock import ZenohId
from zenlake.errors import DecodeError
from zenlake.routing.introductions import Introductions
from zenlake.routing.linkstate import MAX_NODES
from zenlake.wire import Frame, LinkState, LinkStates, Oam, read_batch, read_link_states, write
from zenlake.wire.link_state import Outgoing

VECTORS = Path(__file__).parent.parent / "golden" / "vectors-1x.json"

ROUTER = bytes(ZenohId.parse("f489ad37f3f445962cc9f7086533aced"))
FIRST = bytes(ZenohId.parse("899a1dcf7fa7ca5de148b36e9686bd5b"))
SECOND = bytes(ZenohId.parse("f8957458bf54278b5334eeb71da8da2e"))


@pytest.fixture(scope="module")
def heard() -> dict[str, Oam]:
    """What a real router and its peers said to each other."""
    found: dict[str, Oam] = {}
    for vector in json.loads(VECTORS.read_text()):
        name: str = vector["name"]
        if not name.startswith("cap2_pr:peer-router/") or "#" in name:
            continue
        for frame in read_batch(bytes.fromhex(vector["hex"])):
            for message in frame.messages if isinstance(frame, Frame) else ():
                if isinstance(message, Oam):
                    found[name.removeprefix("cap2_pr:peer-router/")] = message
    return found


def states(*said: LinkState) -> Oam:
    return Oam(id=1, qos=8, body=write(LinkStates(entries=said)))


def peer(zid: bytes, sn: int, *locators: str, links: tuple[int, ...] = ()) -> LinkState:
    return LinkState(psid=0, sn=sn, zid=zid, whatami=2, locators=locators, links=links)


def gateway(zid: bytes, psid: int) -> LinkState:
    return LinkState(psid=psid, sn=0, zid=zid, whatami=1, links=(), gateway=True)


def entries(out: Outgoing, link: int) -> tuple[LinkState, ...]:
    (message,) = [message for number, message in out if number == link]
    assert isinstance(message.body, bytes)
    return read_link_states(message.body)


def test_two_peers_are_introduced_as_a_real_router_does(heard: dict[str, Oam]) -> None:
    router = Introductions(ROUTER)
    assert router.added(1, FIRST) == [(1, heard["handshake/4"])]
    assert router.received(1, heard["handshake/5"]) == ([], [])
    ((link, told),) = router.added(2, SECOND)
    assert link == 2
    assert isinstance(told.body, bytes)
    (entry,) = read_link_states(told.body)
    assert (entry.psid, entry.sn, entry.zid) == (1, 2, FIRST)
    assert entry.locators == ("tcp/127.0.0.1:29112",)
    assert entry.links == ()
    _, out = router.received(2, states(peer(SECOND, 2, "tcp/127.0.0.1:29113")))
    assert out == [(1, heard["second_peer_joins/0"])]
    # The first peer met the second, and says so: that is not news to anybody.
    for moment in ("second_peer_joins/1", "second_peer_joins/2"):
        assert router.received(1, heard[moment]) == ([], [])


def test_peers_without_gossip_are_greeted_and_told_nothing() -> None:
    router = Introductions(ROUTER, gossip=False)
    router.added(1, b"\x01")
    router.received(1, states(peer(b"\x01", 2, "tcp/one:1")))
    assert [entry.locators for entry in entries(router.added(2, b"\x02"), 2)] == [None]
    assert router.received(2, states(peer(b"\x02", 2, "tcp/two:1"))) == ([], [])


def test_a_peer_that_moves_is_introduced_again_and_old_words_are_not() -> None:
    router = Introductions(ROUTER)
    router.added(1, b"\x01")
    router.added(2, b"\x02")
    _, out = router.received(1, states(peer(b"\x01", 2, "tcp/old:1")))
    assert entries(out, 2)[0].locators == ("tcp/old:1",)
    assert router.received(1, states(peer(b"\x01", 3, "tcp/old:1")))[1] == []
    assert router.received(1, states(peer(b"\x01", 3, "tcp/new:1")))[1] == []
    _, out = router.received(1, states(peer(b"\x01", 4, "tcp/new:1")))
    assert entries(out, 2)[0].locators == ("tcp/new:1",)


def test_the_number_of_a_peer_that_left_is_used_again() -> None:
    router = Introductions(ROUTER)
    router.added(1, b"\x01")
    router.added(2, b"\x02")
    router.removed(1)
    router.removed(1)
    router.added(3, b"\x03")
    _, out = router.received(3, states(peer(b"\x03", 2, "tcp/three:1")))
    assert entries(out, 2)[0].psid == 1


def test_nodes_that_a_peer_tells_of_are_made_known_but_not_the_router_itself() -> None:
    router = Introductions(ROUTER)
    router.added(1, b"\x01")
    far = LinkState(psid=5, sn=1, zid=b"\x05", whatami=2, locators=("tcp/five:1",), links=())
    me = LinkState(psid=6, sn=1, zid=ROUTER, whatami=1, locators=("tcp/me:1",), links=())
    known, out = router.received(1, states(far, me))
    assert [(node.zid, node.role, node.locators) for node in known] == [
        (b"\x05", 2, ("tcp/five:1",))
    ]
    assert out == []


def test_of_several_routers_the_greatest_leads() -> None:
    low, high = Introductions(b"\x01"), Introductions(b"\x09")
    both = {b"\x01", b"\x09"}
    for router in (low, high):
        router.added(1, b"\x05")
        assert router.leads(1, both)
        router.received(
            1, states(peer(b"\x05", 2, links=(1, 2)), gateway(b"\x01", 1), gateway(b"\x09", 2))
        )
    assert not low.leads(1, both)
    assert high.leads(1, both)
    # Routers that cannot reach each other lead both.
    assert low.leads(1, {b"\x01"})
    # It has lost the greater one.
    low.received(1, states(LinkState(psid=0, sn=3, links=(1,))))
    assert low.leads(1, both)
    assert low.leads(77, both)


def test_a_peer_cannot_make_the_router_remember_without_end() -> None:
    router = Introductions(ROUTER)
    router.added(1, b"\x01")
    multicast = [
        LinkState(psid=n, sn=1, zid=b"z" + n.to_bytes(3, "little") + b"\x01", links=())
        for n in range(MAX_NODES + 10)
    ]
    router.received(1, states(*multicast))
    assert router.passed_over >= 10
    router.received(1, states(LinkState(psid=1 << 40, sn=1, links=())))
    assert router.passed_over >= 11


def test_garbage_is_refused_and_strangers_are_ignored() -> None:
    router = Introductions(ROUTER)
    assert router.received(1, states()) == ([], [])
    router.added(1, b"\x01")
    assert router.received(1, Oam(id=2, body=b"\x00")) == ([], [])
    with pytest.raises(DecodeError):
        router.received(1, Oam(id=1, body=b"\x05\x00"))

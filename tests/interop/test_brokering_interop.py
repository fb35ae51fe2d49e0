"""Eclipse peers that cannot meet: through a router of ours that is told to be their broker."""

from __future__ import annotations

from itertools import count

import pytest

from tests.interop.peer import Peer
from tests.interop.processes import OURS, Process, connect, listen
from tests.interop.test_policy_interop import expected, fence, nine
from tests.interop.test_router_mesh_interop import until_here

pytestmark = pytest.mark.interop

numbers = count(1)


@pytest.mark.parametrize("brokering", [True, False])
def test_peers_without_a_place_to_listen_need_a_broker(brokering: bool, elsewhere: Process) -> None:
    router = Peer(OURS)
    place = listen(router, "router", routing__router__peers_failover_brokering=brokering)
    pair = [elsewhere.node(f"peer {next(numbers)}") for _ in range(2)]
    for peer in pair:
        connect(peer, place)
    if brokering:
        assert nine(pair[0], pair[1]) == expected()
    else:
        pair[1].token("t", "alive")
        fence(pair[1])
        assert pair[0].alive("*") == []
    for peer in (*pair, router):
        peer.close()


def test_peers_of_a_broker_that_meet_by_themselves_hear_once(elsewhere: Process) -> None:
    router = Peer(OURS)
    place = listen(router, "router", routing__router__peers_failover_brokering=True)
    one, two, three = (elsewhere.node(f"peer {next(numbers)}") for _ in range(3))
    meeting = listen(one, connect__endpoints=[place])
    two.open("peer", connect__endpoints=[place, meeting])
    connect(three, place)
    for name, peer in (("one", one), ("two", two), ("three", three)):
        peer.subscribe("s", "b/*")
        peer.token("t", f"here/{name}")
    for peer in (one, two, three):
        until_here(peer, {"here/one", "here/three", "here/two"})
    two.put("b/two", "x")
    three.put("b/three", "x")
    one.put("b/one", "x")
    for peer in (one, two, three):
        assert sorted(each["key"] for each in peer.take("s", 3)) == ["b/one", "b/three", "b/two"]
        assert peer.quiet("s", 0.2)
    for peer in (one, two, three, router):
        peer.close()


@pytest.mark.parametrize("ours_connects", [True, False])
def test_a_region_may_be_named(ours_connects: bool, elsewhere: Process) -> None:
    ours, theirs = Peer(OURS), elsewhere.node(f"region {next(numbers)}")
    connecting, listening = (ours, theirs) if ours_connects else (theirs, ours)
    place = listen(listening, "router", region_name="here")
    zid = connect(connecting, place, "client", region_name="there")
    assert listening.neighbours() == [zid]
    connecting.close()
    listening.close()

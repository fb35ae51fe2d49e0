"""A router as the broker of its peers: those who cannot meet speak through it, and only those."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.network.test_policy import seen
from zenlake.routing.policy import KINDS
from zenlake.testing.network import Host, Network


def town(brokering: bool, listen: bool = False) -> tuple[Network, Host, Host, Host]:
    """Two peers of a router."""
    network = Network()
    router = network.node("router", "router", brokering=brokering)
    near = network.node("near", connect=["router"], listen=listen)
    far = network.node("far", connect=["router"], listen=listen)
    network.settle()
    return network, router, near, far


def test_peers_that_cannot_meet_are_brokered_if_the_router_is_told_to() -> None:
    network, _, near, far = town(True)
    assert near.sessions == {"router"}
    assert seen(network, near, far) == dict.fromkeys(KINDS, True)


def test_they_are_not_otherwise() -> None:
    network, _, near, far = town(False)
    assert seen(network, near, far) == dict.fromkeys(KINDS, False)


@pytest.mark.parametrize("brokering", [True, False])
def test_peers_that_can_meet_hear_everything_once(brokering: bool) -> None:
    network, _, near, far = town(brokering, listen=True)
    # A broker does not introduce them.
    assert near.sessions == ({"router"} if brokering else {"router", "far"})
    assert seen(network, near, far) == dict.fromkeys(KINDS, True)


def test_a_link_of_their_own_takes_over_and_gives_back() -> None:
    network, _, near, far = town(True, listen=True)
    heard = far.subscribe("k/*")
    network.settle()
    near.put("k/through")
    network.settle()
    network.connect(near, far)
    network.settle()
    assert near.sessions == {"router", "far"}
    near.put("k/beside")
    network.settle()
    network.partition([near], [far])
    network.run(60.0)
    assert near.sessions == {"router"} or near.sessions == set()
    network.heal()
    network.run(5.0)  # longer than the longest pause between two attempts to connect
    network.settle()
    near.put("k/again")
    network.settle()
    assert [key for key, _ in heard.values()] == ["k/through", "k/beside", "k/again"]


def test_peers_of_two_brokers_hear_everything_once() -> None:
    network = Network()
    network.node("one", "router", brokering=True)
    network.node("two", "router", connect=["one"], brokering=True)
    near = network.node("near", connect=["one", "two"], listen=False)
    far = network.node("far", connect=["one", "two"], listen=False)
    third = network.node("third", connect=["two"], listen=False)
    network.settle()
    heard = far.subscribe("k/*"), third.subscribe("k/*")
    replier = third.queryable("q", b"answer")
    network.settle()
    near.put("k/1")
    answers = near.get("q")
    network.settle()
    assert [one.values() for one in heard] == [[("k/1", b"")]] * 2
    assert answers.values() == [("q", b"answer")]
    assert len(replier.queries) == 1


NAMES = ["a", "b", "c", "d"]


class Peers(RuleBasedStateMachine):
    """Peers of one broker that come, go, and make links of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Network()
        self.network.node("router", "router", brokering=True)
        self.peers: dict[str, Host] = {}
        self.heard: dict[str, object] = {}
        self.round = 0

    @rule(name=st.sampled_from(NAMES))
    @precondition(lambda self: len(self.peers) < len(NAMES))
    def come(self, name: str) -> None:
        if name not in self.peers:
            self.peers[name] = self.network.node(name, connect=["router"], autoconnect=0)
            self.peers[name].subscribe("k/*")

    @rule(name=st.sampled_from(NAMES))
    def go(self, name: str) -> None:
        peer = self.peers.pop(name, None)
        if peer is not None:
            self.network.crash(peer)

    @rule(one=st.sampled_from(NAMES), other=st.sampled_from(NAMES))
    def link(self, one: str, other: str) -> None:
        if one != other and one in self.peers and other in self.peers:
            self.network.connect(self.peers[one], self.peers[other])

    @rule(one=st.sampled_from(NAMES), other=st.sampled_from(NAMES))
    def cut(self, one: str, other: str) -> None:
        if one in self.peers and other in self.peers:
            for each in self.network.between(self.peers[one], self.peers[other]):
                each.cut()

    @invariant()
    def everybody_hears_everybody_once(self) -> None:
        self.network.settle()
        self.round += 1
        recorders = {name: peer.subscribe(f"r{self.round}/*") for name, peer in self.peers.items()}
        self.network.settle()
        for name, peer in self.peers.items():
            peer.put(f"r{self.round}/{name}")
        self.network.settle()
        keys = sorted(f"r{self.round}/{name}" for name in self.peers)
        for recorder in recorders.values():
            assert sorted(key for key, _ in recorder.values()) == keys
        for name, peer in self.peers.items():
            subscriber = recorders[name].subscriber
            assert subscriber is not None
            peer.node.local.unsubscribe(subscriber)


TestPeers = Peers.TestCase
TestPeers.settings = settings(max_examples=20, stateful_step_count=12, deadline=None)

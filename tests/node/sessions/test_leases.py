"""Links are looked at when they are due, whoever else is there, and not after they are gone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake.node.sessions.neighbour import Neighbour
from zenlake.testing.network import Host, Network, Stranger
from zenlake.wire import InitAck, OpenSyn, read_batch, write


def opened(network: Network, host: Host, zid: int, lease: int) -> tuple[Stranger, Neighbour]:
    """Somebody who opens a session and then says nothing."""
    stranger = network.stranger(host)
    stranger.say(bytes((0x81, 0x09, 0x12, zid >> 8, zid & 255, 0x81, 0x27, 0x01)))
    network.run(0.01)
    [ack] = read_batch(stranger.heard()[0])
    assert isinstance(ack, InitAck)
    stranger.say(write(OpenSyn(lease=lease, initial_sn=0, cookie=ack.cookie)))
    network.run(0.01)
    return stranger, host.node.by_zid[bytes((zid >> 8, zid & 255))]


@settings(max_examples=20)
@given(st.lists(st.integers(500, 5000), min_size=1, max_size=8))
def test_each_of_many_silent_neighbours_is_closed_at_its_own_lease(leases: list[int]) -> None:
    network = Network()
    host = network.node("router", "router")
    there = []
    for number, lease in enumerate(leases):
        stranger, _ = opened(network, host, 0x6101 + number, lease)
        there.append((network.now + lease / 1000, stranger))
    while there:
        there.sort(key=lambda entry: entry[0])
        due, stranger = there.pop(0)
        if network.now < due - 0.03:
            network.run(due - 0.03 - network.now)
            assert not stranger.closed
        network.run(due + 0.01 - network.now)
        assert stranger.closed


def test_links_that_are_gone_are_waited_for_no_more() -> None:
    network = Network()
    host = network.node("router", "router")
    strangers = [opened(network, host, 0x6101 + number, 10_000)[0] for number in range(100)]
    leases = host.node.sessions.leases
    assert leases._deadlines.waiting == 100
    for stranger in strangers:
        stranger.hang_up()
    network.run(0.01)
    assert leases._deadlines.waiting == 0
    assert len(leases._deadlines) <= 64  # those that nobody waits for are swept out
    assert leases.next() == float("inf")


@pytest.mark.parametrize("paused", [True, False])
def test_silence_of_our_own_making_counts_against_nobody(paused: bool) -> None:
    network = Network()
    host = network.node("router", "router")
    stranger, neighbour = opened(network, host, 0x6101, 1000)
    assert neighbour.unicast is not None
    neighbour.unicast.paused = paused
    network.run(3.0)
    assert stranger.closed != paused
    neighbour.unicast.paused = False
    network.run(3.0)
    assert stranger.closed

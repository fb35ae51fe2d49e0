"""Peers among themselves: meshes, gossip, links made twice, partitions."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake.node.sessions.events import LinkFinished, SessionOpened
from zenlake.routing.keyids import NUMBER
from zenlake.testing.network import Conditions, Host, Network, SampleRecorder


def mesh(network: Network, count: int, **options: Any) -> list[Host]:
    """Peers that know the first one, and each other by gossip."""
    hosts = [network.node("p0", **options)]
    for number in range(1, count):
        hosts.append(network.node(f"p{number}", connect=["p0"], **options))
    network.settle()
    return hosts


def test_two_peers_open_one_session_and_settle() -> None:
    network = Network()
    one = network.node("one")
    two = network.node("two", connect=["one"])
    network.settle()
    assert (one.sessions, two.sessions) == ({"two"}, {"one"})
    assert one.node.sessions.settled()
    assert two.node.sessions.settled()


def test_peers_that_know_one_find_all_by_gossip() -> None:
    network = Network(Random(5))
    hosts = mesh(network, 4)
    for host in hosts:
        assert host.sessions == {other.name for other in hosts if other is not host}
    for one in hosts:
        for other in hosts:
            if one is not other:
                assert len(network.between(one, other)) == 1


def test_a_peer_without_gossip_knows_its_neighbours_alone() -> None:
    network = Network()
    hosts = mesh(network, 3, gossip=False)
    assert hosts[1].sessions == {"p0"}


def test_data_goes_one_hop_and_arrives_once() -> None:
    network = Network(Random(1))
    hosts = mesh(network, 3)
    samples = [host.subscribe("k/**") for host in hosts]
    network.settle()
    hosts[1].put("k/a", b"1")
    network.settle()
    assert [s.values() for s in samples] == [[("k/a", b"1")]] * 3


def test_nothing_is_relayed_between_peers() -> None:
    network = Network()
    hosts = mesh(network, 3, gossip=False)  # a line: p1 - p0 - p2
    samples = hosts[1].subscribe("k")
    replier = hosts[1].queryable("q", b"answer")
    token = hosts[1].node.local.liveliness.token("t")
    network.settle()
    hosts[2].put("k", b"1")
    answers = hosts[2].get("q")
    alive = hosts[2].liveliness_get("**")
    network.settle()
    assert samples.values() == []
    assert replier.queries == []
    assert (answers.values(), answers.finals) == ([], 1)
    assert (alive.keys(), alive.finals) == ([], 1)
    assert token.key == "t"


def test_a_peer_brokers_for_its_clients() -> None:
    network = Network()
    broker = network.node("broker")
    peer = network.node("peer", connect=["broker"])
    one = network.node("one", "client", connect=["broker"])
    two = network.node("two", "client", connect=["broker"])
    network.settle()
    heard = {host.name: host.subscribe("k") for host in (broker, peer, one, two)}
    network.settle()
    for host in (broker, peer, one, two):
        host.put("k", host.name.encode())
        network.settle()
    for samples in heard.values():
        assert [v for _, v in samples.values()] == [b"broker", b"peer", b"one", b"two"]


@pytest.mark.parametrize("seed", range(20))
def test_two_peers_that_connect_to_each_other_at_once_end_with_one_session(seed: int) -> None:
    random = Random(seed)
    network = Network(random, Conditions(latency=0.001, jitter=random.random() * 0.1))
    one = network.node("one", connect=["two"])
    network.run(random.random() * 0.2)
    two = network.node("two", connect=["one"])
    network.run(20.0)
    assert (one.sessions, two.sessions) == ({"two"}, {"one"})
    assert len(network.between(one, two)) == 1
    links = len(network.links)
    network.run(60.0)
    assert len(network.links) == links  # and nobody keeps on trying


@pytest.mark.parametrize("zid", [b"\x01", b"\x09"])
@pytest.mark.parametrize("head_start", [0.30 + 0.02 * step for step in range(12)])
def test_a_link_that_overtakes_another_never_costs_both(zid: bytes, head_start: float) -> None:
    """The slow link was begun first; wherever the fast one passes it, one opens and stays."""
    network = Network()
    network.weather("one", "two", Conditions(latency=0.2))
    one = network.node("one", zid=zid, connect=["two"])
    two = network.node("two", zid=b"\x05")
    network.run(head_start)
    network.weather("one", "two", Conditions(latency=0.1))
    network.connect(two, one)
    network.run(5.0)
    assert (one.sessions, two.sessions) == ({"two"}, {"one"})
    assert len(network.between(one, two)) == 1
    for host in (one, two):
        assert [type(e) for e in host.events if not isinstance(e, LinkFinished)] == [SessionOpened]


def test_a_duplicated_connection_is_refused_and_left_alone() -> None:
    network = Network()
    one = network.node("one")
    two = network.node("two", connect=["one", "one"])
    network.run(10.0)
    assert len(network.between(one, two)) == 1
    assert len(network.links) == 2


def test_an_endpoint_that_led_to_a_known_node_is_tried_again_when_that_session_ends() -> None:
    network = Network()
    one = network.node("one", connect=["two"])
    two = network.node("two", connect=["one"])
    network.run(5.0)
    for _ in range(3):
        [link] = network.between(one, two)
        link.cut()
        network.run(5.0)
        assert (one.sessions, two.sessions) == ({"two"}, {"one"})


def test_a_node_that_connects_to_itself_stays_alone() -> None:
    network = Network()
    one = network.node("one", connect=["one"])
    network.run(5.0)
    assert one.sessions == set()
    assert "connected to itself" in one.node.plan.endpoints[0].error


def test_two_nodes_with_one_id_do_not_meet() -> None:
    network = Network()
    network.node("one", zid=b"\x07")
    two = network.node("two", zid=b"\x07", connect=["one"])
    network.run(5.0)
    assert not two.node.by_zid


def test_a_second_node_with_the_same_id_is_refused_until_the_lease_of_the_first_is_over() -> None:
    network = Network()
    network.node("one")
    first = network.node("first", zid=b"\x07", connect=["one"], lease=3000)
    network.settle()
    network.crash(first, silent=True)
    second = network.node("second", zid=b"\x07", connect=["one"])
    network.run(1.0)
    assert not second.node.by_zid
    network.run(6.0)
    assert second.sessions == {"one"}


def test_a_silent_death_is_noticed_after_the_lease_and_takes_everything_with_it() -> None:
    network = Network()
    one = network.node("one")
    two = network.node("two", connect=["one"], lease=2000)
    network.settle()
    deaths = one.watch_liveliness("**")
    two.node.local.liveliness.token("alive/two")
    two.subscribe("k")
    two.queryable("q", b"x")
    network.settle()
    network.crash(two, silent=True)
    died = network.now
    while deaths.changes() == [("put", "alive/two")]:
        network.step()
    assert 1.0 < network.now - died <= 2.0 + 0.001
    assert deaths.changes() == [("put", "alive/two"), ("delete", "alive/two")]
    assert len(one.node.tables.tree) == 0
    assert one.get("q").finals == 1


def all_pairs_deliver_once(network: Network, hosts: list[Host], round_: str) -> None:
    """Everybody publishes; everybody hears everybody once, and nothing else."""
    samples: dict[str, SampleRecorder] = {
        host.name: host.subscribe(f"{round_}/*") for host in hosts
    }
    network.settle()
    for host in hosts:
        host.put(f"{round_}/{host.name}", host.name.encode())
    network.settle()
    expected = sorted((f"{round_}/{host.name}", host.name.encode()) for host in hosts)
    for name, recorder in samples.items():
        assert sorted(recorder.values()) == expected, name
    for host in hosts:
        subscriber = samples[host.name].subscriber
        assert subscriber is not None
        host.node.local.unsubscribe(subscriber)
    network.settle()


@settings(max_examples=15)
@given(st.integers(0, 2**16), st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_after_any_weather_every_pair_delivers_exactly_once(seed: int, storms: list[int]) -> None:
    """Partitions long and short, cut links, links begun twice; then peace."""
    random = Random(seed)
    network = Network(random, Conditions(jitter=0.02, chunks=True))
    names = [f"p{number}" for number in range(4)]
    hosts = [
        network.node(name, connect=[other for other in names if other != name], lease=2000)
        for name in names
    ]
    network.run(1.0)
    for storm in storms:
        if storm == 0:
            cut = random.randint(1, 3)
            network.partition(hosts[:cut], hosts[cut:])
            network.run(random.random() * 10)
            network.heal()
        elif storm == 1:
            for link in network.links:
                if random.random() < 0.5:
                    link.cut()
        elif storm == 2:
            for link in network.links:
                if random.random() < 0.3:
                    link.silence()
        elif storm == 3:
            one, other = random.sample(hosts, 2)
            network.connect(one, other)
        elif storm == 4:
            random.choice(hosts).put("noise", b"x")
        network.run(random.random() * 3)
    network.run(20.0)
    for host in hosts:
        assert host.sessions == {other.name for other in hosts if other is not host}
    all_pairs_deliver_once(network, hosts, "round")
    for host in hosts:
        assert len(host.node.tables.tree) == 0  # no ghosts
        for face in host.node.tables.faces.values():
            assert face.announced == [{}, {}, {}]
            numbered = sum(len(key) + NUMBER for key in face.keys.theirs.values())
            assert face.account.used == numbered  # all else was given back

"""Clients: one upstream, which they never lose for long."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from zenlake.testing.network import Conditions, Network, Statuses


def test_a_client_and_a_peer_exchange_both_ways() -> None:
    network = Network()
    peer = network.node("peer")
    client = network.node("client", "client", connect=["peer"])
    network.settle()
    here, there = client.subscribe("down/**"), peer.subscribe("up/**")
    network.settle()
    client.put("up/1", b"a")
    peer.put("down/1", b"b")
    network.settle()
    assert there.values() == [("up/1", b"a")]
    assert here.values() == [("down/1", b"b")]
    assert client.node.sessions.settled()


def test_a_client_behind_a_router() -> None:
    network = Network()
    network.node("router", "router")
    one = network.node("one", "client", connect=["router"])
    two = network.node("two", "client", connect=["router"])
    network.settle()
    samples = two.subscribe("k")
    network.settle()
    one.put("k", b"1")
    network.settle()
    assert samples.values() == [("k", b"1")]


def test_clients_do_not_connect_to_clients() -> None:
    network = Network()
    network.node("one", "client", listen=True)
    two = network.node("two", "client", connect=["one"])
    network.run(5.0)
    assert two.sessions == set()


def test_a_client_comes_back_at_once_and_declares_everything_again() -> None:
    network = Network()
    peer = network.node("peer")
    client = network.node("client", "client", connect=["peer"])
    network.settle()
    local = client.node.local
    samples = client.subscribe("k/**")
    client.subscribe("k/**")
    replier = client.queryable("q", b"answer", complete=True)
    token = local.liveliness.token("alive")
    publisher = local.publisher("p", 5, True, 0, b"", 2)
    querier = local.querier("q2", 0, 2)
    watcher = client.watch_liveliness("**")
    statuses = Statuses()
    local.matching.watch(publisher, statuses)
    network.settle()
    heard = peer.subscribe("p")
    network.settle()
    for _ in range(3):
        [link] = network.between(peer, client)
        link.cut()
        assert client.sessions == set()
        network.run(0.1)
        assert client.sessions == {"peer"}
        network.settle()
    peer.put("k/1", b"x")
    answers = peer.get("q")
    publisher.put(b"y")
    network.settle()
    assert samples.values() == [("k/1", b"x")]
    assert answers.values() == [("q", b"answer")]
    assert len(replier.queries) == 1
    assert heard.values() == [("p", b"y")]
    assert peer.liveliness_get("**").keys() == ["alive"]
    assert publisher.matching
    assert not querier.matching
    assert statuses.changes == [True] + [False, True] * 3
    assert token.key == "alive"
    assert ("put", "alive") not in watcher.changes()[1:]


def test_a_client_tries_with_growing_pauses() -> None:
    network = Network()
    client = network.node("client", "client", connect=["peer"])
    tried: list[float] = []
    while network.now < 20:
        before = client.node.plan.next_id
        if not network.step():
            break
        if client.node.plan.next_id != before:
            tried.append(round(network.now, 1))
    assert [b - a for a, b in pairwise(tried)][:4] == [2.0, 4.0, 4.0, 4.0]


def test_a_client_takes_the_endpoint_that_answers() -> None:
    network = Network()
    network.node("c")
    client = network.node("client", "client", connect=["a", "b", "c"])
    network.run(0.5)
    assert client.sessions == {"c"}
    assert len(network.links) == 1


def test_a_client_changes_to_another_endpoint_when_its_own_dies() -> None:
    network = Network()
    a = network.node("a")
    b = network.node("b")
    client = network.node("client", "client", connect=["a", "b"])
    samples = client.subscribe("k")
    network.settle()
    assert client.sessions == {"a"}
    network.crash(a)
    network.run(5.0)
    assert client.sessions == {"b"}
    b.put("k", b"1")
    network.settle()
    assert samples.values() == [("k", b"1")]


def test_a_client_has_one_session_at_a_time() -> None:
    network = Network()
    network.node("a")
    network.node("b")
    client = network.node("client", "client", connect=["a", "b"])
    network.run(30.0)
    assert client.sessions == {"a"}
    assert len(network.links) == 1


def test_a_publisher_without_anybody_to_hear_it_sends_nothing() -> None:
    network = Network(conditions=Conditions())
    peer = network.node("peer")
    client = network.node("client", "client", connect=["peer"])
    network.settle()
    publisher = client.node.local.publisher("p", 5, True, 0, b"", 2)
    network.settle()
    said: list[bytes] = []
    network.tap = lambda one, other, batch: said.append(batch)
    publisher.put(b"into the void")
    network.run(0.1)
    assert said == []
    samples = peer.subscribe("*")
    network.settle()
    publisher.put(b"heard")
    network.settle()
    assert samples.values() == [("p", b"heard")]
    assert samples.subscriber is not None
    peer.node.local.unsubscribe(samples.subscriber)
    network.settle()
    said.clear()
    publisher.put(b"void again")
    network.run(0.1)
    assert said == []


def test_before_the_answer_to_its_interest_a_publisher_sends_everything() -> None:
    network = Network(Random(0), Conditions(latency=1.0))
    peer = network.node("peer")
    client = network.node("client", "client", connect=["peer"])
    samples = peer.subscribe("p")
    network.run(5.0)
    publisher = client.node.local.publisher("p", 5, True, 0, b"", 2)
    publisher.put(b"at once")
    network.run(1.5)
    assert samples.values() == [("p", b"at once")]


def test_an_interest_of_a_client_is_final_when_the_routers_north_have_answered() -> None:
    network = Network()
    network.node("router", "router", lease=60_000)
    far = network.node("far", "client", connect=["router"])
    network.node("peer", connect=["router"])
    client = network.node("client", "client", connect=["peer"])
    network.settle()
    far.node.local.liveliness.token("alive/far")
    far.subscribe("k")
    network.settle()
    assert client.liveliness_get("alive/*").finals == 0
    answers = client.liveliness_get("alive/*")
    publisher = client.node.local.publisher("k", 5, True, 0, b"", 2)
    network.settle()
    assert answers.keys() == ["alive/far"]
    assert answers.finals == 1
    assert publisher.matching
    # And nothing is left behind.
    peer_faces = network.hosts["peer"].node.tables.faces.values()
    assert sum(len(face.interests_out) for face in peer_faces) == 1


def test_a_north_that_never_answers_is_given_up_after_the_timeout() -> None:
    network = Network()
    router = network.node("router", "router", lease=100_000)
    peer = network.node("peer", connect=["router"])
    client = network.node("client", "client", connect=["peer"])
    network.settle()
    [link] = network.between(router, peer)
    link.silence()
    answers = client.liveliness_get("**", timeout=100.0)
    network.run(9.9)
    assert answers.finals == 0
    network.run(0.2)
    assert answers.finals == 1


def test_fragments_cross_a_chain_of_nodes_with_small_batches() -> None:
    network = Network(Random(4), Conditions(chunks=True, mtu=256))
    network.node("peer")
    one = network.node("one", "client", connect=["peer"])
    two = network.node("two", "client", connect=["peer"])
    network.settle()
    samples = two.subscribe("big")
    network.settle()
    payload = bytes(range(256)) * 400
    one.put("big", payload)
    network.settle()
    assert samples.values() == [("big", payload)]

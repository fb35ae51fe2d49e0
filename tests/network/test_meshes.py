"""Routers among routers: everything reaches everybody in reach once, whatever happens."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.network.continent import KEYS, Continent
from zenlake.routing.mesh import RowsBelow
from zenlake.routing.regions import NORTH
from zenlake.routing.resources import SUBSCRIBER
from zenlake.testing.network import Host, Network
from zenlake.wire import (
    Declare,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Frame,
    Interest,
    Push,
    Request,
    UndeclareSubscriber,
    read_batch,
)
from zenlake.wire.message import Message

ALL, ALL_COMPLETE = 1, 2


def chain(network: Network, count: int) -> tuple[list[Host], list[Host]]:
    """Routers in a row, each with a client."""
    routers = [network.node("r0", "router")]
    for n in range(1, count):
        routers.append(network.node(f"r{n}", "router", connect=[f"r{n - 1}"]))
    clients = [network.node(f"c{n}", "client", connect=[f"r{n}"]) for n in range(count)]
    network.settle()
    return routers, clients


def ring(network: Network, count: int) -> tuple[list[Host], list[Host]]:
    """Routers in a circle, each with a client."""
    routers, clients = chain(network, count)
    network.connect(routers[0], routers[-1])
    network.settle()
    return routers, clients


class Ear:
    """Hears what routers say to each other."""

    def __init__(self, network: Network) -> None:
        self.heard: list[tuple[str, str, Message]] = []
        network.tap = self.tap

    def tap(self, near: str, far: str, batch: bytes) -> None:
        if near.startswith("r") and far.startswith("r"):
            for frame in read_batch(batch[2:]):
                for message in frame.messages if isinstance(frame, Frame) else ():
                    self.heard.append((near, far, message))

    def of(self, kind: type) -> list[tuple[str, str, Message]]:
        return [each for each in self.heard if isinstance(each[2], kind)]


# ----------------------------------------------------------------------------------- examples


def test_in_a_ring_everybody_hears_everybody_once() -> None:
    network = Network(Random(1))
    _, clients = ring(network, 5)
    samples = [client.subscribe("k/**") for client in clients]
    network.settle()
    for n, client in enumerate(clients):
        client.put(f"k/{n}", b"%d" % n)
    network.settle()
    for recorder in samples:
        assert sorted(recorder.values()) == [(f"k/{n}", b"%d" % n) for n in range(5)]


def test_when_a_link_dies_the_other_way_round_is_taken() -> None:
    network = Network(Random(2))
    routers, clients = ring(network, 4)
    samples = [client.subscribe("k") for client in clients]
    network.settle()
    for n in range(4):
        for link in network.between(routers[n], routers[(n + 1) % 4]):
            link.silence()
        network.run(11.0)  # its lease is over
        for recorder in samples:
            recorder.samples.clear()
        clients[0].put("k", b"%d" % n)
        network.settle()
        assert [recorder.values() for recorder in samples] == [[("k", b"%d" % n)]] * 4
        network.run(10.0)  # and it is up again


def test_a_router_between_two_says_what_real_routers_say() -> None:
    network = Network(Random(3))
    _, clients = chain(network, 3)
    ear = Ear(network)
    samples = clients[0].subscribe("k/**")
    network.settle()
    told = [
        (near, far, message.node_id != 0, message.body.id, message.body.suffix)
        for near, far, message in ear.of(Declare)
        if isinstance(message, Declare) and isinstance(message.body, DeclareSubscriber)
    ]
    # No ids; whose it is, if not the sender's own; the key in two parts.
    assert told == [("r0", "r1", False, 0, "/**"), ("r1", "r2", True, 0, "/**")]
    clients[2].put("k/x", b"1")
    network.settle()
    assert samples.values() == [("k/x", b"1")]
    pushed = [
        (near, far, message.node_id != 0)
        for near, far, message in ear.of(Push)
        if isinstance(message, Push)
    ]
    assert pushed == [("r2", "r1", False), ("r1", "r0", True)]
    assert samples.subscriber is not None
    clients[0].node.local.unsubscribe(samples.subscriber)
    network.settle()
    withdrawn = [
        message.body
        for _, _, message in ear.of(Declare)
        if isinstance(message, Declare) and isinstance(message.body, UndeclareSubscriber)
    ]
    assert [(body.id, body.key is not None and body.key.suffix) for body in withdrawn] == [
        (0, "/**"),
        (0, "/**"),
    ]
    assert ear.of(Interest) == []


def test_several_subscribers_behind_one_way_cost_one_copy() -> None:
    network = Network(Random(4))
    _, clients = chain(network, 3)
    more = [network.node(f"d{n}", "client", connect=["r2"]) for n in range(3)]
    network.settle()
    samples = [each.subscribe("k") for each in (*clients[1:], *more)]
    network.settle()
    ear = Ear(network)
    clients[0].put("k", b"1")
    network.settle()
    assert [(near, far) for near, far, _ in ear.of(Push)] == [("r0", "r1"), ("r1", "r2")]
    assert [len(recorder.samples) for recorder in samples] == [1] * 5


def test_a_publisher_knows_of_subscribers_far_away() -> None:
    network = Network(Random(5))
    _, clients = chain(network, 3)
    publisher = clients[0].node.local.publisher("k", 5, True, 0, b"", 2)
    network.settle()
    assert not publisher.matching
    samples = clients[2].subscribe("k")
    network.settle()
    assert publisher.matching
    assert samples.subscriber is not None
    clients[2].node.local.unsubscribe(samples.subscriber)
    network.settle()
    assert not publisher.matching


def test_each_router_on_the_way_of_a_question_asks_its_own() -> None:
    network = Network(Random(6))
    _, clients = chain(network, 4)
    repliers = [client.queryable("q", b"%d" % n, complete=True) for n, client in enumerate(clients)]
    network.settle()
    assert repliers[0].queryable is not None
    clients[0].node.local.unqueryable(repliers[0].queryable)
    network.settle()
    ear = Ear(network)
    # Each router on the way has one of its own, and each region answers for itself: real
    # routers in a row give three answers, too.
    answers = clients[0].get("q", consolidation=1)
    network.settle()
    assert answers.finals == 1
    assert [(near, far) for near, far, _ in ear.of(Request)] == [
        ("r0", "r1"), ("r1", "r2"), ("r2", "r3"),
    ]  # fmt: skip
    assert len(answers.values()) == 3


def test_all_are_asked_once_and_there_is_one_end() -> None:
    network = Network(Random(7))
    _, clients = ring(network, 5)
    for n, client in enumerate(clients):
        client.queryable("q/*", b"%d" % n, complete=bool(n % 2))
    network.settle()
    for target, expected in ((ALL, 5), (ALL_COMPLETE, 2)):
        answers = clients[0].get("q/*", target=target, consolidation=1)
        network.settle()
        assert answers.finals == 1
        assert len(answers.values()) == expected


def test_a_question_ends_when_a_router_on_the_way_dies() -> None:
    network = Network(Random(8))
    routers, clients = chain(network, 4)
    clients[3].queryable("q")  # which never answers
    network.settle()
    answers = clients[0].get("q", timeout=60.0)
    network.settle()
    assert answers.finals == 0
    network.crash(routers[2])
    network.settle()
    assert answers.finals == 1


def test_the_completeness_of_a_queryable_far_away_is_kept_up_to_date() -> None:
    network = Network(Random(9))
    _, clients = chain(network, 3)
    ear = Ear(network)
    partly = clients[0].queryable("q", b"", complete=False)
    wholly = clients[0].queryable("q", b"", complete=True)
    network.settle()
    for replier in (wholly, partly):
        assert replier.queryable is not None
        clients[0].node.local.unqueryable(replier.queryable)
        network.settle()
    infos = [
        message.body.info
        for _, far, message in ear.of(Declare)
        if far == "r2" and isinstance(message, Declare)
        if isinstance(message.body, DeclareQueryable)
    ]
    assert infos == [0, 1, 0]
    answers = clients[2].get("q")
    network.settle()
    assert (answers.finals, answers.all) == (1, [])


def test_who_is_alive_is_known_everywhere_and_who_dies_is_missed() -> None:
    network = Network(Random(10))
    routers, clients = ring(network, 4)
    watcher = clients[0].watch_liveliness("alive/*")
    network.settle()
    clients[2].node.local.liveliness.token("alive/two")
    routers[3].node.local.liveliness.token("alive/three")
    network.settle()
    assert sorted(watcher.changes()) == [("put", "alive/three"), ("put", "alive/two")]
    answers = clients[1].liveliness_get("alive/**")
    network.settle()
    assert answers.finals == 1
    assert answers.keys() == ["alive/three", "alive/two"]
    network.crash(routers[2])
    network.settle()
    assert sorted(watcher.changes())[0] == ("delete", "alive/two")
    network.leave(routers[3])
    network.settle()
    assert ("delete", "alive/three") in watcher.changes()


def test_a_client_that_loses_nothing_hears_no_news_while_trees_change() -> None:
    network = Network(Random(11))
    routers, clients = ring(network, 4)
    clients[2].node.local.liveliness.token("alive")
    watcher = clients[0].watch_liveliness("alive", history=True)
    network.settle()
    for n in range(4):
        for link in network.between(routers[n], routers[(n + 1) % 4]):
            link.cut()
        network.settle()
        network.run(5.0)
    assert watcher.changes() == [("put", "alive")]


def test_a_router_that_comes_later_is_not_told_what_was_declared_before_it_came() -> None:
    network = Network(Random(15))
    routers, clients = chain(network, 3)
    gone = clients[0].node.local.liveliness.token("alive/gone")
    clients[0].node.local.liveliness.token("alive/kept")
    samples = clients[0].subscribe("k")
    network.settle()
    clients[0].node.local.liveliness.untoken(gone)
    assert samples.subscriber is not None
    clients[0].node.local.unsubscribe(samples.subscriber)
    network.settle()
    ear = Ear(network)
    network.crash(routers[1])
    network.settle()
    ear.heard.clear()
    network.node("r1", "router", connect=["r0", "r2"])
    network.settle()
    bodies = [each.body for _, _, each in ear.of(Declare) if isinstance(each, Declare)]
    assert [type(each) for each in bodies if not isinstance(each, DeclareKeyExpr)] == [
        DeclareToken,
        DeclareToken,
    ]


@pytest.mark.parametrize("away", [0.05, 0.5, 1.2])
def test_a_router_in_the_middle_that_is_restarted_is_met_again_at_once(away: float) -> None:
    network = Network(Random(17))
    middle = network.node("r1", "router")
    network.node("r0", "router", connect=["r1"])
    network.node("r2", "router", connect=["r1"])
    near = network.node("c0", "client", connect=["r0"])
    far = network.node("c2", "client", connect=["r2"])
    samples = far.subscribe("k")
    network.settle()
    network.crash(middle)
    network.run(away)
    network.node("r1", "router")
    network.run(max(away, 0.2) + 0.2)  # no longer than it was away, and the trees
    near.put("k", b"again")
    network.settle()
    assert samples.values() == [("k", b"again")]


def test_a_router_that_missed_an_end_while_trees_changed_is_told_of_it_again() -> None:
    network = Network(Random(16))
    routers, clients = ring(network, 4)
    token = clients[0].node.local.liveliness.token("alive")
    watcher = clients[2].watch_liveliness("alive", history=True)
    network.settle()
    # Whichever neighbour r2 hears it from, that link is dead, and nobody knows it yet.
    for n in (1, 3):
        for link in network.between(routers[2], routers[n]):
            link.silence()
        clients[0].node.local.liveliness.untoken(token)
        network.run(11.0)
        network.settle()
        assert watcher.changes()[-1] == ("delete", "alive")
        token = clients[0].node.local.liveliness.token("alive")
        network.run(10.0)
        network.settle()
        assert watcher.changes()[-1] == ("put", "alive")


def test_peers_of_a_router_meet_and_hear_each_other_and_the_far_side_once() -> None:
    network = Network(Random(12))
    _, clients = chain(network, 2)
    peers = [network.node(f"p{n}", "peer", connect=["r0"]) for n in range(3)]
    network.settle()
    assert all(len(peer.sessions) == 3 for peer in peers)
    samples = [each.subscribe("k/*") for each in (*peers, *clients)]
    network.settle()
    for n, each in enumerate((*peers, *clients)):
        each.put(f"k/{n}")
    network.settle()
    for recorder in samples:
        assert sorted(key for key, _ in recorder.values()) == [f"k/{n}" for n in range(5)]


@pytest.mark.parametrize("seed", range(4))
def test_a_peer_of_two_routers_is_heard_and_hears_once(seed: int) -> None:
    network = Network(Random(seed))
    routers, clients = chain(network, 3)
    peer = network.node("p", "peer", connect=["r0", "r1"])
    network.settle()
    everybody = [peer, *routers, *clients]
    samples = [each.subscribe("k/*") for each in everybody]
    for n, each in enumerate(everybody):
        each.queryable(f"q/{n}", b"")
    network.settle()
    for n, each in enumerate(everybody):
        each.put(f"k/{n}")
    network.settle()
    for recorder in samples:
        assert sorted(key for key, _ in recorder.values()) == [f"k/{n}" for n in range(7)]
    for each in everybody:
        answers = each.get("q/*", consolidation=1)
        network.settle()
        assert (answers.finals, answers.keys()) == (1, [f"q/{n}" for n in range(7)])
    # One of its routers dies: the other goes on, whichever led before.
    network.crash(routers[0])
    network.settle()
    network.run(2.0)
    samples[0].samples.clear()
    samples[-1].samples.clear()
    peer.put("k/after")
    clients[2].put("k/too")
    network.settle()
    assert sorted(key for key, _ in samples[0].values()) == ["k/after", "k/too"]
    assert sorted(key for key, _ in samples[-1].values()) == ["k/after", "k/too"]


def test_of_two_that_know_everything_the_nearer_is_asked() -> None:
    network = Network(Random(14))
    middle = network.node("r0", "router")
    near = network.node("r1", "router", connect=["r0"])
    far = network.node("r2", "router", connect=["r0"], link_weights=((middle.node.zid, 500),))
    client = network.node("c", "client", connect=["r0"])
    network.settle()
    far.queryable("q", b"far", complete=True)
    near.queryable("q", b"near", complete=True)
    network.settle()
    answers = client.get("q", consolidation=1)
    network.settle()
    assert answers.values() == [("q", b"near")]
    answers = client.get("q", consolidation=1, target=ALL)
    network.settle()
    assert sorted(answers.values()) == [("q", b"far"), ("q", b"near")]


def test_routers_stay_apart_from_each_others_past_lives() -> None:
    network = Network(Random(13))
    routers, clients = chain(network, 3)
    zid = routers[1].node.zid
    samples = clients[2].subscribe("k")
    network.settle()
    network.crash(routers[1])
    # The same id again, at once, with nothing remembered.
    network.node("r1", "router", connect=["r0"], zid=zid)
    network.run(20.0)
    network.settle()
    samples.samples.clear()
    clients[0].put("k", b"1")
    network.settle()
    assert samples.values() == [("k", b"1")]


def test_a_router_behind_a_newcomer_hears_what_is_declared_no_more() -> None:
    """All at once a key is undeclared, the way to a router breaks, and a new router leads there.

    The newcomer had nothing to miss; the one behind it had.
    """
    continent = Continent(Random(243))
    continent.found_router([])
    for others in [[87, 20, 54], [32, 41], [50], [89, 35, 40], [32, 40], [41]]:
        continent.found_router(others)
    for n in range(4):
        continent.found_client(n)
    continent.leave(3, 0)
    continent.connect(97, 21)
    continent.subscribe(44, "a/1")
    continent.connect(94, 69)
    continent.check()
    continent.unsubscribe(44)
    continent.leave(23, 0)
    continent.found_router([11, 66, 58])
    continent.cut(13)
    continent.cut(20)
    continent.found_router([43])
    continent.subscribe(41, "**")
    continent.unsubscribe(56)
    continent.cut(19)
    continent.connect(48, 6)
    continent.partition(243)
    continent.heal()
    continent.found_router([0])
    continent.check()


def test_a_newcomer_that_is_still_being_told_hears_of_it_when_one_is_behind_it() -> None:
    network = Network(Random(1))
    (old, me), _ = chain(network, 2)
    gone = me.subscribe("gone").subscriber
    assert gone is not None
    network.settle()
    me.node.local.unsubscribe(gone)
    network.settle()
    ear = Ear(network)
    new = network.node("r2", "router", connect=["r0", "r1"])
    network.settle()
    ear.heard.clear()
    network.sever(old, me)  # from now on the newcomer leads there
    mesh = me.node.borders.meshes[NORTH]
    while mesh.plan.deadline == float("inf"):
        assert network.step()
    network.run_until(mesh.plan.deadline - 0.01)
    # It has come a moment ago, and there is much to tell.
    face = me.node.by_zid[new.node.zid].face
    assert face is not None
    telling = RowsBelow(face, me.node.zid)
    telling.rows = [(SUBSCRIBER, f"k/{n}") for n in range(100)]
    mesh._telling[face.id, telling.root] = telling
    network.settle()
    bodies = [(near, far, word.body) for near, far, word in ear.heard if isinstance(word, Declare)]
    undeclared = [each[:2] for each in bodies if isinstance(each[2], UndeclareSubscriber)]
    assert undeclared == [("r1", "r2"), ("r2", "r0")]


# ----------------------------------------------------------------------------------- anything


class Mesh(RuleBasedStateMachine):
    """Routers and clients come and go as they like."""

    most = 8

    def __init__(self) -> None:
        super().__init__()
        self.continent = Continent(Random(0))

    @initialize(
        seed=st.integers(0, 1 << 16),
        links=st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=3), max_size=6),
        clients=st.integers(0, 4),
    )
    def begin(self, seed: int, links: list[list[int]], clients: int) -> None:
        self.continent = Continent(Random(seed))
        self.continent.found_router([])
        for others in links[: self.most - 1]:
            self.continent.found_router(others)
        for n in range(clients):
            self.continent.found_client(n)

    @rule(others=st.lists(st.integers(0, 99), min_size=1, max_size=3))
    def router(self, others: list[int]) -> None:
        if len(self.continent.routers) < self.most:
            self.continent.found_router(others)

    @rule(at=st.integers(0, 99))
    def client(self, at: int) -> None:
        if len(self.continent.clients) < self.most:
            self.continent.found_client(at)

    @rule(at=st.integers(0, 99), key=st.sampled_from(KEYS))
    def subscribe(self, at: int, key: str) -> None:
        self.continent.subscribe(at, key)

    @rule(at=st.integers(0, 99))
    def unsubscribe(self, at: int) -> None:
        self.continent.unsubscribe(at)

    @rule(at=st.integers(0, 99))
    def token(self, at: int) -> None:
        self.continent.token(at)

    @rule(at=st.integers(0, 99), how=st.integers(0, 2))
    def leave(self, at: int, how: int) -> None:
        self.continent.leave(at, how)

    @rule(one=st.integers(0, 99), other=st.integers(0, 99))
    def connect(self, one: int, other: int) -> None:
        self.continent.connect(one, other)

    @rule(at=st.integers(0, 99))
    def cut(self, at: int) -> None:
        self.continent.cut(at)

    @rule(side=st.integers(0, (1 << 20) - 1))
    def partition(self, side: int) -> None:
        self.continent.partition(side)

    @rule()
    def heal(self) -> None:
        self.continent.heal()

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.03, 0.12, 0.5, 2.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.continent.wait(seconds)

    @precondition(lambda self: self.continent.routers)
    @rule()
    def check(self) -> None:
        self.continent.check()

    def teardown(self) -> None:
        self.continent.check()


TestMesh = Mesh.TestCase
TestMesh.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


class LargeMesh(Mesh):
    """The same with many more."""

    most = 20


# A day of twenty routers takes half a second, and several beside a busy neighbour: thirty of
# them in every run, and as many as the night has time for.
TestLargeMesh = pytest.mark.nightly(day="network/test_meshes.py")(LargeMesh.TestCase)
TestLargeMesh = pytest.mark.timeout(240)(pytest.mark.slow(TestLargeMesh))
TestLargeMesh.settings = settings(
    max_examples=max(30, settings().max_examples // 100),
    stateful_step_count=60,
    deadline=None,
)

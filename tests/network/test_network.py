"""The simulated network itself: a tool that others rely on must not lie."""

from __future__ import annotations

import doctest
from random import Random

import pytest

import zenlake.testing.network as module
from zenlake.testing.network import Conditions, Network


def test_its_own_example_is_true() -> None:
    assert doctest.testmod(module).failed == 0


def chatter(seed: int) -> list[tuple[str, str, bytes]]:
    """Everything that is said in a small network under bad weather."""
    said: list[tuple[str, str, bytes]] = []
    weather = Conditions(jitter=0.05, chunks=True)
    network = Network(Random(seed), weather)
    network.tap = lambda one, other, batch: said.append((one, other, batch))
    sun = network.node("sun")
    earth = network.node("earth", connect=["sun"])
    network.node("moon", connect=["earth"])
    earth.subscribe("light/**")
    network.settle()
    sun.put("light/visible", b"warm")
    network.run(10.0)
    return said


def test_the_same_seed_gives_the_same_run() -> None:
    assert chatter(1) == chatter(1)
    assert chatter(1) != chatter(2)


def test_time_jumps_and_nothing_else_moves_it() -> None:
    network = Network()
    network.node("alone")
    network.run_until(1_000_000.0)
    assert network.now == 1_000_000.0


def test_a_link_takes_its_time() -> None:
    network = Network(conditions=Conditions(latency=2.0))
    one = network.node("one")
    two = network.node("two", connect=["one"])
    network.run_until(7.9)
    assert (one.sessions, two.sessions) == ({"two"}, set())
    network.run_until(8.1)
    assert two.sessions == {"one"}


def test_a_cut_link_is_noticed_and_a_silent_one_is_not() -> None:
    network = Network()
    one = network.node("one")
    two = network.node("two", "client", connect=["one"])
    network.settle()
    [link] = network.between(one, two)
    link.silence()
    network.run(1.0)
    assert one.sessions == {"two"}
    network.settle(within=100)
    link.cut()
    assert one.sessions == set()


def test_a_partition_keeps_streams_and_loses_datagrams() -> None:
    for stream, heard in ((True, [b"before", b"during", b"after"]), (False, [b"before", b"after"])):
        network = Network(conditions=Conditions(stream=stream))
        one = network.node("one")
        two = network.node("two", connect=["one"])
        samples = one.subscribe("k")
        network.settle()
        two.put("k", b"before")
        network.settle()
        network.partition([one], [two])
        two.put("k", b"during")
        network.run(1.0)
        assert samples.values() == [("k", b"before")]
        network.heal()
        two.put("k", b"after")
        network.settle()
        assert [value for _, value in samples.values()] == heard


def test_connections_fail_across_a_partition_and_to_nobody() -> None:
    network = Network()
    one = network.node("one")
    two = network.node("two", connect=["one", "nobody"])
    network.partition([one], [two])
    network.run(0.1)
    errors = [endpoint.error for endpoint in two.node.plan.endpoints]
    assert errors == ["sim/one: no route", "sim/nobody: connection refused"]


def test_lost_and_repeated_datagrams() -> None:
    network = Network(Random(3), Conditions(stream=False))
    one = network.node("one")
    two = network.node("two", connect=["one"])
    samples = one.subscribe("k")
    network.settle()
    [link] = network.between(one, two)
    link.conditions = Conditions(stream=False, loss=0.5, repeat=0.5)
    for number in range(100):
        two.put("k", bytes((number,)))
        network.run(0.01)
    values = [value[0] for _, value in samples.values()]
    assert 20 < len(values) < 80
    assert len(set(values)) == len(values)  # what comes twice is delivered once
    assert values == sorted(values)


def test_a_window_holds_a_sender_back() -> None:
    network = Network(conditions=Conditions(window=100, latency=1.0))
    one = network.node("one")
    two = network.node("two", connect=["one"])
    samples = one.subscribe("k")
    network.settle(quiet=2.5)
    taken = [two.put("k", b"x" * 30_000) for _ in range(10)]
    assert taken.count(True) < 10
    network.settle(quiet=2.5)
    assert len(samples.values()) == taken.count(True)


def test_a_crashed_node_is_gone_at_once_or_after_its_lease() -> None:
    for silent in (False, True):
        network = Network()
        one = network.node("one")
        two = network.node("two", connect=["one"])
        network.settle()
        network.crash(two, silent=silent)
        network.run(7.0)
        assert one.sessions == ({two.node.zid.hex()} if silent else set())
        network.run(3.0)
        assert one.sessions == set()


def test_a_node_that_leaves_says_goodbye() -> None:
    network = Network()
    one = network.node("one")
    two = network.node("two", connect=["one"])
    network.settle()
    samples = one.subscribe("k")
    network.settle()
    two.put("k", b"last words")
    network.leave(two)
    network.run(0.1)
    assert samples.values() == [("k", b"last words")]
    assert one.sessions == set()


def test_nodes_that_never_stop_talking_are_reported() -> None:
    network = Network()
    one = network.node("one")
    two = network.node("two", connect=["one"])
    one.subscribe("k")
    network.settle()

    def again() -> None:
        two.put("k")
        network.at(network.now + 0.1, again)

    again()
    with pytest.raises(TimeoutError, match="still talking after 5 s"):
        network.settle(within=5.0)

"""Filters of subscribers, asked by the router that sends to them."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.routing.policies import settings_of
from zenlake.engine.settings import limits_of
from zenlake.expr import SampleFields, compiled, parse
from zenlake.keys.matching import intersects
from zenlake.routing.face import CONTROL_QOS
from zenlake.routing.limits import DEFAULTS
from zenlake.testing.network import Host, Network, SampleRecorder
from zenlake.wire.codec_declare import DeclareSubscriber
from zenlake.wire.codec_network import Declare, Push
from zenlake.wire.codec_zenoh import Del


def router_and_two() -> tuple[Network, Host, Host, Host]:
    """A network, its router, a client that hears and one that speaks."""
    network = Network()
    router = network.node("router", "router")
    hearing = network.node("hearing", "client", connect=["router"])
    speaking = network.node("speaking", "client", connect=["router"])
    network.settle()
    return network, router, hearing, speaking


def said(network: Network, speaking: Host, key: str, *values: object) -> None:
    network.settle()
    for value in values:
        speaking.put(key, json.dumps(value).encode())
    network.settle()


def numbers(heard: SampleRecorder) -> list[int]:
    return [json.loads(value)["n"] for _, value in heard.values()]


def all_numbers(count: int = 6) -> list[dict[str, int]]:
    return [{"n": n} for n in range(count)]


def test_what_a_filter_is_not_true_of_is_not_sent() -> None:
    network, router, hearing, speaking = router_and_two()
    heard = hearing.subscribe("robot/**", filter="n<2 OR n=4")
    said(network, speaking, "robot/a", *all_numbers(), "no object")
    assert numbers(heard) == [0, 1, 4]
    assert router.node.filters.held_back == 4


def test_others_hear_everything() -> None:
    network, _, hearing, speaking = router_and_two()
    other = network.node("other", "client", connect=["router"])
    peer = network.node("peer", "peer", connect=["router"])
    network.settle()
    filtered = hearing.subscribe("robot/**", filter="n<2")
    everything = [other.subscribe("robot/**"), peer.subscribe("robot/*")]
    said(network, speaking, "robot/a", *all_numbers())
    assert numbers(filtered) == [0, 1]
    assert [numbers(one) for one in everything] == [[0, 1, 2, 3, 4, 5]] * 2


def test_a_filter_may_be_about_key_kind_and_encoding() -> None:
    network, _, hearing, speaking = router_and_two()
    text = "chunk(1)='a' AND kind()='put' AND encoding()='zenoh/bytes'"
    heard = hearing.subscribe("robot/**", filter=text)
    network.settle()
    for key in ("robot/a", "robot/b", "robot/a/x"):
        speaking.put(key, b"\xff")
        gone = speaking.node.local.publication(0, key, 5, True, 0, b"", 2)
        gone.publish(Push(scope=0, suffix=key, body=Del()))
    network.settle()
    assert heard.values() == [("robot/a", b"\xff"), ("robot/a/x", b"\xff")]


def test_between_routers_everything_is_sent_and_the_last_one_asks() -> None:
    network = Network()
    network.node("far", "router")
    near = network.node("near", "router", connect=["far"])
    hearing = network.node("hearing", "client", connect=["near"])
    speaking = network.node("speaking", "client", connect=["far"])
    network.settle()
    heard = hearing.subscribe("robot/**", filter="n<2")
    said(network, speaking, "robot/a", *all_numbers())
    assert numbers(heard) == [0, 1]
    assert near.node.filters.held_back == 4


def test_filters_come_and_go_with_their_subscribers() -> None:
    network, router, hearing, speaking = router_and_two()
    first = hearing.subscribe("k", filter="n<1")
    said(network, speaking, "k", *all_numbers(4))
    second = hearing.subscribe("k", filter="n=3")
    said(network, speaking, "k", *all_numbers(4))
    third = hearing.subscribe("k")
    said(network, speaking, "k", *all_numbers(4))
    for gone in (third, second):
        assert gone.subscriber is not None
        hearing.node.local.unsubscribe(gone.subscriber)
    said(network, speaking, "k", *all_numbers(4))
    assert numbers(first) == [0, *[0, 3], *[0, 1, 2, 3], 0]
    assert router.node.tables.filters == 1
    network.leave(hearing)
    network.settle()
    assert router.node.tables.filters == 0


FILTERS = ["", "n<2", "n>=2", "n=1 OR n=3", "chunk(1)='a'", "n BETWEEN 1 AND 2"]
KEYS = ["k/a", "k/b", "k/*", "k/**", "**"]
subscriptions = st.tuples(
    st.sampled_from(["one", "two"]), st.sampled_from(KEYS), st.sampled_from(FILTERS)
)


@given(st.lists(subscriptions, min_size=1, max_size=6), st.data())
def test_nobody_misses_what_its_filter_is_true_of(
    wanted: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """A client is sent a sample if one of its subscribers has no filter or one that is true."""
    network = Network()
    network.node("router", "router")
    hosts = {name: network.node(name, "client", connect=["router"]) for name in ("one", "two")}
    speaking = network.node("speaking", "client", connect=["router"])
    network.settle()
    held: list[tuple[str, str, str, SampleRecorder]] = []
    for name, key, text in wanted:
        held.append((name, key, text, hosts[name].subscribe(key, filter=text)))
        if data.draw(st.booleans()):
            network.settle()
    for gone in data.draw(st.sets(st.sampled_from(range(len(held))))):
        name, _, _, recorder = held[gone]
        assert recorder.subscriber is not None
        hosts[name].node.local.unsubscribe(recorder.subscriber)
    left = [
        one for one in held if one[3].subscriber in hosts[one[0]].node.local.subscribers.values()
    ]
    for key in ("k/a", "k/b"):
        said(network, speaking, key, *all_numbers(4))

    def wants(name: str, key: str, n: int) -> bool:
        return any(
            not text or compiled(parse(text))(SampleFields({"n": n}, key)) is True
            for other, expr, text, _ in left
            if other == name and intersects(expr, key)
        )

    for name, expr, _, recorder in left:
        assert [(key, json.loads(value)["n"]) for key, value in recorder.values()] == [
            (key, n)
            for key in ("k/a", "k/b")
            for n in range(4)
            if intersects(expr, key) and wants(name, key, n)
        ]


def declared(network: Network, hearing: Host, id: int, key: str, filter: bytes) -> None:
    """A subscriber of the client's own, with any filter."""
    (face,) = [face for face in hearing.node.tables.faces.values() if face.outbox is not None]
    body = DeclareSubscriber(id=id, scope=0, suffix=key, filter=filter)
    face.send(Declare(qos=CONTROL_QOS, body=body))
    network.settle()


def test_a_filter_that_is_none_for_routers_filters_nothing() -> None:
    hostile = [
        b"n <", b"\xff", b"n<" + b"1" * 5000, b"(" * 900 + b"n<1" + b")" * 90, b"time()<now()",
        b"n<%0", b"reflect('java.lang.System')", b"n IN (" + b"1," * 400 + b"1)",
    ]  # fmt: skip
    for text in hostile:
        network, router, hearing, speaking = router_and_two()
        heard = hearing.subscribe("other")
        hearing.node.local._subscribers.insert("k", [heard.subscriber])  # type: ignore[list-item]
        declared(network, hearing, 1000, "k", text)
        said(network, speaking, "k", *all_numbers(3))
        assert numbers(heard) == [0, 1, 2], text
        (face,) = [f for f in router.node.tables.faces.values() if f.zid == hearing.node.zid]
        assert face.ignored == 1
        assert face.filters == {}


def test_one_filter_too_many_filters_nothing() -> None:
    network = Network()
    router = network.node("router", "router", limits=replace(DEFAULTS, filters=2))
    hearing = network.node("hearing", "client", connect=["router"])
    speaking = network.node("speaking", "client", connect=["router"])
    network.settle()
    heard = [hearing.subscribe(f"k/{n}", filter="n<1") for n in range(3)]
    for n in range(3):
        said(network, speaking, f"k/{n}", *all_numbers(3))
    assert [numbers(one) for one in heard] == [[0], [0], [0, 1, 2]]
    assert router.node.tables.filters == 2


def test_a_router_whose_limit_is_none_asks_no_filter() -> None:
    limits = limits_of(settings_of(limits={"session": {"filters": 0}}).limits)
    network = Network()
    router = network.node("router", "router", limits=limits)
    hearing = network.node("hearing", "client", connect=["router"])
    speaking = network.node("speaking", "client", connect=["router"])
    network.settle()
    heard = hearing.subscribe("k", filter="n<1")
    said(network, speaking, "k", *all_numbers(3))
    assert numbers(heard) == [0, 1, 2]
    assert router.node.tables.filters == 0

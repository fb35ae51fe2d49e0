"""Programs in a namespace: they call keys by what follows its prefix, whoever they speak with."""

from __future__ import annotations

import pytest

from tests.network.test_policy import seen
from tests.routing.policies import policy_of
from zenlake.routing.policy import KINDS
from zenlake.testing.network import Host, Network, Replier, SampleRecorder, Statuses

SITE = policy_of(namespace="site/a")


def pair(mode: str) -> tuple[Network, Host, Host]:
    """A node in a namespace and one in none, both at a router."""
    network = Network()
    network.node("router", "router")
    within = network.node("within", mode, connect=["router"], policy=SITE)
    without = network.node("without", "client", connect=["router"])
    network.settle()
    return network, within, without


@pytest.mark.parametrize("mode", ["client", "peer"])
def test_values_leave_with_the_prefix_and_come_without(mode: str) -> None:
    network, within, without = pair(mode)
    inner, outer = within.subscribe("**"), without.subscribe("**")
    network.settle()
    within.put("pose", b"1")
    without.put("site/a/goal", b"2")
    without.put("site/b/goal", b"3")
    without.put("site/a", b"4")
    without.put("goal", b"5")
    without.put("site/*/goal", b"6")
    network.settle()
    assert inner.values() == [("pose", b"1"), ("goal", b"2"), ("goal", b"6")]
    assert outer.values()[:2] == [("site/a/goal", b"2"), ("site/b/goal", b"3")]
    assert ("site/a/pose", b"1") in outer.values()


@pytest.mark.parametrize("mode", ["client", "peer"])
def test_questions_and_answers(mode: str) -> None:
    network, within, without = pair(mode)
    far = without.queryable("site/a/far", b"far")
    near = within.queryable("near", b"near")
    stray = without.queryable("far", b"stray")
    network.settle()
    answers = [
        within.get("far"),
        within.get("near"),
        within.get("**"),
        without.get("site/*/near"),
        without.get("near"),
    ]
    network.settle()
    assert [sorted(one.values()) for one in answers] == [
        [("far", b"far")],
        [("near", b"near")],
        [("far", b"far"), ("near", b"near")],
        [("site/a/near", b"near")],
        [],
    ]
    assert [question.key for question in far.queries] == ["site/a/far", "site/a/**"]
    assert [question.key for question in near.queries] == ["near", "**", "near"]
    assert stray.queries == []
    assert [one.finals for one in answers] == [1] * 5


@pytest.mark.parametrize("mode", ["client", "peer"])
def test_who_is_alive(mode: str) -> None:
    network, within, without = pair(mode)
    seen = within.watch_liveliness("**", history=True), without.watch_liveliness("**", history=True)
    network.settle()
    inner, outer = (
        within.node.local.liveliness.token("inner"),
        without.node.local.liveliness.token("site/a/outer"),
    )
    without.node.local.liveliness.token("other")
    network.settle()
    answers = within.liveliness_get("*"), without.liveliness_get("**")
    network.settle()
    assert answers[0].keys() == ["inner", "outer"]
    assert set(answers[1].keys()) == {"site/a/inner", "site/a/outer", "other"}
    within.node.local.liveliness.untoken(inner)
    without.node.local.liveliness.untoken(outer)
    network.settle()
    assert sorted(seen[0].changes()) == [
        ("delete", "inner"), ("delete", "outer"), ("put", "inner"), ("put", "outer"),
    ]  # fmt: skip
    assert ("delete", "site/a/inner") in seen[1].changes()


def test_publishers_and_queriers_match_inside_alone() -> None:
    network, within, without = pair("client")
    local = within.node.local
    publisher = local.publisher("p", 5, True, 0, b"", 1)
    querier = local.querier("q", 0, 1)
    statuses = [Statuses(), Statuses()]
    local.matching.watch(publisher, statuses[0])
    local.matching.watch(querier, statuses[1])
    without.subscribe("p")
    without.queryable("q")
    network.settle()
    assert [one.changes for one in statuses] == [[], []]
    samples = without.subscribe("site/*/p")
    without.queryable("site/a/q")
    network.settle()
    assert [one.changes for one in statuses] == [[True], [True]]
    publisher.put(b"x")
    network.settle()
    assert samples.values() == [("site/a/p", b"x")]


def test_two_in_one_namespace_meet_as_if_there_were_none() -> None:
    network = Network()
    network.node("router", "router")
    near = network.node("near", "client", connect=["router"], policy=SITE)
    far = network.node("far", "client", connect=["router"], policy=SITE)
    network.settle()
    near.node.local.declare_key("put/k")
    assert seen(network, near, far) == dict.fromkeys(KINDS, True)


def test_options_of_publications_are_what_the_configuration_says() -> None:
    config = {"priority": "real_time", "congestion_control": "block", "express": True}
    items = [
        {"key_exprs": ["fast/**"], "config": config},
        {"key_exprs": ["home/*"], "config": {"allowed_destination": "session_local"}},
        {"key_exprs": ["**"], "config": {"reliability": "best_effort"}},
    ]
    network = Network()
    near = network.node("near", policy=policy_of(qos={"publication": items}))
    far = network.node("far", connect=["near"])
    network.settle()
    heard, own = far.subscribe("**"), near.subscribe("**")
    network.settle()
    for key in ("fast/k", "home/k", "slow/k"):
        near.put(key)
        near.node.local.publisher(key, 5, True, 0, b"", 2).put(b"")
    network.settle()
    found = {(str(one.key_expr), one.qos.byte, one.reliability.name) for one in heard.samples}
    assert found == {("fast/k", 0x19, "RELIABLE"), ("slow/k", 5, "BEST_EFFORT")}
    assert len(own.samples) == 6


def test_what_is_of_the_node_itself_is_in_no_namespace() -> None:
    network, within, without = pair("peer")
    heard, replier = SampleRecorder(), Replier(within.node, "@/node/x", b"answer")
    within.node.local.queryable("@/node/**", replier, False, no_namespace=True)
    subscriber = within.node.local.subscribe("@/node/config/**", heard, no_namespace=True)
    network.settle()
    without.put("@/node/config/k", b"1")
    answers = without.get("@/*/x"), without.get("@/node/x", target=2), within.get("@/node/x")
    network.settle()
    assert heard.values() == [("@/node/config/k", b"1")]
    assert [one.values() for one in answers] == [[("@/node/x", b"answer")], [], []]
    assert [question.key for question in replier.queries] == ["@/*/x"]
    within.node.local.unsubscribe(subscriber)
    network.settle()
    without.put("@/node/config/k", b"2")
    network.settle()
    assert len(heard.samples) == 1

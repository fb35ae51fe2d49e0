"""Nodes that obey their policy: each interceptor, in both flows, seen from outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.routing.policies import access_control, applying, policy_of, rule, subject
from zenlake.clock import ZenohId
from zenlake.node.entities import Publication
from zenlake.routing.policy import FLOWS, KINDS, Policy, Subject
from zenlake.testing.network import Host, Network
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Del, Put

EVERYBODY = [subject("everybody")]


def seen(network: Network, near: Host, far: Host) -> dict[str, bool]:
    """Which of the nine things that `near` does, under keys of their own, come to pass.

    A refusal must leave nobody waiting: each question is answered finally, long before its time.
    """
    found: dict[str, bool] = {}
    # Whatever has to be there first.
    heard = {kind: far.subscribe(f"{kind}/k") for kind in ("put", "delete")}
    repliers = {kind: far.queryable(f"{kind}/k", b"answer") for kind in ("query", "reply")}
    for kind in ("liveliness_query", "declare_liveliness_subscriber"):
        far.node.local.liveliness.token(f"{kind}/k")
    publisher = far.node.local.publisher("declare_subscriber/k", 5, True, 0, b"", 2)
    querier = far.node.local.querier("declare_queryable/k", 0, 2)
    network.settle()
    near.put("put/k", b"value")
    delete = Publication(near.node, near.node.routes, 0, "delete/k", 5, True, 0, b"", 2)
    delete.publish(Push(scope=0, suffix="delete/k", body=Del()))
    answers = {kind: near.get(f"{kind}/k") for kind in ("query", "reply")}
    near.subscribe("declare_subscriber/k")
    near.queryable("declare_queryable/k")
    near.node.local.liveliness.token("liveliness_token/k")
    alive = near.liveliness_get("liveliness_query/*")
    watcher = near.watch_liveliness("declare_liveliness_subscriber/*", history=True)
    network.settle()
    token = far.liveliness_get("liveliness_token/*")
    network.settle()
    found["put"] = heard["put"].values() == [("put/k", b"value")]
    found["delete"] = heard["delete"].changes() == [("delete", "delete/k")]
    found["query"] = len(repliers["query"].queries) == 1
    found["reply"] = answers["reply"].values() == [("reply/k", b"answer")]
    found["declare_subscriber"] = far.node.local.matching.of_publisher(publisher)
    found["declare_queryable"] = far.node.local.matching.of_querier(querier)
    found["liveliness_token"] = token.keys() == ["liveliness_token/k"]
    found["liveliness_query"] = alive.keys() == ["liveliness_query/k"]
    found["declare_liveliness_subscriber"] = watcher.changes() == [
        ("put", "declare_liveliness_subscriber/k")
    ]
    for one in (*answers.values(), alive, token):
        assert one.finals == 1
        assert one.errors() == []
    return found


def denying(kind: str, *flows: str) -> Policy:
    """Everything but one kind of message, on keys that begin with its name."""
    no = rule("no", "deny", f"{kind}/**", messages=[kind], flows=list(flows))
    return policy_of(
        access_control=access_control("allow", [no], EVERYBODY, [applying(["no"], ["everybody"])])
    )


def permitting_others(kind: str, *flows: str) -> Policy:
    """The same by rules that allow all the rest."""
    every = [f"{each}/*" for each in KINDS]
    rules = [
        rule(
            each,
            "allow",
            *(key for key in every if each != kind or key != f"{kind}/*"),
            messages=[each],
            flows=list(flows),
        )
        for each in KINDS
    ]
    others = [rule("others", "allow", "**", flows=[flow for flow in FLOWS if flow not in flows])]
    if set(flows) == set(FLOWS):
        others = []
    names = [str(one["id"]) for one in (*rules, *others)]
    return policy_of(
        access_control=access_control(
            "deny", [*rules, *others], EVERYBODY, [applying(names, ["everybody"])]
        )
    )


def house(policy: Policy) -> tuple[Network, Host, Host, Host]:
    """Two clients of a router that has a policy."""
    network = Network()
    router = network.node("router", "router", policy=policy)
    near = network.node("near", "client", connect=["router"])
    far = network.node("far", "client", connect=["router"])
    network.settle()
    return network, near, router, far


#: Routers do not ask clients who is alive, so nothing of the kind leaves them.
SAID_BY_ROUTERS = [kind for kind in KINDS if not kind.endswith(("_query", "liveliness_subscriber"))]

#: Ways to keep a client from one thing.
WAYS: dict[str, Callable[[str, str], Policy]] = {
    "denied": lambda kind, flow: denying(kind, flow),
    "not allowed": lambda kind, flow: permitting_others(kind, flow),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_router_lets_everything_in_but_what_is_refused(kind: str, way: str) -> None:
    network, near, router, far = house(WAYS[way](kind, "ingress"))
    assert seen(network, near, far) == {each: each != kind for each in KINDS}
    stops = router.node.sessions.stops()
    assert stops["ingress"]["denied"] > 0
    assert stops["egress"]["denied"] == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SAID_BY_ROUTERS)
def test_a_router_lets_everything_out_but_what_is_refused(kind: str, way: str) -> None:
    network, near, router, far = house(WAYS[way](kind, "egress"))
    assert seen(network, near, far) == {each: each != kind for each in KINDS}
    stops = router.node.sessions.stops()
    assert stops["egress"]["denied"] > 0
    assert stops["ingress"]["denied"] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["client", "peer"])
def test_a_node_obeys_in_what_it_says_itself(kind: str, mode: str) -> None:
    network = Network()
    network.node("router", "router")
    flows = ("ingress", "egress")
    near = network.node("near", mode, connect=["router"], policy=denying(kind, *flows))
    far = network.node("far", "client", connect=["router"])
    network.settle()
    assert seen(network, near, far) == {each: each != kind for each in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flow", FLOWS)
def test_routers_obey_among_themselves(kind: str, flow: str) -> None:
    network = Network()
    network.node("one", "router", policy=denying(kind, flow))
    network.node("two", "router", connect=["one"])
    near = network.node("near", "client", connect=["one"])
    far = network.node("far", "client", connect=["two"])
    network.settle()
    asks = kind.endswith(("_query", "liveliness_subscriber"))
    refused = {kind} if flow == "ingress" or not asks else set()
    assert seen(network, near, far) == {each: each not in refused for each in KINDS}


def test_rules_are_for_those_whom_they_name() -> None:
    network = Network()
    known = ZenohId(b"\x07" * 15 + b"\x01")
    section = access_control(
        "deny",
        [rule("all", "allow", "**")],
        [subject("known", zids=[str(known)]), subject("elsewhere", link_protocols=["tls"])],
        [applying(["all"], ["known", "elsewhere"])],
    )
    router = network.node("router", "router", policy=policy_of(access_control=section))
    friend = network.node("friend", "client", connect=["router"], zid=bytes(known))
    stranger = network.node("stranger", "client", connect=["router"])
    network.settle()
    heard = friend.subscribe("k/*"), stranger.subscribe("k/*"), router.subscribe("k/*")
    network.settle()
    friend.put("k/friend")
    stranger.put("k/stranger")
    router.put("k/router")
    network.settle()
    # A session hears itself; its router does not stand between.
    assert [each for each, _ in heard[0].values()] == ["k/friend", "k/router"]
    assert [each for each, _ in heard[1].values()] == ["k/stranger"]
    assert sorted(each for each, _ in heard[2].values()) == ["k/friend", "k/router"]


def test_what_is_declared_no_more_is_taken_back_only_where_it_was_told() -> None:
    section = access_control(
        "allow",
        [rule("no", "deny", "secret/**", messages=["declare_subscriber"], flows=["egress"])],
        EVERYBODY,
        [applying(["no"], ["everybody"])],
    )
    network, near, router, far = house(policy_of(access_control=section))
    publisher = far.node.local.publisher("**", 5, True, 0, b"", 2)
    network.settle()
    samples = [near.subscribe("secret/k"), near.subscribe("open/k")]
    network.settle()
    [link] = far.node.neighbours
    assert link.face is not None
    assert set(link.face.declared[0].values()) == {"open/k"}
    for one in samples:
        assert one.subscriber is not None
        near.node.local.unsubscribe(one.subscriber)
    network.settle()
    assert link.face.declared[0] == {}
    assert not far.node.local.matching.of_publisher(publisher)
    assert router.node.sessions.stops()["egress"]["denied"] == 2


@pytest.mark.parametrize("flow", FLOWS)
def test_messages_are_thinned_out(flow: str) -> None:
    item = {
        "messages": ["put", "query"],
        "flows": [flow],
        "rules": [
            {"key_expr": "never/**", "freq": 0.0},
            {"key_expr": "often/**", "freq": 10.0},
        ],
    }
    network, near, router, far = house(policy_of(downsampling=[item]))
    heard = far.subscribe("**")
    replier = far.queryable("often/q", b"answer")
    network.settle()
    for number in range(100):
        near.put(f"often/{number}")
        near.put(f"always/{number}")
        near.put("never/k")
        network.run(0.02)
    network.settle()
    keys = [key.partition("/")[0] for key, _ in heard.values()]
    assert keys.count("always") == 100
    assert keys.count("never") == 0
    assert keys.count("often") == 20
    asked = [near.get("often/q") for _ in range(5)]
    network.settle()
    # Those that were not asked end as well, without an answer.
    assert [one.finals for one in asked] == [1] * 5
    assert [len(one.all) for one in asked] == [1, 0, 0, 0, 0]
    assert len(replier.queries) == 1
    assert router.node.sessions.stops()[flow]["downsampled"] == 80 + 100 + 4


def test_publications_of_the_node_itself_are_thinned_out() -> None:
    item = {"messages": ["put"], "rules": [{"key_expr": "**", "freq": 1.0}], "flows": ["egress"]}
    network = Network()
    near = network.node("near", policy=policy_of(downsampling=[item]))
    far = network.node("far", connect=["near"])
    network.settle()
    heard, own = far.subscribe("k"), near.subscribe("k")
    network.settle()
    for _ in range(30):
        assert near.put("k")
        network.run(0.1)
    assert len(heard.samples) == 3
    assert len(own.samples) == 30


@pytest.mark.parametrize("flow", FLOWS)
def test_what_is_too_large_does_not_pass(flow: str) -> None:
    item = {
        "messages": ["put", "reply"],
        "flows": [flow],
        "key_exprs": ["small/**"],
        "size_limit": 10,
    }
    network, near, router, far = house(policy_of(low_pass_filter=[item]))
    heard = far.subscribe("**")
    network.settle()
    near.put("small/k", bytes(10))
    near.put("small/k", bytes(11))
    near.put("large/k", bytes(100_000))
    publication = Publication(near.node, near.node.routes, 0, "small/k", 5, True, 0, b"", 2)
    body = Put(payload=bytes(8), attachment=bytes(3))
    publication.publish(Push(scope=0, suffix="small/k", body=body))
    far.queryable("small/q", bytes(11))
    far.queryable("large/q", bytes(11))
    network.settle()
    answers = [near.get("small/q"), near.get("large/q")]
    network.settle()
    assert [len(payload) for _, payload in heard.values()] == [10, 100_000]
    assert [one.keys() for one in answers] == [[], ["large/q"]]
    assert [one.finals for one in answers] == [1, 1]
    assert router.node.sessions.stops()[flow]["too_large"] == 3


@pytest.mark.parametrize("flow", FLOWS)
def test_the_lane_is_what_the_configuration_says(flow: str) -> None:
    item = {
        "messages": ["put"],
        "flows": [flow],
        "key_exprs": ["log/**"],
        "overwrite": {"priority": "background", "congestion_control": "block", "express": True},
    }
    network, near, router, far = house(policy_of(qos={"network": [item]}))
    heard = far.subscribe("**")
    network.settle()
    near.put("log/k", qos=1)
    near.put("other/k", qos=1)
    network.settle()
    assert {str(one.key_expr): one.qos.byte for one in heard.samples} == {
        "log/k": 0x1F,
        "other/k": 1,
    }
    assert router.node.sessions.stops()[flow]["overwritten"] == 1


def test_gates_work_together() -> None:
    """A message that is refused or too large does not use up the turn of another."""
    section = access_control(
        "allow",
        [rule("no", "deny", "k/denied", messages=["put"], flows=["ingress"])],
        EVERYBODY,
        [applying(["no"], ["everybody"])],
    )
    policy = policy_of(
        access_control=section,
        downsampling=[
            {"messages": ["put"], "flows": ["ingress"], "rules": [{"key_expr": "k/*", "freq": 1}]}
        ],
        low_pass_filter=[
            {"messages": ["put"], "flows": ["ingress"], "key_exprs": ["**"], "size_limit": 5}
        ],
        qos={"network": [{"messages": ["put"], "overwrite": {"priority": 1}, "flows": ["egress"]}]},
    )
    network, near, router, far = house(policy)
    heard = far.subscribe("**")
    network.settle()
    near.put("k/denied")
    near.put("k/large", bytes(6))
    near.put("k/first", qos=5)
    near.put("k/second")
    network.settle()
    assert [(str(one.key_expr), one.qos.byte) for one in heard.samples] == [("k/first", 6)]
    assert router.node.sessions.stops() == {
        "ingress": {"denied": 1, "downsampled": 1, "too_large": 1, "overwritten": 0},
        "egress": {"denied": 0, "downsampled": 0, "too_large": 0, "overwritten": 1},
    }


def test_a_new_policy_is_obeyed_at_once_and_the_counts_stay() -> None:
    network, near, router, far = house(denying("put", "ingress"))
    told: list[tuple[str, str, str, str]] = []
    router.node.on_stopped = lambda _, flow, reason, kind, key: told.append(
        (flow, reason, kind, key)
    )
    heard = far.subscribe("put/*")
    network.settle()
    near.put("put/1")
    network.settle()
    assert told == [("ingress", "denied", "put", "put/1")]
    router.node.obey(Policy())
    near.put("put/2")
    network.settle()
    router.node.obey(denying("put", "egress"))
    near.put("put/3")
    network.settle()
    network.leave(near)
    network.settle()
    assert [key for key, _ in heard.values()] == ["put/2"]
    assert told[1:] == [("egress", "denied", "put", "put/3")]
    stops = router.node.sessions.stops()
    assert (stops["ingress"]["denied"], stops["egress"]["denied"]) == (1, 1)


keys = st.sampled_from(["a", "a/b", "a/b/c", "b", "b/c", "c/a"])
rules = st.lists(
    st.tuples(
        st.sampled_from(["allow", "deny"]),
        st.sampled_from(["**", "a/**", "*/b", "a", "b/*", "c/a", "*/*"]),
        st.sampled_from([["ingress"], ["egress"], ["ingress", "egress"]]),
    ),
    max_size=4,
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["allow", "deny"]), rules, st.lists(keys, min_size=1, max_size=12))
def test_exactly_what_both_gates_permit_arrives(
    default: str, given_rules: list[tuple[str, str, list[str]]], puts: list[str]
) -> None:
    made = [
        rule(f"r{n}", what, key, flows=flows, messages=["put"])
        for n, (what, key, flows) in enumerate(given_rules)
    ]
    declare = rule("declare", "allow", "**", messages=["declare_subscriber"])
    names = [str(one["id"]) for one in (*made, declare)]
    policy = policy_of(
        access_control=access_control(
            default, [*made, declare], EVERYBODY, [applying(names, ["everybody"])]
        )
    )
    network, near, router, far = house(policy)
    heard = far.subscribe("**")
    network.settle()
    for key in puts:
        near.put(key)
    network.settle()
    access = policy.access_of(Subject())
    assert access is not None
    permitted = [key for key in puts if access.permits(0, 0, key) and access.permits(1, 0, key)]
    assert [key for key, _ in heard.values()] == permitted
    counts = router.node.sessions.stops()
    stopped = counts["ingress"]["denied"] + counts["egress"]["denied"]
    assert stopped == len(puts) - len(permitted)


def test_a_changed_lane_is_not_remembered_beyond_its_policy() -> None:
    item = {"messages": ["put"], "overwrite": {"priority": "background"}, "flows": ["ingress"]}
    network, near, router, far = house(policy_of(qos={"network": [item]}))
    heard = far.subscribe("k")
    network.settle()
    for policy in (None, Policy()):
        if policy is not None:
            router.node.obey(policy)
        for _ in range(3):
            near.put("k", qos=1)
            network.settle()
    assert [one.qos.byte for one in heard.samples] == [7, 7, 7, 1, 1, 1]


@pytest.mark.parametrize("flow", FLOWS)
def test_a_way_that_was_taken_before_is_closed_by_a_new_policy(flow: str) -> None:
    """What passed in the fast lanes a moment ago is judged from now on."""
    network, near, router, far = house(Policy())
    heard, here = far.subscribe("put/k"), router.subscribe("put/k")
    replier = near.queryable("reply/k", b"answer")
    network.settle()
    for _ in range(3):
        near.put("put/k")
        router.put("put/k")
        network.settle()
    assert len(heard.samples) == len(here.samples) == 6
    assert len(router.get("reply/k").all) == 0
    network.settle()
    router.node.obey(denying("put", flow))
    near.put("put/k")
    router.put("put/k")
    network.settle()
    # Its own words the router does not hear from without, and does not send out.
    assert len(here.samples) == (7 if flow == "ingress" else 8)
    assert len(heard.samples) == (7 if flow == "ingress" else 6)
    router.node.obey(denying("reply", "ingress"))
    answers = router.get("reply/k"), far.get("reply/k")
    network.settle()
    assert [one.all for one in answers] == [[], []]
    assert [one.finals for one in answers] == [1, 1]
    assert len(replier.queries) == 3

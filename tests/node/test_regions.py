"""Gateways in a simulated network: who hears whom, once, and who is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake.node.inspection import view
from zenlake.routing.regions import CLIENT, PEER, RegionFilter, Subregion
from zenlake.testing.network import Host, Network
from zenlake.testing.recorders import SampleRecorder

HALLS = (Subregion((RegionFilter(names=("one",)),)), Subregion((RegionFilter(names=("two",)),)))
PLANT = (Subregion((RegionFilter(names=("plant",)),)),)
MAIN: dict[str, Any] = {
    "region_name": "main",
    "south": (Subregion((RegionFilter(names=("main",), negated=True),)),),
}
LEADER, SECOND = b"\x09" * 16, b"\x08" * 16

Plan = dict[str, tuple[str, str, dict[str, Any]]]

#: Networks, by what is special about them: name → (mode, connected to, settings).
PLANS: dict[str, Plan] = {
    "two halls of one router": {
        "g": ("router", "", {"south": (*HALLS, Subregion((RegionFilter(roles=(CLIENT,)),)))}),
        "a": ("peer", "g", {"region_name": "one"}),
        "b": ("peer", "g", {"region_name": "one"}),
        "c": ("peer", "g", {"region_name": "two"}),
        "d": ("client", "g", {}),
        "e": ("client", "g", {"region_name": "two"}),
    },
    "peers that serve": {
        "g": ("peer", "", MAIN),
        "h": ("peer", "g", MAIN),
        "a": ("peer", "g", {}),
        "b": ("peer", "h", {}),
        "c": ("client", "h", {}),
    },
    "clients that serve": {
        "r": ("router", "", {}),
        "g": ("client", "r", {"south": (Subregion((RegionFilter(roles=(PEER, CLIENT)),)),)}),
        "a": ("peer", "g", {}),
        "b": ("client", "g", {}),
        "c": ("client", "r", {}),
    },
    "routers below routers": {
        "g": ("router", "", {"south": HALLS}),
        "h": ("router", "g", {"south": HALLS}),
        "a": ("router", "g", {"region_name": "one"}),
        "b": ("router", "a", {"region_name": "one"}),
        "c": ("router", "h", {"region_name": "two"}),
        "d": ("client", "b", {}),
        "e": ("router", "g", {"region_name": "two"}),
    },
    "regions below regions": {
        "g": ("router", "", {"south": PLANT}),
        "h": ("router", "g", {"region_name": "plant", "south": HALLS}),
        "a": ("router", "h", {"region_name": "one"}),
        "b": ("peer", "a", {}),
        "c": ("peer", "h", {"region_name": "two"}),
        "d": ("peer", "a", {}),
    },
    "two gateways of peers": {
        "g": ("peer", "", {**MAIN, "zid": LEADER}),
        "h": ("peer", "g", {**MAIN, "zid": SECOND}),
        "n": ("peer", "gh", {"region_name": "main"}),
        "a": ("peer", "gh", {}),
        "b": ("peer", "gha", {}),
    },
    "two gateways of routers": {
        "g": ("router", "", {"south": PLANT, "zid": LEADER}),
        "h": ("router", "g", {"south": PLANT, "zid": SECOND}),
        "n": ("router", "h", {}),
        "a": ("router", "g", {"region_name": "plant"}),
        "b": ("router", "ha", {"region_name": "plant"}),
        "c": ("client", "b", {}),
        "d": ("client", "n", {}),
    },
}


def built(plan: Plan) -> tuple[Network, dict[str, Host]]:
    network = Network()
    hosts = {}
    for name, (mode, connect, chosen) in plan.items():
        listen = True if mode != "client" or "south" in chosen else None
        hosts[name] = network.node(name, mode, connect=list(connect), listen=listen, **chosen)
        network.settle()
    return network, hosts


def regions(host: Host) -> dict[str, str]:
    names = {view.zid_text(one.node.zid): one.name for one in host.network.hosts.values()}
    sessions = view.summary(host.node, "v", None)["sessions"]
    assert isinstance(sessions, list)
    return {names[session["peer"]]: session["region"] for session in sessions}


def everybody_hears_everybody_once(network: Network, hosts: dict[str, Host]) -> None:
    heard: dict[str, SampleRecorder] = {}
    for name, host in hosts.items():
        heard[name] = host.subscribe("x/*")
        host.queryable(f"q/{name}", name.encode())
        host.node.local.liveliness.token(f"here/{name}")
    network.settle()
    for name, host in hosts.items():
        host.put(f"x/{name}")
    network.settle()
    everybody = sorted(hosts)
    for name, recorder in heard.items():
        found = sorted(key.removeprefix("x/") for key, _ in recorder.values())
        assert found == everybody, f"{name} heard {found}"
    for name, host in hosts.items():
        answers = host.get("q/*", target=1, consolidation=0)
        alive = host.liveliness_get("here/*")
        network.settle()
        found = sorted(key.removeprefix("q/") for key, _ in answers.values())
        assert found == everybody, f"{name} was answered by {found}"
        assert {key.removeprefix("here/") for key, _ in alive.values()} == set(everybody)


@pytest.mark.parametrize("name", PLANS)
def test_what_crosses_a_border_arrives_once(name: str) -> None:
    everybody_hears_everybody_once(*built(PLANS[name]))


def named(*names: str) -> tuple[Subregion, ...]:
    return tuple(Subregion((RegionFilter(names=(name,)),)) for name in names)


def nested(random: Random) -> Plan:
    """Gateways below gateways, of any mode, each with three regions of its own."""
    plan: Plan = {}
    alone: set[str] = set()

    def add(above: str, depth: int) -> None:
        name = chr(ord("a") + len(plan))
        modes = ["router", "peer"]
        if above:
            below_router = plan[above][0] == "router"
            modes = ["router", "peer", "client"] if below_router else ["peer", "client"]
        mode = random.choice(modes)
        region = f"{above}{random.randrange(3)}"
        if above and plan[above][0] == "client" and mode == "peer":
            # Peers do not tell a client where they listen: it cannot introduce them.
            mode = "client" if region in alone else mode
            alone.add(region)
        beside = [
            other
            for other, (kind, connect, keys) in plan.items()
            if kind == mode == "router" and above in connect and keys["region_name"] == region
        ]
        chosen: dict[str, Any] = {"region_name": region}
        serves = not above or random.random() < 0.7
        if serves:
            chosen["south"] = named(*(f"{name}{index}" for index in range(3)))
        linked = random.choice(beside) if beside and random.random() < 0.6 else ""
        plan[name] = (mode, above + linked, chosen)
        for _ in range(random.randint(1, 3) if serves and depth < 3 else 0):
            if len(plan) < 9:
                add(name, depth + 1)

    add("", 0)
    return plan


def doubled(mode: str, random: Random) -> Plan:
    """A region of one kind with two or three gateways, and clients anywhere."""
    plan: Plan = {}
    north: list[str] = []
    for _ in range(random.randint(2, 4)):
        near = random.sample(north, min(len(north), random.randint(1, 2)))
        name = chr(ord("a") + len(plan))
        plan[name] = (mode, "".join(north if mode == "peer" else near), {"region_name": "main"})
        north.append(name)
    gateways = random.sample(north, random.randint(2, min(3, len(north))))
    for name in gateways:
        plan[name][2]["south"] = named("plant")
    below: list[str] = []
    for _ in range(random.randint(1, 3)):
        connect = [*gateways, *below]
        if mode == "router" and below:
            connect = [random.choice(gateways), random.choice(below)]
        name = chr(ord("a") + len(plan))
        plan[name] = (mode, "".join(connect), {"region_name": "plant"})
        below.append(name)
    for _ in range(random.randint(0, 2)):
        name = chr(ord("a") + len(plan))
        plan[name] = ("client", random.choice(north + below), {"region_name": "plant"})
    return plan


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_in_any_hierarchy_everything_arrives_once(seed: int) -> None:
    everybody_hears_everybody_once(*built(nested(Random(seed))))


@pytest.mark.parametrize("mode", ["peer", "router"])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_by_any_number_of_gateways_everything_arrives_once(mode: str, seed: int) -> None:
    everybody_hears_everybody_once(*built(doubled(mode, Random(seed))))


def test_what_is_undeclared_is_forgotten_on_both_sides_of_two_gateways() -> None:
    network, hosts = built(PLANS["two gateways of routers"])
    recorder = hosts["c"].subscribe("x/*")
    network.settle()
    assert any(view.entities(hosts["n"].node, "subscriber", "x/*".__eq__))
    assert recorder.subscriber is not None
    hosts["c"].node.local.unsubscribe(recorder.subscriber)
    network.settle()
    for host in hosts.values():
        assert not list(view.entities(host.node, "subscriber", "x/*".__eq__)), host.name


@pytest.mark.parametrize("kind", ["peers", "routers"])
def test_the_second_gateway_takes_over(kind: str) -> None:
    network, hosts = built(PLANS[f"two gateways of {kind}"])
    network.crash(hosts.pop("g"))
    network.settle()
    everybody_hears_everybody_once(network, hosts)


def test_the_operator_sees_the_regions() -> None:
    _, hosts = built(PLANS["two halls of one router"])
    assert regions(hosts["g"]) == {
        "a": "south:0:peer",
        "b": "south:0:peer",
        "c": "south:1:peer",
        "d": "south:2:client",
        "e": "south:1:client",
    }
    assert regions(hosts["a"]) == {"g": "north", "b": "north"}
    graphs = view.graphs(hosts["g"].node)
    assert set(graphs) == {
        "north", "south:0:peer", "south:0:router", "south:1:peer", "south:1:router",
        "south:2:peer", "south:2:router",
    }  # fmt: skip
    assert view.zid_text(hosts["a"].node.zid) in graphs["south:0:peer"]
    assert view.zid_text(hosts["a"].node.zid) not in graphs["south:1:peer"]


def test_peers_of_different_regions_are_not_introduced() -> None:
    _, hosts = built(PLANS["two halls of one router"])
    assert hosts["a"].sessions == {"b", "g"}
    assert hosts["c"].sessions == {"g"}


def test_routers_of_a_region_are_not_on_the_map_of_others() -> None:
    _, hosts = built(PLANS["routers below routers"])
    mesh = hosts["h"].node.mesh
    assert mesh is not None
    assert set(mesh.state.nodes) == {hosts["g"].node.zid, hosts["h"].node.zid}
    below = hosts["b"].node.mesh
    assert below is not None
    assert set(below.state.nodes) == {hosts[name].node.zid for name in "gab"}


ANYBODY = (Subregion(),)
NOBODY = (Subregion(()),)
PAIRS: list[tuple[str, Any, str, Any, str, str]] = [
    ("peer", ANYBODY, "peer", ANYBODY, "both sides puts the other south", "both sides puts"),
    ("router", NOBODY, "peer", None, "no place for this peer", "has no place for this peer"),
    ("router", NOBODY, "peer", NOBODY, "no place for each other", "no place for each other"),
    ("client", None, "client", None, "is a client and so is the other", "is a client and so is"),
    ("router", None, "peer", NOBODY, "", ""),
    ("client", ANYBODY, "client", None, "", ""),
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("mode", "south", "other", "souths", "one_says", "two_says"), PAIRS)
def test_a_pair_that_cannot_agree_is_told_why_on_both_sides(
    mode: str, south: Any, other: str, souths: Any, one_says: str, two_says: str, swapped: bool
) -> None:
    network = Network()
    if swapped:  # the one that connects is the other
        mode, south, other, souths = other, souths, mode, south
        two_says = one_says
    one = network.node("one", mode, listen=True, south=south)
    two = network.node("two", other, connect=["one"], south=souths)
    network.run(3.0)
    if not one_says:
        assert (one.sessions, two.sessions) == ({"two"}, {"one"})
        return
    assert (one.sessions, two.sessions) == (set(), set())
    assert two_says in two.node.plan.endpoints[0].error


def test_a_peer_does_not_serve_a_router() -> None:
    network = Network()
    router = network.node("router", "router")
    peer = network.node("peer", "peer", connect=["router"], south=ANYBODY)
    network.run(3.0)
    assert (router.sessions, peer.sessions) == (set(), set())
    assert "only routers can serve routers" in peer.node.plan.endpoints[0].error

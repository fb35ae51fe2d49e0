"""What stops a sample, found in simulated networks of all shapes."""

from __future__ import annotations

from typing import Any

import pytest

from zenlake.cli.why import Diagnosis, RouteVerdict
from zenlake.config import Config
from zenlake.node.inspection import view
from zenlake.node.inspection.why import why
from zenlake.routing.policy import Policy
from zenlake.testing.network import Host, Network
from zenlake.wire.codec_network import push_head


def diagnosed(network: Network, key: str, *silent: str) -> RouteVerdict:
    """What `zenlake why` would say if all nodes but the silent ones showed themselves."""
    hosts = [host for name, host in network.hosts.items() if name not in silent]
    pages: dict[str, Any] = {view.zid_text(host.node.zid): why(host.node, key) for host in hosts}
    hops = {
        f"{view.root(host.node)}/route/successor/src/{source}/dst/{destination}": hop
        for host in hosts
        for source, destination, hop in view.successors(host.node)
    }
    return Diagnosis(key, pages, hops).run()


def chain(*routers: str) -> Network:
    """Routers in a line, a speaker at its beginning and a listener at its end."""
    network = Network()
    for number, name in enumerate(routers):
        network.node(name, mode="router", connect=[routers[number - 1]] if number else [])
    network.node("speaker", mode="client", connect=[routers[0]])
    network.node("listener", mode="client", connect=[routers[-1]])
    network.settle()
    return network


def publish(host: Host, key: str) -> None:
    host.node.local.publisher(key, 5, True, 0, b"", 2)


CLIENTS = ("speaker", "listener")


@pytest.mark.parametrize("routers", [("a",), ("a", "b"), ("a", "b", "c", "d")])
def test_nothing_stops_samples_along_a_line(routers: tuple[str, ...]) -> None:
    network = chain(*routers)
    network.hosts["listener"].subscribe("demo/**")
    publish(network.hosts["speaker"], "demo/a")
    network.settle()
    told = diagnosed(network, "demo/a", *CLIENTS)
    assert told.stopped == "", told.lines
    route = next(text for stage, _, text in told.lines if stage == "route")
    names = {view.zid_text(host.node.zid): name for name, host in network.hosts.items()}
    assert [names[zid] for zid in route.split(" → ")] == ["speaker", *routers, "listener"]


def test_one_router_in_the_middle_that_shows_nothing_is_no_obstacle() -> None:
    network = chain("a", "b", "c")
    network.hosts["listener"].subscribe("demo/**")
    publish(network.hosts["speaker"], "demo/a")
    network.settle()
    assert diagnosed(network, "demo/a", *CLIENTS, "b").stopped == ""
    assert diagnosed(network, "demo/a", *CLIENTS, "c").stopped == ""


def test_samples_without_a_declared_publisher_are_followed_too() -> None:
    network = chain("a", "b")
    network.hosts["listener"].subscribe("demo/**")
    network.settle()
    network.hosts["speaker"].put("demo/a", b"1")
    network.settle()
    assert diagnosed(network, "demo/a", *CLIENTS).stopped == ""


def test_the_missing_end_is_named() -> None:
    network = chain("a", "b")
    assert diagnosed(network, "demo/a", *CLIENTS).stopped == "publisher"
    publish(network.hosts["speaker"], "demo/a")
    network.settle()
    assert diagnosed(network, "demo/a", *CLIENTS).stopped == "subscriber"
    network.hosts["listener"].subscribe("other/**")
    network.settle()
    assert diagnosed(network, "demo/a", *CLIENTS).stopped == "subscriber"


def test_two_peers_without_a_link_have_no_route() -> None:
    network = Network()
    network.node("r", mode="router")
    one = network.node("one", connect=["r"], gossip=False, autoconnect=0)
    other = network.node("other", connect=["r"], gossip=False, autoconnect=0)
    network.settle()
    other.subscribe("demo/**")
    publish(one, "demo/a")
    network.settle()
    told = diagnosed(network, "demo/a", "one", "other")
    assert told.stopped == "route"
    assert "peers must have a link" in told.because


def test_two_peers_with_a_link_speak_directly() -> None:
    network = Network()
    network.node("r", mode="router")
    one = network.node("one", connect=["r"])
    other = network.node("other", connect=["r", "one"])
    network.settle()
    other.subscribe("demo/**")
    publish(one, "demo/a")
    network.settle()
    told = diagnosed(network, "demo/a", "one", "other")
    assert told.stopped == "", told.lines


def policy(**keys: str) -> Policy:
    config = Config()
    for name, text in keys.items():
        config.insert_json5(name, text)
    return Policy.of(config.resolved)


DENY = """{
  enabled: true, default_permission: "allow",
  rules: [{id: "seeded", messages: ["put"], permission: "deny", flows: ["%s"],
           key_exprs: ["demo/**"]}],
  subjects: [{id: "all"}], policies: [{rules: ["seeded"], subjects: ["all"]}],
}"""


@pytest.mark.parametrize("where", ["a", "b", "c"])
@pytest.mark.parametrize("flow", ["ingress", "egress"])
def test_a_denial_anywhere_on_the_way_is_found(where: str, flow: str) -> None:
    network = chain("a", "b", "c")
    network.hosts["listener"].subscribe("demo/**")
    publish(network.hosts["speaker"], "demo/a")
    network.settle()
    network.hosts[where].node.obey(policy(access_control=DENY % flow))
    told = diagnosed(network, "demo/a", *CLIENTS)
    assert told.stopped == "access control"
    assert view.zid_text(network.hosts[where].node.zid) in told.because
    assert "seeded" in told.because
    assert diagnosed(network, "other/a", *CLIENTS).stopped == "publisher"


def test_a_neighbour_that_takes_nothing_is_found() -> None:
    network = chain("a")
    network.hosts["listener"].subscribe("demo/**")
    publish(network.hosts["speaker"], "demo/a")
    network.settle()
    router = network.hosts["a"].node
    neighbour = router.by_zid[network.hosts["listener"].node.zid]
    assert neighbour.unicast is not None
    outbox = neighbour.unicast.outbox
    outbox.lose(5, [push_head(scope=0, suffix="other/b")], 1)
    told = diagnosed(network, "demo/a", *CLIENTS)
    assert told.stopped == ""
    assert any("none of them on this key" in text for _, _, text in told.lines)
    for _ in range(6):
        outbox.lose(5, [push_head(scope=0, suffix="demo/a")], 1)
    told = diagnosed(network, "demo/a", *CLIENTS)
    assert told.stopped == "congestion"
    assert "no room for 7 messages" in told.because
    assert "6 of them on this key" in told.because


def test_without_pages_nothing_can_be_said() -> None:
    assert Diagnosis("demo/a", {}, {}).run().stopped == "publisher"


def test_the_facts_are_those_of_the_lines() -> None:
    told = diagnosed(chain("a"), "demo/a", *CLIENTS)
    facts = told.facts()
    assert facts["stopped"] == "publisher"
    assert facts["stages"][-1]["result"] == "stop"
    assert "stop at: publisher" in told.sentence()

"""What an operator sees of nodes in a simulated network."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from zenlake.keys.matching import intersects
from zenlake.node.inspection import view
from zenlake.node.inspection.metrics import METRICS, MetricSelection, openmetrics
from zenlake.node.inspection.why import why
from zenlake.node.node import Node
from zenlake.node.sessions.multicast import GroupMember
from zenlake.node.sessions.neighbour import outbox_for
from zenlake.testing.network import Host, Network
from zenlake.transport.multicast_terms import MulticastTerms
from zenlake.wire.link_state import KnownNode


def name(host: Host) -> str:
    return view.zid_text(host.node.zid)


def everything(key: str) -> bool:
    return True


def seen(node: Node, kind: str) -> dict[str, view.Plain]:
    return {entity.key: entity.sources() for entity in view.entities(node, kind, everything)}


class Village:
    """Two routers, a client, a peer."""

    def __init__(self) -> None:
        self.network = Network()
        self.a = self.network.node("a", mode="router")
        self.b = self.network.node("b", mode="router", connect=["a"])
        self.c = self.network.node("c", mode="client", connect=["a"])
        self.p = self.network.node("p", mode="peer", connect=["a"])
        self.network.settle()


def test_a_subscriber_is_listed_with_those_who_declared_it() -> None:
    village = Village()
    village.c.subscribe("demo/**")
    village.p.subscribe("demo/p")
    village.a.subscribe("demo/own")
    village.b.subscribe("demo/far")
    village.network.settle()
    a, b, c, p = (name(host) for host in (village.a, village.b, village.c, village.p))
    assert seen(village.a.node, "subscriber") == {
        "demo/**": {"routers": [a], "peers": [], "clients": [c]},
        "demo/p": {"routers": [a], "peers": [p], "clients": []},
        "demo/own": {"routers": [a], "peers": [], "clients": [a]},
        "demo/far": {"routers": [b], "peers": [], "clients": []},
    }
    assert seen(village.b.node, "subscriber")["demo/**"] == {
        "routers": [a],
        "peers": [],
        "clients": [],
    }
    assert seen(village.p.node, "subscriber") == {
        "demo/p": {"routers": [], "peers": [p], "clients": [p]}
    }


def test_publishers_and_queriers_are_known_by_their_interests() -> None:
    village = Village()
    village.c.node.local.publisher("demo/a", 5, True, 0, b"", 2)
    village.p.node.local.querier("q/**", 0, 2)
    village.a.queryable("q/a", b"x")
    village.c.node.local.liveliness.token("alive")
    village.network.settle()
    a, c, p = name(village.a), name(village.c), name(village.p)
    node = village.a.node
    assert seen(node, "publisher") == {"demo/a": {"routers": [], "peers": [], "clients": [c]}}
    assert seen(node, "querier") == {"q/**": {"routers": [], "peers": [p], "clients": []}}
    assert seen(node, "queryable") == {"q/a": {"routers": [a], "peers": [], "clients": [a]}}
    assert seen(node, "token") == {"alive": {"routers": [a], "peers": [], "clients": [c]}}
    assert seen(village.c.node, "publisher") == {
        "demo/a": {"routers": [], "peers": [], "clients": [c]}
    }


def test_sessions_have_regions_links_and_weights() -> None:
    village = Village()
    told = view.summary(village.a.node, "v1", {"name": "x"})
    assert list(told) == ["locators", "metadata", "plugins", "sessions", "version", "zid"]
    sessions = told["sessions"]
    assert isinstance(sessions, list)
    assert {session["whatami"]: session["region"] for session in sessions} == {
        "router": "north",
        "client": "south:0:client",
        "peer": "south:0:peer",
    }
    router = sessions[0]
    assert list(router) == ["links", "peer", "region", "shm", "weight", "whatami"]
    assert router["weight"] == {"actual_weight": 100, "dst_weight": None, "src_weight": None}
    assert sessions[1]["weight"] is None
    north = view.summary(village.p.node, "v1", None)["sessions"]
    assert isinstance(north, list)
    assert north[0]["region"] == "north"
    with_stats = view.summary(village.a.node, "v1", None, True)
    stats = with_stats["stats"]
    assert isinstance(stats, dict)
    assert stats["rx_messages"] > 0
    assert stats["dropped"] == {"rx": {}, "tx": {}}


def test_graphs_show_routers_with_weights_and_peers_without() -> None:
    village = Village()
    graphs = view.graphs(village.a.node)
    a, b, p = name(village.a), name(village.b), name(village.p)
    assert graphs["south:0:peer"] == (
        f'graph {{\n    0 [ label = "{a}" ]\n    1 [ label = "{p}" ]\n}}\n'
    )
    lines = graphs["north"].splitlines()
    assert lines[1:3] == [f'    0 [ label = "{a}" ]', f'    1 [ label = "{b}" ]']
    assert lines[3].startswith('    1 -- 0 [ label = "100.')
    assert view.graphs(village.p.node).keys() == {"north"}
    assert view.graphs(village.c.node) == {}


def test_successors_lead_along_the_line() -> None:
    network = Network()
    network.node("a", mode="router")
    b = network.node("b", mode="router", connect=["a"])
    c = network.node("c", mode="router", connect=["b"])
    network.settle()
    a = network.hosts["a"]
    hops = {(source, to): hop for source, to, hop in view.successors(a.node)}
    assert set(hops.values()) == {name(b)}
    assert {to for _, to in hops} == {name(b), name(c)}
    assert {source for source, _ in hops} == {name(a), name(b), name(c)}
    assert view.successor(b.node, a.node.zid, c.node.zid) == name(c)
    assert view.successor(b.node, b"stranger", c.node.zid) == ""


def test_traffic_is_told_by_key_and_source_the_most_first() -> None:
    village = Village()
    village.p.subscribe("demo/**")
    village.network.settle()
    for number in range(5):
        village.c.put("demo/many", b"12")
        if not number:
            village.c.put("demo/one", b"1")
    village.network.settle()
    told = view.traffic(village.a.node, everything, 1)
    assert told["keys"] == [
        {
            "key": "demo/many",
            "from": name(village.c),
            "whatami": "client",
            "samples": 5,
            "bytes": 10,
        }
    ]
    assert told["left_out"] == 1


def test_why_knows_both_ends_and_the_way_between() -> None:
    village = Village()
    village.p.subscribe("demo/**")
    village.c.node.local.publisher("demo/a", 5, True, 0, b"", 2)
    village.network.settle()
    village.c.put("demo/a", b"1")
    village.network.settle()
    told = why(village.a.node, "demo/a")
    c, p = name(village.c), name(village.p)
    assert told["publishers"] == [{"zid": c, "whatami": "client", "key": "demo/a"}]
    subscribers = told["subscribers"]
    assert isinstance(subscribers, list)
    assert {"zid": p, "whatami": "peer", "key": "demo/**"} in subscribers
    neighbours = told["neighbours"]
    assert isinstance(neighbours, list)
    assert {one["zid"]: one["goes_to"] for one in neighbours}[c] == [p]
    assert neighbours[0]["ingress"] == {}


keys = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=4).map("/".join)
canonical = keys.filter(lambda key: "**/**" not in key and "**/*" not in key)


@given(st.lists(canonical, max_size=8), canonical)
def test_what_is_asked_for_is_what_is_listed(declared: list[str], asked: str) -> None:
    network = Network()
    host = network.node("n", mode="router")
    for key in declared:
        host.subscribe(key)
    above = f"{view.root(host.node)}/subscriber"
    found = {
        entity.key
        for entity in view.entities(host.node, "subscriber", view.meets(f"{above}/{asked}", above))
    }
    assert found == {key for key in declared if intersects(asked, key)}


# ----------------------------------------------------------------------------------- metrics


def parsed(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def busy_village() -> Village:
    village = Village()
    village.p.subscribe("demo/**")
    village.network.settle()
    for number in range(10):
        village.c.put(f"demo/{number % 2}/x", b"123")
    village.network.settle()
    return village


def test_metrics_are_openmetrics_for_every_choice() -> None:
    village = busy_village()
    for per_transport in (True, False):
        for per_link in (True, False):
            for per_key in (True, False):
                for disconnected in (True, False):
                    wanted = MetricSelection(per_transport, per_link, per_key, disconnected)
                    text = openmetrics(village.a.node, wanted, 'v "1"\\', 1.5, {"link": 2})
                    found = parsed(text)
                    assert text.endswith("# EOF\n")
                    labels = found["zenoh_rx_bytes_total"][0][0]
                    assert ("remote_zid" in labels) == per_transport
                    assert ("src_locator" in labels) == (per_transport and per_link)
                    assert ("zenoh_rx_key_samples_total" in found) == per_key
                    assert found["zenoh_build_info"][0][0]["version"] == 'v "1"\\'


def test_metrics_say_what_passed() -> None:
    village = busy_village()
    found = parsed(openmetrics(village.a.node, MetricSelection(), "v1", 0.0))
    assert found["zenoh_transports_opened"][0][1] == 3
    by_prefix = {labels["prefix"]: n for labels, n in found["zenoh_rx_key_samples_total"]}
    assert by_prefix == {"demo/0": 5, "demo/1": 5}
    sizes = {labels["prefix"]: n for labels, n in found["zenoh_rx_key_payload_bytes_total"]}
    assert sizes == {"demo/0": 15, "demo/1": 15}
    client = name(village.c)
    data = [
        n
        for labels, n in found["zenoh_rx_network_message_total"]
        if labels["remote_zid"] == client and labels["priority"] == "data"
    ]
    assert data == [10]
    own = parsed(openmetrics(village.c.node, MetricSelection(), "v1", 0.0))
    assert {labels["prefix"]: n for labels, n in own["zenoh_tx_key_samples_total"]} == by_prefix


def test_metrics_say_what_was_announced_and_passed_over() -> None:
    village = Village()
    node = village.a.node
    locators = ("tcp/10.0.0.7:7447", "serial//dev/ttyS0", "tcp/127.0.0.1:22")
    node.sessions.discovered.gossiped(KnownNode(b"\7" * 16, 1, locators), within=False)
    assert node.mesh is not None
    node.mesh.state.passed_over += 3
    node.topology.gossip.passed_over += 4
    found = parsed(openmetrics(node, MetricSelection(), "v1", 0.0))
    passed_over = found["zenoh_announcements_passed_over_total"]
    assert {labels["kind"]: n for labels, n in passed_over} == {"entry": 7, "locator": 2}


def test_totals_outlive_sessions() -> None:
    village = busy_village()
    before = parsed(openmetrics(village.a.node, MetricSelection(per_transport=False), "v", 0.0))
    village.c.node.close(village.network.now)
    village.network.settle()
    after = parsed(openmetrics(village.a.node, MetricSelection(per_transport=False), "v", 0.0))
    for family in ("zenoh_rx_bytes_total", "zenoh_tx_bytes_total", "zenoh_rx_batches_total"):
        assert after[family][0][1] >= before[family][0][1]
    assert after["zenoh_rx_key_samples_total"] == before["zenoh_rx_key_samples_total"]
    assert after["zenoh_transports_closed_total"][0][1] == 1
    gone = name(village.c)
    live = parsed(openmetrics(village.a.node, MetricSelection(), "v", 0.0))
    all_of_them = parsed(openmetrics(village.a.node, MetricSelection(disconnected=True), "v", 0.0))
    for found, there in ((live, False), (all_of_them, True)):
        zids = {labels["remote_zid"] for labels, _ in found["zenoh_rx_bytes_total"]}
        assert (gone in zids) == there


def test_no_two_metrics_have_one_name() -> None:
    assert len({metric.family for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert not metric.unit or metric.family.endswith(metric.unit)


def test_without_descriptors_only_numbers_are_told() -> None:
    village = Village()
    text = openmetrics(village.a.node, MetricSelection(descriptors=False), "v", 0.0)
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# EOF"]


# --------------------------------------------------------------- several links, and groups


def test_a_session_over_two_links_is_one_session_with_two_links() -> None:
    network = Network()
    far = network.node("far", max_links=2)
    near = network.node("near", connect=("far", "far"), max_links=2)
    network.settle()
    near.subscribe("demo/**")
    network.settle()
    for _ in range(4):
        far.put("demo/a", b"12")
    network.settle()
    sessions = view.summary(far.node, "v", None, True)["sessions"]
    assert isinstance(sessions, list)
    assert [len(session["links"]) for session in sessions] == [2]
    found = parsed(openmetrics(far.node, MetricSelection(), "v", 0.0))
    assert found["zenoh_transports_opened"][0][1] == 1
    assert sum(many for _, many in found["zenoh_links_opened"]) == 2
    assert len(found["zenoh_tx_bytes_total"]) == len({n.dst for n in far.node.neighbours})
    neighbour = far.node.neighbours[0]
    far.node.lost(neighbour, None, network.now)
    network.settle()
    assert far.node.sessions.past.many == 0
    sessions = view.summary(far.node, "v", None)["sessions"]
    assert isinstance(sessions, list)
    assert len(sessions) == 1


def test_members_of_a_group_are_sessions_with_a_group() -> None:
    network = Network()
    node = network.node("n").node
    terms = MulticastTerms(node.zid, 1, 0x0A, 8192, 10_000, False, 2.5, 100, 1 << 20, 0)
    multicast = node.join("udp/224.0.0.224:7446", terms, outbox_for(False, 2), 0.0)
    member = GroupMember(multicast, b"\xbb", 1, "192.0.2.1:5000")
    multicast.members.append(member)
    member.pushes.inbounds.all()
    assert view.summary(node, "v", None)["sessions"] == [
        {
            "group": "udp/224.0.0.224:7446",
            "links": [{"dst": "udp/192.0.2.1:5000", "src": "udp/224.0.0.224:7446"}],
            "peer": "bb",
            "whatami": "peer",
        }
    ]
    assert view.traffic(node, everything, 5)["keys"] == []
    assert parsed(openmetrics(node, MetricSelection(), "v", 0.0))

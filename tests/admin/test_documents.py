"""Which records answer which questions."""

from __future__ import annotations

import gzip
import json

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from zenlake.admin.documents import Document, Facts, documents
from zenlake.config import Config
from zenlake.keys.matching import intersects
from zenlake.node.inspection import view
from zenlake.testing.network import Host, Network
from zenlake.wire.codec_network import push_head


def router() -> Host:
    network = Network()
    host = network.node("r", mode="router", zid=b"\xaa")
    network.node("c", mode="client", connect=["r"], zid=b"\xcc")
    network.settle()
    network.hosts["c"].subscribe("demo/**")
    network.settle()
    return host


def asked(
    host: Host, key: str, parameters: str = "", config: Config | None = None
) -> dict[str, Document]:
    facts = Facts("v1", config or Config(), 1.0)
    return {found.key: found for found in documents(host.node, key, parameters, facts)}


def test_what_runs_beside_a_node_is_shown_with_it() -> None:
    rest = {"rest": {"name": "rest", "path": "zenlake.rest"}}
    facts = Facts("v1", Config(), plugins=dict(rest))
    (found,) = documents(router().node, "@/aa/router", "", facts)
    assert json.loads(found.payload)["plugins"] == rest
    (alone,) = documents(router().node, "@/aa/router", "", Facts("v1", Config()))
    assert json.loads(alone.payload)["plugins"] is None


def test_drops_are_told_by_reason_and_key_and_by_whose_they_are() -> None:
    host = router()
    assert asked(host, "@/**/drops")["@/aa/router/drops"].payload.endswith(
        b'"keys":[],"estimate":false,"sessions":[],"subscribers":[]}'
    )
    neighbour = host.node.by_zid[b"\xcc"]
    assert neighbour.unicast is not None
    for key in ("demo/a", "demo/b", "demo/a"):
        neighbour.unicast.outbox.lose(5, [push_head(scope=0, suffix=key)], 1)
    host.node.drops.note("access-control", "secret/x", 5)
    page = json.loads(asked(host, "@/*/router/drops")["@/aa/router/drops"].payload)
    congested = [
        {"reason": "congestion", "key": "demo/a", "dropped": 2},
        {"reason": "congestion", "key": "demo/b", "dropped": 1},
    ]
    assert page["keys"] == [
        {"reason": "access-control", "key": "secret/x", "dropped": 5},
        *congested,
    ]
    assert page["sessions"] == [
        {"peer": "cc", "whatami": "client", "dropped": 3, "estimate": False, "keys": congested}
    ]
    text = gzip.decompress(asked(host, "@/aa/router/metrics")["@/aa/router/metrics"].payload)
    dropped = {
        (sample.labels["reason"], sample.labels["prefix"]): sample.value
        for family in text_string_to_metric_families(text.decode())  # type: ignore[no-untyped-call]
        for sample in family.samples
        if sample.name.endswith("key_dropped_total")
    }
    assert dropped == {
        ("access-control", "secret/x"): 5,
        ("congestion", "demo/a"): 2,
        ("congestion", "demo/b"): 1,
    }


def test_everything_is_what_it_is_elsewhere() -> None:
    found = asked(router(), "@/**")
    assert set(found) == {
        "@/aa/router",
        "@/aa/router/metrics",
        "@/aa/router/subscriber/demo/**",
        "@/aa/router/linkstate/north",
        "@/aa/router/linkstate/south:0:peer",
    }
    assert found["@/aa/router"].encoding == "application/json"
    assert found["@/aa/router/linkstate/north"].encoding == "text/plain"
    assert found["@/aa/router/subscriber/demo/**"].payload == (
        b'{"routers":["aa"],"peers":[],"clients":["cc"]}'
    )


def test_a_pattern_finds_what_it_meets() -> None:
    host = router()
    assert set(asked(host, "@/*/router")) == {"@/aa/router"}
    assert set(asked(host, "@/aa/*/subscriber/demo/x")) == {"@/aa/router/subscriber/demo/**"}
    assert set(asked(host, "@/bb/**")) == set()
    assert set(asked(host, "**")) == set()


def test_metrics_come_compressed_unless_asked_otherwise() -> None:
    host = router()
    packed = asked(host, "@/aa/router/metrics")["@/aa/router/metrics"]
    plain = asked(host, "@/aa/router/metrics", "compression=false")["@/aa/router/metrics"]
    # The media type of OpenMetrics, by which scrapers choose their parser.
    assert plain.encoding == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert packed.encoding == (
        "application/openmetrics-text; version=1.0.0; charset=utf-8;content-encoding=gzip"
    )
    assert gzip.decompress(packed.payload) == plain.payload
    text = plain.payload.decode()
    assert list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    few = asked(host, "@/aa/router/metrics", "compression=false;per_transport=false")
    assert b"remote_zid" not in few["@/aa/router/metrics"].payload


def test_statistics_are_merged_when_asked_for() -> None:
    host = router()
    assert "stats" not in json.loads(asked(host, "@/aa/router")["@/aa/router"].payload)
    told = json.loads(asked(host, "@/aa/router", "_stats=true")["@/aa/router"].payload)
    assert told["stats"]["rx_bytes"] > 0
    assert told["sessions"][0]["stats"]["rx_bytes"] > 0


def test_the_configuration_is_shown_without_its_secrets() -> None:
    host = router()
    config = Config()
    config.insert_json5("transport/auth/usrpwd/user", '"alice"')
    config.insert_json5("transport/auth/usrpwd/password", '"rabbit hole"')
    config.insert_json5("metadata", '{name: "x", api_token: "rabbit hole"}')
    config.insert_json5("connect/endpoints", '["tls/h:1#private_key_base64=rabbit hole"]')
    path = "@/aa/router/config/transport/auth/usrpwd"
    for key in (
        "@/aa/router/config",
        "@/aa/router/config/**",
        path,
        f"{path}/password",
        "@/aa/router/config/connect/endpoints",
        "@/aa/router",
    ):
        found = asked(host, key, config=config)
        assert found
        assert not any(b"rabbit" in document.payload for document in found.values())
    assert asked(host, f"{path}/user", config=config)[f"{path}/user"].payload == b'"alice"'
    whole = json.loads(asked(host, "@/aa/router/config")["@/aa/router/config"].payload)
    assert whole["scouting"]["delay"] is None, "nobody set it"
    config.insert_json5("scouting/delay", "700")
    (shown,) = asked(host, "@/aa/router/config", config=config).values()
    assert json.loads(shown.payload)["scouting"]["delay"] == 700
    assert asked(host, "@/aa/router/config/no/such/key") == {}


def test_traffic_and_why_answer_who_names_them() -> None:
    host = router()
    for number in range(3):
        host.network.hosts["c"].node.tables.version += 1
        host.put(f"demo/{number}", b"12")
    key = "@/aa/router/traffic"
    told = json.loads(asked(host, key)[key].payload)
    assert {row["key"] for row in told["keys"]} == {"demo/0", "demo/1", "demo/2"}
    told = json.loads(asked(host, key, "rows=1;key=demo/*")[key].payload)
    assert (len(told["keys"]), told["left_out"]) == (1, 2)
    assert json.loads(asked(host, key, "rows=x;key=other")[key].payload)["keys"] == []
    found = asked(host, "@/*/*/why/demo/1")
    told = json.loads(found["@/aa/router/why/demo/1"].payload)
    assert told["own_goes_to"] == ["cc"]
    assert asked(host, "@/bb/*/why/demo/1") == {}


chunks = st.sampled_from(["@", "aa", "router", "config", "subscriber", "demo", "x", "*", "**"])
keys = (
    st.lists(chunks, min_size=1, max_size=6)
    .map("/".join)
    .filter(lambda key: "**/**" not in key and "**/*" not in key)
)
HOST = router()


@given(keys, st.text("abc=;_stats", max_size=12))
def test_every_record_meets_the_question(key: str, parameters: str) -> None:
    for document in documents(HOST.node, key, parameters, Facts("v1", Config())):
        assert intersects(key, document.key)
        assert document.key.startswith(view.root(HOST.node))

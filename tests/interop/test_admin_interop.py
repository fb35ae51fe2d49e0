"""The admin space beside Eclipse's: the same keys, the same shapes, whoever asks."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.cli.programs import run
from tests.interop.peer import SECONDS, Peer
from tests.interop.processes import OURS, THEIRS, Process, connect, listen

pytestmark = pytest.mark.interop

Records = dict[str, list[str]]

#: What is not the same twice.
PORT = re.compile(r"tcp/127\.0\.0\.1:\d+")
#: In both kinds of routers the same is declared, and this must be there before they are compared.
EXPECTED = {
    f"@/aa11/router{rest}"
    for rest in (
        "",
        "/metrics",
        "/linkstate/north",
        "/linkstate/south:0:peer",
        "/publisher/demo/a",
        "/publisher/demo/p",
        "/querier/q/**",
        "/queryable/q/a",
        "/route/successor/src/aa11/dst/bb22",
        "/route/successor/src/bb22/dst/bb22",
        "/subscriber/demo/**",
        "/subscriber/demo/far",
        "/subscriber/demo/own",
        "/subscriber/demo/p/**",
        "/token/alive/c",
    )
}


def plain(records: Records) -> dict[str, tuple[str, object]]:
    """Records without what is not the same twice."""
    found: dict[str, tuple[str, object]] = {}
    for key, (encoding, text) in records.items():
        if key.endswith("/metrics"):
            text = text.rstrip() + "\n"  # Eclipse's goes on with a space
            families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
            found[key] = encoding, any(family.name == "zenoh_build" for family in families)
        elif encoding == "application/json":
            page = json.loads(PORT.sub("tcp/…", text))
            if isinstance(page, dict) and "sessions" in page:
                assert page["version"]
                page["version"] = "…"
                page["sessions"].sort(key=lambda session: session["peer"])
            if isinstance(page, dict) and "clients" in page:
                assert list(page) == ["routers", "peers", "clients"]
            found[key] = encoding, page
        else:
            found[key] = encoding, text
    return found


@contextmanager
def town(elsewhere: Process, package: str) -> Iterator[tuple[Peer, Peer]]:
    """A router of either kind among nodes of theirs: the router, and a client to look with."""
    router = Peer(OURS) if package == OURS else elsewhere.node(f"a {package}")
    far, client, peer = (elsewhere.node(f"{name} {package}") for name in ("b", "c", "p"))
    place = listen(router, "router", id="aa11", adminspace__enabled=True, metadata={"name": "x"})
    connect(far, place, "router", id="bb22")
    connect(client, place, "client", id="cc33")
    connect(peer, place, "peer", id="ee55")
    try:
        router.subscribe("own", "demo/own")
        far.subscribe("far", "demo/far")
        client.subscribe("all", "demo/**")
        client.publisher("a", "demo/a")
        client.queryable("q", "q/a", [], complete=True)
        client.querier("ask", "q/**")
        client.token("alive", "alive/c")
        peer.subscribe("p", "demo/p/**")
        peer.publisher("p1", "demo/p")
        yield router, client
    finally:
        for node in (peer, client, far, router):
            node.close()


def seen(looking: Peer) -> Records:
    """All that the router shows, once it has heard everything."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = looking.read("@/aa11/router/**")
        if set(found) >= EXPECTED:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"not shown: {sorted(EXPECTED - set(found))}")


def test_both_kinds_of_routers_show_the_same(elsewhere: Process) -> None:
    with town(elsewhere, THEIRS) as (_, client):
        theirs = plain(seen(client))
    with town(elsewhere, OURS) as (_, client):
        ours = plain(seen(client))
    assert set(ours) == set(theirs)
    for key in sorted(theirs):
        assert ours[key] == theirs[key], key


def test_our_client_reads_their_router(elsewhere: Process, ours: Peer) -> None:
    router = elsewhere.node("their router")
    place = listen(router, "router", id="aa11", adminspace__enabled=True)
    router.subscribe("s", "demo/**")
    try:
        connect(ours, place, "client")
        found = ours.read("@/**")
        assert json.loads(found["@/aa11/router"][1])["zid"] == "aa11"
        assert "@/aa11/router/subscriber/demo/**" in found
        code, lines = run("ls", "-m", "client", "-e", place)
        assert (code, lines) == (0, ["demo/**  1 subscriber"])
        code, lines = run("top", "--once", "-i", "0.2", "--json", "-m", "client", "-e", place)
        assert code == 0
        assert "no node tells of its traffic" in lines[0]
    finally:
        router.close()


def test_top_and_why_show_eclipse_programs(elsewhere: Process, ours: Peer) -> None:
    place = listen(ours, "router", id="aa11", adminspace__enabled=True)
    speaker, listener = elsewhere.node("speaker"), elsewhere.node("listener")
    connect(speaker, place, "client", id="cc33")
    connect(listener, place, "client", id="dd44")
    try:
        listener.subscribe("s", "demo/**")
        speaker.publisher("p", "demo/a")
        speaker.until("p")
        speaker.publish_many("p", 100)
        listener.take("s", 100)
        code, lines = run("top", "--once", "-i", "0.1", "--json", "-m", "client", "-e", place)
        told = json.loads(lines[-1])
        assert code == 0
        assert [(row["key"], row["from"], row["samples"]) for row in told["keys"]] == [
            ("demo/a", "cc33", 100)
        ]
        assert {one["neighbour"] for one in told["sessions"]} == {"cc33", "dd44"}
        code, lines = run("why", "demo/a", "-m", "client", "-e", place)
        assert (code, lines[2].split(maxsplit=2)) == (0, ["ok", "route", "cc33 → aa11 → dd44"])
    finally:
        speaker.close()
        listener.close()


def test_their_client_changes_our_configuration(elsewhere: Process, ours: Peer) -> None:
    permissions = {"read": True, "write": True}
    place = listen(
        ours, "router", id="aa11", adminspace={"enabled": True, "permissions": permissions}
    )
    client = elsewhere.node("writer")
    connect(client, place, "client")
    try:
        client.put("@/aa11/router/config/metadata", '{"name": "changed"}')
        deadline = time.monotonic() + SECONDS
        while json.loads(client.read("@/aa11/router")["@/aa11/router"][1])["metadata"] is None:
            assert time.monotonic() < deadline
        key = "@/aa11/router/config/metadata"
        assert json.loads(client.read(key)[key][1]) == {"name": "changed"}
    finally:
        client.close()

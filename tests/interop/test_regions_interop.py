"""Gateways of ours with Eclipse nodes south of them, and ours south of Eclipse's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from tests.interop.peer import SECONDS, Peer
from tests.interop.processes import OURS, Process
from tests.interop.test_router_mesh_interop import until_here
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.interop

numbers = count(1)

Keys = dict[str, Any]


def south(*filters: Keys) -> Keys:
    return {"south": [{"filters": [each]} for each in filters]}


ONE, TWO = {"region_names": ["one"]}, {"region_names": ["two"]}
MAIN = {"region_name": "main", "gateway": south({"region_names": ["main"], "negated": True})}

#: Networks: name → (mode, connected to, keys); gateways first.
PLANS: dict[str, dict[str, tuple[str, str, Keys]]] = {
    "halls": {
        "g": ("router", "", {"gateway": south(ONE, {**TWO, "modes": ["peer"]}, {"zids": ["d4"]})}),
        "a": ("peer", "g", {"region_name": "one"}),
        "b": ("peer", "g", {"region_name": "one"}),
        "c": ("peer", "g", {"region_name": "two"}),
        "d": ("client", "g", {"region_name": "two"}),
    },
    "peers serve": {
        "g": ("peer", "", MAIN),
        "h": ("peer", "g", MAIN),
        "a": ("peer", "g", {}),
        "b": ("client", "h", {}),
    },
    "clients serve": {
        "r": ("router", "", {}),
        "g": ("client", "r", {"gateway": south({"modes": ["client", "peer"]})}),
        "a": ("peer", "g", {}),
        "b": ("client", "g", {}),
    },
    "routers below": {
        "g": ("router", "", {"gateway": south(ONE)}),
        "h": ("router", "g", {"gateway": south(TWO)}),
        "a": ("router", "g", {"region_name": "one"}),
        "b": ("router", "a", {"region_name": "one"}),
        "c": ("router", "h", {"region_name": "two"}),
    },
    "regions in regions": {
        "g": ("router", "", {"gateway": south(ONE)}),
        "h": ("router", "g", {"region_name": "one", "gateway": south(TWO)}),
        "a": ("router", "h", {"region_name": "two"}),
        "b": ("peer", "a", {}),
        "c": ("peer", "h", {"region_name": "two"}),
    },
    "two serve": {
        "g": ("peer", "", MAIN),
        "h": ("peer", "g", MAIN),
        "n": ("peer", "gh", {"region_name": "main"}),
        "a": ("peer", "gh", {}),
    },
}
ZIDS = {"g": "a9", "h": "a1", "a": "11", "b": "b2", "c": "c3", "d": "d4", "n": "e5", "r": "f6"}

REGIONS = {
    "halls": {
        "11": "south:0:peer", "b2": "south:0:peer", "c3": "south:1:peer", "d4": "south:2:client",
    },
    "peers serve": {"a1": "north", "11": "south:0:peer"},
    "clients serve": {"f6": "north", "11": "south:0:peer", "b2": "south:0:client"},
    "routers below": {"a1": "north", "11": "south:0:router"},
    "regions in regions": {"a1": "south:0:router"},
    "two serve": {"a1": "north", "e5": "north", "11": "south:0:peer"},
}  # fmt: skip


class Town:
    """The nodes of a plan, some of them ours."""

    def __init__(self, plan: str, ours: str, elsewhere: Process, stack: ExitStack) -> None:
        self.nodes: dict[str, Peer] = {}
        run = next(numbers)
        ports: dict[str, int] = {}
        for name, (mode, connects, keys) in PLANS[plan].items():
            peer = Peer(OURS) if name in ours else elsewhere.node(f"region {run} {name}")
            self.nodes[name] = peer
            ports[name] = free_port()
            listens = mode != "client" or "gateway" in keys
            peer.open(
                mode,
                id=ZIDS[name],
                listen__endpoints=[f"tcp/127.0.0.1:{ports[name]}"] if listens else [],
                connect__endpoints=[f"tcp/127.0.0.1:{ports[each]}" for each in connects],
                adminspace__enabled=True,
                **keys,
            )
            stack.callback(peer.close)

    def regions(self, name: str) -> dict[str, str]:
        """Where the neighbours of a node lie, as it says itself."""
        peer = self.nodes[name]
        (_, text) = next(iter(peer.read(f"@/{peer.zid()}/*").values()))
        return {session["peer"]: session["region"] for session in json.loads(text)["sessions"]}

    def until_regions(self, name: str, expected: dict[str, str]) -> None:
        until(lambda: self.regions(name) == expected, f"not {expected}", SECONDS)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    ("plan", "ours"),
    [
        ("halls", "g"), ("halls", "abcd"), ("halls", "gac"),
        ("peers serve", "g"), ("peers serve", "h"), ("peers serve", "ab"),
        ("clients serve", "g"), ("clients serve", "ab"), ("clients serve", "r"),
        ("routers below", "g"), ("routers below", "ac"), ("routers below", "b"),
        ("regions in regions", "h"), ("regions in regions", "gab"),
        ("two serve", "h"), ("two serve", "gh"), ("two serve", "hna"),
    ],
)  # fmt: skip
def test_what_crosses_a_border_arrives_once(
    plan: str, ours: str, elsewhere: Process, stack: ExitStack
) -> None:
    town = Town(plan, ours, elsewhere, stack)
    town.until_regions("g", REGIONS[plan])
    nodes = town.nodes
    for name, peer in nodes.items():
        peer.subscribe("s", "x/*")
        peer.subscribe("w", "w/*")
        peer.queryable("q", "q/*", [{"key": f"q/{name}", "payload": name}])
        peer.token("t", f"here/{name}")
    for peer in nodes.values():
        until_here(peer, {f"here/{name}" for name in nodes})
    # Routers that share trees find the way for samples a moment later.
    until_heard(nodes)
    for name, peer in nodes.items():
        peer.put(f"x/{name}", "x")
    everybody = sorted(f"x/{name}" for name in nodes)
    for peer in nodes.values():
        assert sorted(each["key"] for each in peer.take("s", len(nodes))) == everybody
    for name, peer in nodes.items():
        answers = peer.get("q/*", target="ALL", consolidation="NONE")
        assert sorted(each["key"] for each in answers) == sorted(f"q/{each}" for each in nodes), (
            name
        )
    for peer in nodes.values():
        assert peer.quiet("s", 0.1)


def until_heard(nodes: dict[str, Peer]) -> None:
    """Speak until everybody hears everybody."""
    deadline = time.monotonic() + SECONDS
    missing = {name: {f"w/{each}" for each in nodes} for name in nodes}
    while any(missing.values()):
        assert time.monotonic() < deadline, f"not heard: {missing}"
        for name, peer in nodes.items():
            peer.put(f"w/{name}", "w")
        time.sleep(0.05)
        for name, peer in nodes.items():
            missing[name] -= {each["key"] for each in peer.take("w", peer.heard_by("w"))}


@pytest.mark.parametrize("ours_connects", [True, False])
@pytest.mark.parametrize(
    ("mode", "gateway", "other", "others"),
    [
        ("peer", south({}), "peer", south({})),
        ("router", south(ONE), "peer", None),
        ("router", south(ONE), "peer", south(ONE)),
        ("router", None, "peer", south({"modes": ["router"]})),
    ],
    ids=["both south", "no place", "no place for each other", "a router below a peer"],
)
def test_a_pair_that_cannot_agree_does_not_open(
    mode: str,
    gateway: Keys | None,
    other: str,
    others: Keys | None,
    ours_connects: bool,
    elsewhere: Process,
    stack: ExitStack,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Before it says where it puts a router, an Eclipse peer that would have to serve it gives up.
    other_knows = gateway is not None
    caplog.set_level("INFO", "zenlake")
    ours, theirs = Peer(OURS), elsewhere.node(f"region {next(numbers)}")
    one, two = (theirs, ours) if ours_connects else (ours, theirs)
    place = f"tcp/127.0.0.1:{free_port()}"
    one.open(mode, listen__endpoints=[place], **({} if gateway is None else {"gateway": gateway}))
    stack.callback(one.close)
    two.open(
        other,
        connect__endpoints=[place],
        connect__timeout_ms=700,
        connect__exit_on_failure=False,
        scouting__delay=200,
        **({} if others is None else {"gateway": others}),
    )
    stack.callback(two.close)
    if ours_connects:
        endpoint = ours.session.runtime.node.plan.endpoints[0]
        until(lambda: "gateway/south" in endpoint.error, "no error is told")
    elif other_knows:
        # Whoever runs the gateway reads it, too.
        until(lambda: "gateway/south" in caplog.text, "no error is logged")
    assert one.neighbours() == []
    assert two.neighbours() == []

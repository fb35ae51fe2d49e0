"""Routers telling each other about the network: the words of real routers, and agreement."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake.clock import ZenohId
from zenlake.errors import DecodeError
from zenlake.routing.linkstate import LATEST_SN, MAX_NODES, LinkStateTable
from zenlake.wire import (
    Frame,
    LinkState,
    LinkStates,
    Oam,
    read_batch,
    read_link_states,
    read_network,
    write,
)
from zenlake.wire.link_state import Outgoing
from zenlake.wire.message import Message

VECTORS = Path(__file__).parent.parent / "golden" / "vectors-1x.json"


@pytest.fixture(scope="module")
def heard() -> dict[str, Oam]:
    """The link states that real routers said, by the name of the moment."""
    found: dict[str, Oam] = {}
    for vector in json.loads(VECTORS.read_text()):
        name: str = vector["name"]
        if not name.startswith(("cap2_rr:", "cap_cap4:weights")):
            continue
        data = bytes.fromhex(vector["hex"])
        messages: list[Message] = []
        if "#" in name:
            messages.append(read_network(data))
        else:
            for frame in read_batch(data):
                messages += frame.messages if isinstance(frame, Frame) else ()
        for message in messages:
            if isinstance(message, Oam):
                found[name.partition("#")[0]] = message
    return found


def zid(text: str) -> bytes:
    return bytes(ZenohId.parse(text))


R1 = zid("2441a7f3d2c164356617e6328f8f3b7d")
R2 = zid("8b38d40b4b81b818cd49f5b820544e02")
R3 = zid("783b6bd765b2f6f126ca4f03fa1d33eb")


def table(me: bytes, *locators: str, **options: Any) -> LinkStateTable:
    return LinkStateTable(me, lambda: list(locators), **options)


def only(out: Outgoing) -> Oam:
    assert len(out) == 1
    return out[0][1]


def entries(message: Oam) -> tuple[LinkState, ...]:
    assert isinstance(message.body, bytes)
    return read_link_states(message.body)


def unordered(message: Oam) -> list[Any]:
    """What is said, whatever the order of the links of one router."""
    return [
        (e.psid, e.sn, e.zid, e.whatami, e.locators, sorted(e.links), e.gateway)
        for e in entries(message)
    ]


def states(*said: LinkState) -> Oam:
    return Oam(id=1, qos=8, body=write(LinkStates(entries=said)))


# ---------------------------------------------------------------------------- as real routers


def test_two_routers_meet_as_real_ones_do(heard: dict[str, Oam]) -> None:
    moment = "cap2_rr:router-router/handshake"
    one = table(R1, "tcp/127.0.0.1:29000")
    two = table(R2, "tcp/127.0.0.1:29002")
    hello_two = only(two.added(7, R1))
    assert hello_two == heard[f"{moment}/4"]
    hello_one = only(one.added(3, R2))
    assert hello_one == heard[f"{moment}/5"]
    known, out = one.received(3, hello_two)
    assert known == []  # neighbours are nobody to connect to
    assert only(out) == heard[f"{moment}/6"]
    two.received(7, hello_one)
    assert one.graph() == two.graph() == {R1: {R2: 0}, R2: {R1: 0}}


def test_a_third_router_is_introduced_as_real_ones_do(heard: dict[str, Oam]) -> None:
    moment = "cap2_rr:router-router/third_router_linkstate"
    third = "cap2_rr:router3-router1/handshake_third_router"
    one = table(R1, "tcp/127.0.0.1:29000")
    two = table(R2, "tcp/127.0.0.1:29002")
    three = table(R3, "tcp/127.0.0.1:29004")
    hello_two, hello_one = only(two.added(1, R1)), only(one.added(1, R2))
    one.received(1, hello_two)
    two.received(1, hello_one)

    hello_three = only(three.added(1, R1))
    assert hello_three == heard[f"{third}/4"]
    (to_two, to_three) = one.added(2, R3)
    assert to_two[0] == 1
    assert unordered(to_two[1]) == unordered(heard[f"{moment}/0"])
    assert to_three[0] == 2
    assert unordered(to_three[1])[0] == unordered(heard[f"{third}/5"])[0]

    _, out = one.received(2, hello_three)
    told = dict(out)
    assert told[1] == heard[f"{moment}/1"]
    assert told[2] == told[1]
    _, out = two.received(1, to_two[1])
    assert only(out) == heard[f"{moment}/2"]
    _, out = two.received(1, told[1])
    assert only(out) == heard[f"{moment}/3"]
    known, out = three.received(1, to_three[1])
    assert [node.zid for node in known] == [R2]
    # A real router says the last of these twice.
    assert unordered(only(out)) == unordered(states(*entries(heard[f"{third}/7"])[:2]))
    assert one.graph() == two.graph() == three.graph()

    assert (
        only([pair for pair in one.removed(2) if pair[0] == 1])
        == heard["cap2_rr:router-router/r3_gone/0"]
    )


def test_wishes_for_weights_are_told_as_real_routers_do(heard: dict[str, Oam]) -> None:
    heavy = table(b"\x11\xaa", "tcp/127.0.0.1:37000", weights={b"\x22\xbb": 7})
    plain = table(b"\x22\xbb", "tcp/127.0.0.1:37002")
    hello_heavy, hello_plain = only(heavy.added(1, b"\x22\xbb")), only(plain.added(1, b"\x11\xaa"))
    assert hello_heavy == heard["cap_cap4:weights/hs/4"]
    assert hello_plain == heard["cap_cap4:weights/hs/5"]
    assert only(heavy.received(1, hello_plain)[1]) == heard["cap_cap4:weights/hs/7"]
    (entry,) = entries(only(plain.received(1, hello_heavy)[1]))
    assert (entry.links, entry.weights) == ((0,), (7,))
    assert heavy.graph() == plain.graph()
    assert plain.graph()[b"\x11\xaa"] == {b"\x22\xbb": 7}


def test_new_weights_are_told_and_old_ones_are_not_told_again() -> None:
    one = table(b"\x01")
    one.added(1, b"\x02")
    assert one.reweighed({}) == []
    (entry,) = entries(only(one.reweighed({b"\x02": 9})))
    assert entry.weights == (9,)
    assert one.reweighed({b"\x02": 9, b"\x03": 4}) == []


# ------------------------------------------------------------------------------------- rules


def test_what_is_older_is_ignored_and_what_is_newer_is_passed_on_without_its_id() -> None:
    me = table(b"\x01")
    me.added(1, b"\x02")
    me.added(2, b"\x03")
    two = LinkState(psid=0, sn=5, zid=b"\x02", whatami=1, links=(1,))
    mine = LinkState(psid=1, sn=0, zid=b"\x01", whatami=1, links=())
    me.received(1, states(two, mine))
    assert me.nodes[b"\x02"].links == {b"\x01": 0}
    _, out = me.received(1, states(LinkState(psid=0, sn=5, whatami=1, links=())))
    assert out == []
    assert me.nodes[b"\x02"].links == {b"\x01": 0}
    _, out = me.received(1, states(LinkState(psid=0, sn=6, whatami=1, links=(1,))))
    assert [number for number, _ in out] == [2]
    assert [entry.zid for entry in entries(only(out))] == [b""]


def test_numbers_that_mean_nothing_are_passed_over() -> None:
    me = table(b"\x01")
    me.added(1, b"\x02")
    assert me.received(1, states(LinkState(psid=9, sn=5, links=()))) == ([], [])
    assert me.passed_over == 1
    known = LinkState(psid=0, sn=5, zid=b"\x02", whatami=1, links=(8, 9))
    me.received(1, states(known))
    assert me.nodes[b"\x02"].links == {}
    assert me.named(1, 0) == b"\x02"
    assert me.named(1, 9) == me.named(5, 0) == b""


def test_a_router_that_no_links_lead_to_is_forgotten_and_its_number_used_again() -> None:
    me = table(b"\x01")
    me.added(1, b"\x02")
    me.received(
        1,
        states(
            LinkState(psid=0, sn=2, zid=b"\x02", whatami=1, links=(1, 2)),
            LinkState(psid=1, sn=0, zid=b"\x01", whatami=1, links=()),
            LinkState(psid=2, sn=2, zid=b"\x03", whatami=1, links=(0,)),
        ),
    )
    assert me.psid(b"\x03") == 2
    me.received(1, states(LinkState(psid=0, sn=3, links=(1,))))
    assert list(me.nodes) == [b"\x01", b"\x02"]
    assert me.psid(b"\x03") == -1
    me.added(2, b"\x04")
    assert me.psid(b"\x04") == 2
    me.removed(1)
    me.removed(2)
    assert list(me.nodes) == [b"\x01"]
    assert me.removed(2) == []


def test_locators_are_told_of_neighbours_alone_unless_gossip_goes_further() -> None:
    def told(**options: Any) -> list[tuple[str, ...] | None]:
        me = table(b"\x01", "tcp/me:1", **options)
        me.added(1, b"\x02")
        me.received(
            1,
            states(
                LinkState(psid=0, sn=2, zid=b"\x02", locators=("tcp/two:1",), links=(1, 2)),
                LinkState(psid=1, sn=0, zid=b"\x01", links=()),
                LinkState(psid=2, sn=2, zid=b"\x03", locators=("tcp/three:1",), links=(0,)),
            ),
        )
        hello = next(message for number, message in me.added(2, b"\x04") if number == 2)
        return [entry.locators for entry in entries(hello)][:3]

    assert told() == [("tcp/me:1",), ("tcp/two:1",), None]
    assert told(multihop=True) == [("tcp/me:1",), ("tcp/two:1",), ("tcp/three:1",)]
    assert told(gossip=False) == [None, None, None]
    assert told(targets=0b010) == [None, None, None]


def test_who_has_heard_less_of_a_router_is_told_what_we_know() -> None:
    me = table(b"\x01")
    me.added(1, b"\x02")
    me.received(
        1,
        states(
            LinkState(psid=0, sn=2, zid=b"\x02", whatami=1, links=(1, 2)),
            LinkState(psid=1, sn=0, zid=b"\x01", whatami=1, links=()),
            LinkState(psid=2, sn=4, zid=b"\x03", whatami=1, links=(0,)),
        ),
    )
    for older in (0, 3):
        _, out = me.received(1, states(LinkState(psid=2, sn=older, zid=b"\x03", links=())))
        (entry,) = entries(only(out))
        assert (entry.zid, entry.sn, entry.links) == (b"\x03", 4, (1,))
    # What it says without an id it knew before, and it will hear the rest in time.
    assert me.received(1, states(LinkState(psid=2, sn=3, links=())))[1] == []


def test_a_router_continues_from_where_its_former_life_ended() -> None:
    me = table(b"\x01")
    me.added(1, b"\x02")
    _, out = me.received(1, states(LinkState(psid=1, sn=40, zid=b"\x01", links=())))
    (entry,) = entries(only(out))
    assert (entry.psid, entry.sn, entry.links) == (0, 41, (1,))
    assert me.received(1, states(LinkState(psid=1, sn=41, links=())))[1] == []
    assert me.received(1, states(LinkState(psid=1, sn=LATEST_SN, links=())))[1] == []
    assert me.me.sn == 41


def test_a_neighbour_cannot_make_us_remember_without_end() -> None:
    me = table(b"\x01")
    me.added(1, b"\x02")
    for start in range(0, MAX_NODES + 500, 500):
        multicast = [
            LinkState(psid=n, sn=1, zid=b"z" + n.to_bytes(3, "little") + b"\x01", links=())
            for n in range(start + 1, start + 501)
        ]
        all_of_them = tuple(range(1, start + 501))
        me.received(
            1,
            states(LinkState(psid=0, sn=start + 1, zid=b"\x02", links=all_of_them), *multicast),
        )
    assert len(me.nodes) <= MAX_NODES
    assert me.passed_over > 0
    assert sorted(node.psid for node in me.nodes.values()) == list(range(len(me.nodes)))


def test_garbage_is_refused_and_strangers_are_ignored() -> None:
    me = table(b"\x01")
    assert me.received(1, states()) == ([], [])
    me.added(1, b"\x02")
    assert me.received(1, Oam(id=2, body=b"\x00")) == ([], [])
    with pytest.raises(DecodeError):
        me.received(1, Oam(id=1, body=b"\x05\x00"))


def test_a_new_place_to_listen_at_is_told_to_all() -> None:
    places = ["tcp/old:1"]
    me = LinkStateTable(b"\x01", lambda: places)
    me.added(1, b"\x02")
    places[0] = "tcp/new:1"
    (entry,) = entries(only(me.relocated()))
    assert (entry.locators, entry.sn) == (("tcp/new:1",), 3)


# ---------------------------------------------------------------------------------- agreement


class Mesh:
    """Routers and the messages between them, each link in order, links in any order."""

    def __init__(self, random: Random, count: int) -> None:
        self.random = random
        self.tables = [table(bytes((i + 1,))) for i in range(count)]
        #: What is under way, by (from, to); the number of a link is the other end.
        self.wires: dict[tuple[int, int], deque[Oam]] = {}

    def send(self, at: int, out: Outgoing) -> None:
        for to, message in out:
            if (at, to) in self.wires:
                self.wires[at, to].append(message)

    def join(self, a: int, b: int) -> None:
        if a != b and (a, b) not in self.wires:
            self.wires[a, b], self.wires[b, a] = deque(), deque()
            self.send(a, self.tables[a].added(b, bytes((b + 1,))))
            self.send(b, self.tables[b].added(a, bytes((a + 1,))))

    def cut(self, a: int, b: int) -> None:
        if self.wires.pop((a, b), None) is not None:
            del self.wires[b, a]
            self.send(a, self.tables[a].removed(b))
            self.send(b, self.tables[b].removed(a))

    def carry(self, most: int) -> None:
        for _ in range(most):
            busy = [pair for pair, queue in self.wires.items() if queue]
            if not busy:
                return
            a, b = self.random.choice(busy)
            self.send(b, self.tables[b].received(a, self.wires[a, b].popleft())[1])

    def settle(self) -> None:
        self.carry(200_000)
        assert not any(self.wires.values())

    def parts(self) -> list[set[int]]:
        left = set(range(len(self.tables)))
        found = []
        while left:
            part, stack = set(), [min(left)]
            while stack:
                at = stack.pop()
                if at not in part:
                    part.add(at)
                    stack += [b for a, b in self.wires if a == at]
            left -= part
            found.append(part)
        return found


ACTIONS = st.lists(
    st.tuples(st.sampled_from("jjjcw"), st.integers(0, 99), st.integers(0, 99)), max_size=60
)


@settings(max_examples=120, deadline=None)
@given(st.integers(2, 8), ACTIONS, st.randoms(use_true_random=False))
def test_all_who_can_reach_each_other_come_to_know_the_same(
    count: int, actions: list[tuple[str, int, int]], random: Random
) -> None:
    mesh = Mesh(random, count)
    for action, a, b in actions:
        if action == "j":
            mesh.join(a % count, b % count)
        elif action == "c" and mesh.wires:
            mesh.cut(*sorted(mesh.wires)[a % len(mesh.wires)])
        else:
            mesh.carry(b % 7)
    mesh.settle()
    for part in mesh.parts():
        truth = {
            bytes((a + 1,)): {bytes((b + 1,)): 0 for x, b in mesh.wires if x == a} for a in part
        }
        for at in part:
            assert mesh.tables[at].graph() == truth
            psids = [node.psid for node in mesh.tables[at].nodes.values()]
            assert len(set(psids)) == len(psids)
            for other in part:
                if (other, at) in mesh.wires:
                    for node in mesh.tables[other].nodes.values():
                        assert mesh.tables[at].named(other, node.psid) == node.zid

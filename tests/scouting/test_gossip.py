from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError
from zenlake.scouting import Gossip
from zenlake.scouting import gossip as gossip_module
from zenlake.wire import LinkState, LinkStates, Oam, read_link_states, read_network, write
from zenlake.wire.link_state import KnownNode

ROUTER, PEER, CLIENT = 1, 2, 4
GOLDEN = Path(__file__).parents[1] / "golden" / "vectors-1x.json"

A, B, C = b"\xaa\xaa", b"\xbb\xbb", b"\xcc\xcc"
R = b"\x11\x11\x11"

# What a peer `aaaa` of eclipse-zenoh 1.10.2 was heard to say: a router came, then the peers
# `bbbb` and `cccc`, each with what it said of itself.
HEARD = {
    "to R when it came": "df012108280207000202aaaa0201137463702f3132372e302e302e313a33313030320101"
    "130100031111110100",
    "to R when B came": "df012108250203020002bbbb02000600030201137463702f3132372e302e302e313a333130"
    "3032020102",
    "from B": "df012108260207000202bbbb0201137463702f3132372e302e302e313a33313031320003010002aaaa"
    "0200",
    "to B when it came": "df0121082f0307000302aaaa0201137463702f3132372e302e302e313a33313030320013"
    "010003111111010003020002bbbb0200",
    "to R of B": "df0121081e0107020202bbbb0201137463702f3132372e302e302e313a333130313200",
    "to R when C came": "df012108260203030002cccc02000600040201137463702f3132372e302e302e313a333130"
    "303203010203",
    "from C": "df012108260207000202cccc0201137463702f3132372e302e302e313a33313032320003010002aaaa"
    "0200",
    "to C when it came": "df0121084c0407000402aaaa0201137463702f3132372e302e302e313a33313030320013"
    "010003111111010007020202bbbb0201137463702f3132372e302e302e313a33313031320003030002cccc0200",
    "of C to R and B": "df0121081e0107030202cccc0201137463702f3132372e302e302e313a333130323200",
}


def peer(zid: bytes = A, port: int = 31002, **options: Any) -> Gossip:
    return Gossip(zid, PEER, lambda: [f"tcp/127.0.0.1:{port}"], **options)


def heard(name: str) -> Oam:
    message = read_network(bytes.fromhex(HEARD[name]))
    assert isinstance(message, Oam)
    return message


def said(outgoing: list[tuple[int, Oam]]) -> list[tuple[int, str]]:
    return [(neighbour, write(oam).hex()) for neighbour, oam in outgoing]


def states(*entries: LinkState) -> Oam:
    return Oam(id=1, qos=8, body=write(LinkStates(entries=entries)))


def entries(oam: Oam) -> tuple[LinkState, ...]:
    assert isinstance(oam.body, bytes)
    return read_link_states(oam.body)


def word(zid: bytes, sn: int, *locators: str, psid: int = 0, role: int = PEER) -> LinkState:
    return LinkState(psid=psid, sn=sn, zid=zid, whatami=role, locators=locators, links=())


def test_a_peer_says_what_a_real_peer_was_heard_to_say() -> None:
    gossip = peer()
    assert said(gossip.added(1, R, ROUTER)) == [(1, HEARD["to R when it came"])]
    assert gossip.received(1, states()) == ([], [])
    assert said(gossip.added(2, B, PEER)) == [
        (1, HEARD["to R when B came"]),
        (2, HEARD["to B when it came"]),
    ]
    known, out = gossip.received(2, heard("from B"))
    assert known == []
    assert said(out) == [(1, HEARD["to R of B"])]
    assert said(gossip.added(3, C, PEER)) == [
        (1, HEARD["to R when C came"]),
        (3, HEARD["to C when it came"]),
    ]
    known, out = gossip.received(3, heard("from C"))
    assert known == []
    assert said(out) == [(1, HEARD["of C to R and B"]), (2, HEARD["of C to R and B"])]


def test_a_peer_learns_from_what_a_real_peer_said() -> None:
    gossip = peer(C, 31022)
    assert said(gossip.added(9, A, PEER)) == [(9, HEARD["from C"])]
    known, out = gossip.received(9, heard("to C when it came"))
    assert known == [KnownNode(B, PEER, ("tcp/127.0.0.1:31012",))]
    assert out == []


def golden() -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = json.loads(GOLDEN.read_text())
    wanted = ("peer-peer/handshake", "peer-router/handshake/5")
    return [
        vector
        for vector in vectors
        if vector["name"].endswith("#net0:OAM") and any(name in vector["name"] for name in wanted)
    ]


@pytest.mark.parametrize("vector", golden(), ids=lambda vector: str(vector["name"]))
def test_a_new_neighbour_is_greeted_as_in_the_golden_vectors(vector: dict[str, Any]) -> None:
    me, other = entries(Oam(id=1, body=bytes.fromhex(vector["meaning"]["zbuf"])))
    assert me.locators is not None
    places = list(me.locators)
    gossip = Gossip(me.zid, me.whatami, lambda: places)
    assert said(gossip.added(7, other.zid, other.whatami)) == [(7, vector["hex"])]


def test_there_are_golden_greetings() -> None:
    assert len(golden()) == 3


def test_a_client_takes_no_part() -> None:
    gossip = Gossip(A, CLIENT, list)
    assert gossip.added(1, R, ROUTER) == []
    assert gossip.received(1, states(word(B, 2, "tcp/b:1"))) == ([], [])
    assert gossip.removed(1) == []


def test_nobody_speaks_of_clients() -> None:
    gossip = peer()
    gossip.added(1, R, ROUTER)
    assert gossip.added(2, C, CLIENT) == []
    assert gossip.removed(2) == []


def test_the_router_hears_of_a_lost_neighbour_as_news() -> None:
    gossip = peer()
    gossip.added(1, R, ROUTER)
    gossip.added(2, B, PEER)
    gossip.added(3, C, PEER)
    ((to, oam),) = gossip.removed(2)
    (me,) = entries(oam)
    assert to == 1
    assert (me.zid, me.sn, me.links) == (b"", 5, (1, 3))
    assert gossip.removed(2) == []


def test_numbers_of_lost_neighbours_are_used_again() -> None:
    gossip = peer()
    gossip.added(1, B, PEER)
    gossip.added(2, C, PEER)
    gossip.removed(1)
    ((_, oam),) = gossip.added(3, R, ROUTER)
    assert [(entry.psid, entry.zid) for entry in entries(oam)] == [(0, A), (1, R), (2, C)]


def test_a_word_is_passed_on_once() -> None:
    gossip = peer()
    gossip.added(1, B, PEER)
    gossip.added(2, C, PEER)
    assert gossip.received(1, states(word(B, 2, "tcp/b:1")))[1]
    assert gossip.received(1, states(word(B, 2, "tcp/other:1"))) == ([], [])
    assert gossip.received(1, states(word(B, 3, "tcp/b:1"))) == ([], [])
    _, out = gossip.received(1, states(word(B, 4, "tcp/b:2")))
    assert [to for to, _ in out] == [2]


def test_what_a_neighbour_says_of_others_stays_here() -> None:
    gossip = peer()
    gossip.added(1, B, PEER)
    gossip.added(2, C, PEER)
    known, out = gossip.received(1, states(word(b"\x07", 9, "tcp/far:1", psid=3, role=ROUTER)))
    assert known == [KnownNode(b"\x07", ROUTER, ("tcp/far:1",))]
    assert out == []


def test_with_multihop_it_travels_on_and_comes_to_rest() -> None:
    names = [bytes([i]) for i in range(1, 6)]
    line = [peer(zid, i, multihop=True) for i, zid in enumerate(names)]
    queue: list[tuple[int, int, Oam]] = []
    for i in range(4):  # neighbours are named by their place in the line
        queue += [(i, to, oam) for to, oam in line[i].added(i + 1, names[i + 1], PEER)]
        queue += [(i + 1, to, oam) for to, oam in line[i + 1].added(i, names[i], PEER)]
    learned: set[tuple[int, bytes]] = set()
    steps = 0
    while queue:
        source, to, oam = queue.pop(0)
        known, out = line[to].received(source, oam)
        learned |= {(to, node.zid) for node in known}
        queue += [(to, further, message) for further, message in out]
        steps += 1
        assert steps < 200
    assert (4, names[0]) in learned
    assert (0, names[4]) in learned


def test_an_entry_without_an_id_is_about_the_node_of_that_number() -> None:
    gossip = peer()
    gossip.added(1, B, PEER)
    gossip.added(2, C, PEER)
    gossip.received(1, states(word(b"\x07", 1, "tcp/x:1", psid=5)))
    gossip.received(2, states(word(b"\x08", 1, "tcp/y:1", psid=5)))
    update = LinkState(psid=5, sn=2, whatami=PEER, locators=("tcp/z:1",), links=())
    assert gossip.received(1, states(update))[0] == [KnownNode(b"\x07", PEER, ("tcp/z:1",))]
    assert gossip.received(2, states(update))[0] == [KnownNode(b"\x08", PEER, ("tcp/z:1",))]
    unknown = LinkState(psid=6, sn=2, whatami=PEER, locators=("tcp/z:1",), links=())
    assert gossip.received(1, states(unknown)) == ([], [])
    assert gossip.passed_over == 1


def test_nobody_learns_of_itself_or_of_those_it_knows() -> None:
    gossip = peer()
    gossip.added(1, B, PEER)
    gossip.added(2, C, PEER)
    message = states(word(A, 9, "tcp/me:1", psid=1), word(C, 9, "tcp/c:1", psid=2))
    assert gossip.received(1, message) == ([], [])


def test_only_targets_are_told() -> None:
    gossip = peer(targets=PEER)
    assert gossip.added(1, R, ROUTER) == []
    assert [to for to, _ in gossip.added(2, B, PEER)] == [2]
    assert gossip.received(2, states(word(B, 2, "tcp/b:1")))[1] == []
    assert gossip.removed(2) == []


def test_a_new_place_to_listen_is_told_to_all() -> None:
    places = ["tcp/a:1"]
    gossip = Gossip(A, PEER, lambda: places)
    gossip.added(1, R, ROUTER)
    gossip.added(2, B, PEER)
    places.append("tcp/a:2")
    out = dict(gossip.relocated())
    assert entries(out[1])[0].links == (1, 2)
    assert entries(out[2])[0].links == ()
    assert entries(out[2])[0].locators == ("tcp/a:1", "tcp/a:2")


def test_a_stranger_and_other_maintenance_are_ignored() -> None:
    gossip = peer()
    assert gossip.received(5, states(word(B, 2, "tcp/b:1"))) == ([], [])
    gossip.added(1, B, PEER)
    assert gossip.received(1, Oam(id=2, body=b"\xff")) == ([], [])
    assert gossip.received(1, Oam(id=1, body=7)) == ([], [])
    with pytest.raises(DecodeError):
        gossip.received(1, Oam(id=1, body=b"\x05"))


def test_a_second_session_with_the_same_node_outlives_the_first() -> None:
    gossip = peer()
    gossip.added(1, B, PEER)
    gossip.added(2, B, PEER)
    gossip.removed(2)
    ((_, oam),) = gossip.added(3, R, ROUTER)
    assert entries(oam)[0].links == (1, 2)
    gossip.removed(1)
    ((_, oam),) = gossip.added(4, b"\x22", ROUTER)[-1:]
    assert B not in [entry.zid for entry in entries(oam)]


def test_a_flood_of_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gossip_module, "MAX_PSIDS", 10)
    monkeypatch.setattr(gossip_module, "MAX_NODES", 10)
    gossip = peer(multihop=True)
    gossip.added(1, B, PEER)
    gossip.added(2, C, PEER)
    flood = [word(bytes([9, i + 1]), 1, "tcp/x:1", psid=i) for i in range(100)]
    _, out = gossip.received(1, states(*flood))
    assert [(to, len(entries(oam))) for to, oam in out] == [(2, 10)]
    assert gossip.passed_over == 90 + 90


zids = st.sampled_from([bytes([i]) for i in range(1, 8)])
link_states = st.builds(
    LinkState,
    psid=st.integers(0, 9),
    sn=st.integers(0, 2**64 - 1),
    zid=zids | st.just(b""),
    whatami=st.sampled_from([0, 1, 2, 4]),
    locators=st.none() | st.lists(st.just("tcp/x:1") | st.just("tcp/y:1"), max_size=2).map(tuple),
    links=st.lists(st.integers(0, 9), max_size=3).map(tuple),
)
steps = st.lists(
    st.tuples(st.just("added"), st.integers(0, 4), zids, st.sampled_from([1, 2, 4]))
    | st.tuples(st.just("removed"), st.integers(0, 4), zids, st.just(0))
    | st.tuples(
        st.just("received"),
        st.integers(0, 4),
        st.lists(link_states, max_size=4).map(lambda found: states(*found)),
        st.just(0),
    ),
    max_size=30,
)


@given(steps, st.booleans())
def test_whatever_happens_only_neighbours_are_spoken_to(steps: list[Any], multihop: bool) -> None:
    gossip = peer(b"\xee", multihop=multihop)
    there: dict[int, bytes] = {}
    for what, neighbour, argument, role in steps:
        if what == "added" and neighbour not in there:
            out = gossip.added(neighbour, argument, role)
            if role != CLIENT:
                there[neighbour] = argument
        elif what == "removed":
            there.pop(neighbour, None)
            out = gossip.removed(neighbour)
        elif what == "received":
            known, out = gossip.received(neighbour, argument)
            assert not {node.zid for node in known} & {*there.values(), b"\xee"}
        else:
            continue
        for to, oam in out:
            assert to in there
            numbers = [entry.psid for entry in entries(oam)]
            assert len(set(numbers)) == len(numbers)

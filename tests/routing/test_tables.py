"""Declarations and interests, one example a rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zenlake.errors import RemoteError
from zenlake.routing.face import Face
from zenlake.routing.home import Home
from zenlake.routing.keyids import is_key
from zenlake.routing.tables import Tables
from zenlake.transport.outbox import Outbox
from zenlake.wire import (
    Declare,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Frame,
    Interest,
    KeyExt,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
    read_batch,
    write,
)

ROUTER, PEER, CLIENT = 0, 1, 2
SUBSCRIBER, QUERYABLE, TOKEN = 0, 1, 2
CURRENT, FUTURE, BOTH = 1, 2, 3


class Room:
    """The tables of a node, with some neighbours."""

    def __init__(self, mode: int, *roles: int) -> None:
        self.tables = Tables(mode, Home())
        self.faces = [self.add(role) for role in roles]

    def add(self, role: int) -> Face:
        outbox = Outbox(65535, 2, 0x0FFF_FFFF, 0, True, 2)
        number = len(self.tables.faces) + 1
        face = Face(number, bytes((number,)), role, outbox)
        self.tables.add(face, 0.0)
        return face

    def said(self, face: Face) -> list[str]:
        """What was said to a neighbour, as hexadecimal; interests of ours left out."""
        found: list[str] = []
        assert face.outbox is not None
        while batch := face.outbox.take():
            for frame in read_batch(batch[2:]):
                assert isinstance(frame, Frame)
                found += [write(message).hex() for message in frame.messages]
        return found

    def want(
        self, face: Face, id: int, mode: int, kinds: str, key: str, aggregate: bool = False
    ) -> list[str]:
        """An interest, and the answer to it."""
        self.said(face)
        self.tables.interest(
            face,
            Interest(
                mode=mode, id=id, subscribers="S" in kinds, queryables="Q" in kinds,
                tokens="T" in kinds, key_exprs="K" in kinds, restricted=bool(key), suffix=key,
                aggregate=aggregate,
            ),
            0.0,
        )  # fmt: skip
        return self.said(face)


def hexes(*messages: Declare) -> list[str]:
    return [write(message).hex() for message in messages]


def subscriber(id: int, key: str, interest: int | None = None) -> Declare:
    return Declare(interest_id=interest, qos=8, body=DeclareSubscriber(id=id, scope=0, suffix=key))


def queryable(id: int, key: str, info: int, interest: int | None = None) -> Declare:
    body = DeclareQueryable(id=id, scope=0, suffix=key, info=info)
    return Declare(interest_id=interest, qos=8, body=body)


def token(id: int, key: str, interest: int | None = None) -> Declare:
    return Declare(interest_id=interest, qos=8, body=DeclareToken(id=id, scope=0, suffix=key))


FINAL_7 = "be0721081a"


def test_a_client_is_told_only_what_it_asked_for() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.tables.declare(one, SUBSCRIBER, 1, "a/b")
    assert room.said(two) == []
    assert room.want(two, 7, BOTH, "S", "a/*") == [*hexes(subscriber(1, "a/b", 7)), FINAL_7]
    room.tables.declare(one, SUBSCRIBER, 2, "a/c")
    room.tables.declare(one, SUBSCRIBER, 3, "b")
    assert room.said(two) == hexes(subscriber(2, "a/c"))
    room.tables.undeclare(one, SUBSCRIBER, 1)
    assert room.said(two) == ["9e21080301"]


def test_a_key_is_announced_once_however_many_hold_it() -> None:
    room = Room(PEER, CLIENT, CLIENT, CLIENT)
    one, two, three = room.faces
    room.want(three, 7, BOTH, "S", "")
    room.tables.declare(one, SUBSCRIBER, 1, "a")
    room.tables.declare(one, SUBSCRIBER, 2, "a")
    room.tables.declare(two, SUBSCRIBER, 1, "a")
    assert room.said(three) == hexes(subscriber(1, "a"))
    room.tables.undeclare(one, SUBSCRIBER, 1)
    room.tables.undeclare(two, SUBSCRIBER, 1)
    assert room.said(three) == []
    room.tables.undeclare(one, SUBSCRIBER, 2)
    assert room.said(three) == ["9e21080301"]


def test_a_second_interest_reuses_the_number_of_a_key() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.tables.declare(one, SUBSCRIBER, 1, "a")
    room.want(two, 7, BOTH, "S", "a")
    assert room.want(two, 8, BOTH, "S", "**") == [*hexes(subscriber(1, "a", 8)), "be0821081a"]


def test_an_interest_in_the_future_alone_is_not_told_of_the_present() -> None:
    room = Room(PEER, CLIENT, CLIENT, CLIENT)
    one, two, three = room.faces
    room.tables.declare(one, TOKEN, 1, "t")
    room.tables.declare(two, TOKEN, 1, "t")
    assert room.want(three, 7, FUTURE, "T", "**") == [FINAL_7]
    room.tables.undeclare(two, TOKEN, 1)
    assert room.said(three) == []  # nor when one of several goes
    room.tables.undeclare(one, TOKEN, 1)
    assert room.said(three) == []
    room.tables.declare(one, TOKEN, 2, "t")
    assert room.said(three) == hexes(token(1, "t"))


def test_an_interest_in_the_present_alone_is_answered_with_the_number_zero_and_forgotten() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.tables.declare(one, TOKEN, 4, "t")
    assert room.want(two, 7, CURRENT, "TK", "*") == [*hexes(token(0, "t", 7)), FINAL_7]
    assert two.interests_in == {}
    assert two.account.used == 0
    room.tables.undeclare(one, TOKEN, 4)
    assert room.said(two) == []


def test_ones_own_tokens_are_part_of_the_answer_and_ones_own_subscribers_are_not() -> None:
    room = Room(PEER, CLIENT)
    [one] = room.faces
    room.tables.declare(one, TOKEN, 1, "t")
    room.tables.declare(one, SUBSCRIBER, 1, "s")
    assert room.want(one, 7, CURRENT, "T", "") == [*hexes(token(0, "t", 7)), FINAL_7]
    assert room.want(one, 8, BOTH, "S", "") == ["be0821081a"]


@pytest.mark.parametrize("mode", [CURRENT, BOTH])
def test_a_peer_is_not_told_of_its_own_tokens_by_its_router(mode: int) -> None:
    room = Room(ROUTER, PEER, CLIENT)
    one, other = room.faces
    room.tables.declare(one, TOKEN, 1, "t/own")
    room.tables.declare(other, TOKEN, 1, "t/other")
    answer = token(0 if mode == CURRENT else 1, "t/other", 7)
    assert room.want(one, 7, mode, "T", "t/*") == [*hexes(answer), FINAL_7]


@pytest.mark.parametrize("kinds", ["S", "Q", "K", "ST", ""])
def test_the_present_alone_is_for_tokens(kinds: str) -> None:
    room = Room(PEER, CLIENT)
    assert room.want(room.faces[0], 7, CURRENT, kinds, "a") == []
    assert room.faces[0].ignored == 1


def test_a_number_in_use_and_a_key_that_is_none_are_ignored() -> None:
    room = Room(PEER, CLIENT)
    [one] = room.faces
    assert room.want(one, 7, BOTH, "S", "a") == [FINAL_7]
    assert room.want(one, 7, BOTH, "S", "b") == []
    assert room.want(one, 8, BOTH, "S", "a//b") == []
    assert one.ignored == 2


def test_routers_do_not_ask_each_other() -> None:
    room = Room(ROUTER, ROUTER)
    assert room.want(room.faces[0], 7, BOTH, "S", "a") == []


def test_after_the_end_of_an_interest_news_is_not_told_but_ends_are() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.tables.declare(one, SUBSCRIBER, 1, "a")
    room.want(two, 7, BOTH, "S", "**")
    room.tables.interest(two, Interest(mode=0, id=7), 0.0)
    assert room.said(two) == []
    room.tables.declare(one, SUBSCRIBER, 2, "b")
    assert room.said(two) == []
    room.tables.undeclare(one, SUBSCRIBER, 1)
    assert room.said(two) == ["9e21080301"]
    room.tables.interest(two, Interest(mode=0, id=99), 0.0)  # nobody's interest: nothing


def test_the_information_of_queryables_is_merged_and_told_again_when_it_changes() -> None:
    room = Room(PEER, CLIENT, CLIENT, CLIENT)
    one, two, three = room.faces
    room.tables.declare(one, QUERYABLE, 1, "q", 0x100)
    assert room.want(three, 7, BOTH, "Q", "q") == [*hexes(queryable(1, "q", 0x100, 7)), FINAL_7]
    room.tables.declare(two, QUERYABLE, 1, "q", 0x301)
    assert room.said(three) == hexes(queryable(1, "q", 0x301))
    room.tables.declare(one, QUERYABLE, 1, "q", 0x101)
    assert room.said(three) == hexes(queryable(1, "q", 0x101))
    room.tables.undeclare(two, QUERYABLE, 1)
    assert room.said(three) == []
    room.tables.declare(one, QUERYABLE, 1, "q", 0)
    assert room.said(three) == hexes(queryable(1, "q", 0))
    room.tables.undeclare(one, QUERYABLE, 1)
    assert room.said(three) == ["9e210885015f020000"]


def test_an_aggregate_is_one_announcement_under_its_own_key() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    assert room.want(two, 7, BOTH, "KS", "a/*", aggregate=True) == [FINAL_7]
    room.tables.declare(one, SUBSCRIBER, 1, "a/b")
    [prefix, announced] = room.said(two)
    assert prefix == hexes(Declare(qos=8, body=DeclareKeyExpr(id=1, scope=0, suffix="a")))[0]
    assert announced == hexes(Declare(qos=8, body=DeclareSubscriber(id=1, scope=1, suffix="/*")))[0]
    room.tables.declare(one, SUBSCRIBER, 2, "a/c")
    room.tables.undeclare(one, SUBSCRIBER, 1)
    assert room.said(two) == []
    room.tables.undeclare(one, SUBSCRIBER, 2)
    assert room.said(two) == ["9e21080301"]


def test_an_aggregate_of_queryables_is_complete_when_one_covers_it_all() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.tables.declare(one, QUERYABLE, 1, "q/x", 1)
    assert room.want(two, 7, BOTH, "Q", "q/*", aggregate=True) == [
        *hexes(queryable(1, "q/*", 0, 7)),
        FINAL_7,
    ]
    room.tables.declare(one, QUERYABLE, 2, "q/**", 1)
    assert room.said(two) == hexes(queryable(1, "q/*", 1))
    room.tables.undeclare(one, QUERYABLE, 2)
    assert room.said(two) == hexes(queryable(1, "q/*", 0))


def test_aggregates_of_tokens_and_of_peers_are_told_one_by_one() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.want(two, 7, BOTH, "T", "t/*", aggregate=True)
    room.tables.declare(one, TOKEN, 1, "t/a")
    assert room.said(two) == hexes(token(1, "t/a"))
    served = Room(ROUTER, CLIENT, PEER)
    one, peer = served.faces
    served.want(peer, 7, BOTH, "S", "s/*", aggregate=True)
    served.tables.declare(one, SUBSCRIBER, 1, "s/a")
    assert served.said(peer) == hexes(subscriber(1, "s/a"))


def test_peers_are_told_everything_unasked_with_numbers_for_keys() -> None:
    room = Room(PEER, CLIENT)
    [one] = room.faces
    room.tables.declare(one, SUBSCRIBER, 1, "demo/**")
    peer = room.add(PEER)
    assert room.said(peer) == ["9e21082001000464656d6f", "9e2108620101032f2a2a"]
    other = room.add(PEER)
    room.said(other)
    room.tables.declare(peer, SUBSCRIBER, 1, "theirs")
    assert room.said(other) == []  # peers tell each other themselves
    room.tables.remove(one)
    assert room.said(peer) == ["9e21080301"]


def test_what_a_lost_neighbour_had_goes_with_it() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.want(two, 7, BOTH, "SQT", "")
    room.tables.declare(one, SUBSCRIBER, 1, "s")
    room.tables.declare(one, QUERYABLE, 2, "q", 1)
    room.tables.declare(one, TOKEN, 3, "t")
    room.said(two)
    room.tables.remove(one)
    assert room.said(two) == ["9e21080301", "9e210885025f020000", "9e210887035f020000"]
    assert len(room.tables.tree) == 0
    room.tables.remove(one)  # twice is once


# ------------------------------------------------------------------------- what is heard


def heard(room: Room, face: Face, *bodies: object) -> None:
    for body in bodies:
        room.tables.heard(face, Declare(qos=8, body=body))  # type: ignore[arg-type]


def test_numbers_are_resolved_in_both_directions() -> None:
    room = Room(PEER, PEER)
    [peer] = room.faces
    room.tables.declare(room.add(CLIENT), SUBSCRIBER, 1, "mine/x")  # gives the peer number 1
    heard(
        room,
        peer,
        DeclareKeyExpr(id=1, scope=0, suffix="theirs"),
        DeclareKeyExpr(id=2, scope=1, suffix="/deep"),
        DeclareSubscriber(id=1, scope=2, suffix="/er"),
        DeclareSubscriber(id=2, scope=1, sender_mapping=False),
        DeclareSubscriber(id=3, scope=9),
    )
    assert peer.declared[SUBSCRIBER] == {1: "theirs/deep/er", 2: "mine/x"}
    assert peer.ignored == 1


def test_a_number_keeps_its_first_meaning_until_it_is_undeclared() -> None:
    room = Room(PEER, CLIENT)
    [one] = room.faces
    heard(
        room,
        one,
        DeclareKeyExpr(id=1, scope=0, suffix="first"),
        DeclareKeyExpr(id=1, scope=0, suffix="second"),
    )
    assert one.keys.resolve(1, True, "") == "first"
    heard(room, one, UndeclareKeyExpr(id=1), DeclareKeyExpr(id=1, scope=0, suffix="third"))
    assert one.keys.resolve(1, True, "") == "third"


def test_undeclaring_what_is_unknown_is_nothing() -> None:
    room = Room(PEER, CLIENT)
    [one] = room.faces
    null = KeyExt(scope=0)
    heard(
        room,
        one,
        UndeclareKeyExpr(id=4),
        UndeclareSubscriber(id=1),
        UndeclareQueryable(id=1, key=null),
        UndeclareToken(id=1, key=null),
    )
    assert one.ignored == 0


def test_an_id_with_another_key_replaces_the_old_one() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.want(two, 7, BOTH, "S", "")
    heard(
        room,
        one,
        DeclareSubscriber(id=1, scope=0, suffix="old"),
        DeclareSubscriber(id=1, scope=0, suffix="new"),
    )
    assert room.said(two) == [
        *hexes(subscriber(1, "old")),
        "9e21080301",
        *hexes(subscriber(2, "new")),
    ]


LONG = "k" * 60_000


def declare_entities(room: Room) -> None:
    for id in range(1, 5000):
        heard(room, room.faces[0], DeclareSubscriber(id=id, scope=0, suffix=f"{LONG}/{id}"))


def declare_numbers(room: Room) -> None:
    for id in range(1, 5000):
        heard(room, room.faces[0], DeclareKeyExpr(id=id, scope=0, suffix=f"{LONG}/{id}"))


def declare_interests(room: Room) -> None:
    for id in range(1, 5000):
        room.want(room.faces[0], id, FUTURE, "S", f"{LONG}/{id}")


@pytest.mark.parametrize(
    ("flood", "complaint"),
    [
        (declare_entities, "more than their share of memory"),
        (declare_numbers, "more than their share of memory"),
        (declare_interests, "more interests"),
    ],
)
def test_a_flood_of_long_keys_ends_the_session(
    flood: Callable[[Room], None], complaint: str
) -> None:
    room = Room(PEER, CLIENT)
    account = room.faces[0].account
    account.limit = 1 << 20
    with pytest.raises(RemoteError, match=complaint):
        flood(room)
    assert account.limit - 70_000 < account.used <= account.limit


def test_keys_that_grow_beyond_what_can_be_written_mean_nothing() -> None:
    room = Room(PEER, CLIENT)
    [one] = room.faces
    heard(
        room,
        one,
        DeclareKeyExpr(id=1, scope=0, suffix="k" * 60_000),
        DeclareKeyExpr(id=2, scope=1, suffix="k" * 60_000),
        DeclareSubscriber(id=1, scope=1, suffix="/" + "é" * 3000),
        DeclareSubscriber(id=2, scope=1, suffix="/" + "e" * 3000),
    )
    assert 2 not in one.keys.theirs
    assert list(one.declared[SUBSCRIBER]) == [2]
    assert one.ignored == 2


@pytest.mark.parametrize(
    ("text", "good"),
    [("a/b", True), ("**", True), ("", False), ("a//b", False), ("a/**/**", False)],
)
def test_only_canonical_keys_are_keys(text: str, good: bool) -> None:
    assert is_key(text) is good


def test_a_token_of_ones_own_that_others_hold_too_is_told_as_theirs() -> None:
    room = Room(PEER, CLIENT, CLIENT)
    one, two = room.faces
    room.tables.declare(one, TOKEN, 1, "t")
    room.tables.declare(two, TOKEN, 1, "t")
    assert room.want(two, 7, BOTH, "T", "") == [*hexes(token(1, "t", 7)), FINAL_7]
    room.tables.undeclare(one, TOKEN, 1)
    assert room.said(two) == ["9e210887015f020000"]

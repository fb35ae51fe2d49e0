"""Messages of Zenoh as a neighbour might say them: right, nearly right, or senseless.

They are encoded once and said many times: numbers come from small ranges, so that what one message
declares another undeclares, asks for, answers or contradicts. Some are made anew for what a node
has just asked (`Answers`), with the numbers that it used.
"""

from __future__ import annotations

import random
from typing import Any

from zenlake.routing.face import Face
from zenlake.wire import (
    Declare,
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Del,
    Err,
    Interest,
    KeyExt,
    LinkState,
    Message,
    Push,
    Put,
    Query,
    Reply,
    Request,
    Response,
    ResponseFinal,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
    write,
)
from zenlake.wire.link_state import write_entries

#: Keys that may be declared, and those that are none.
KEYS = (
    "a", "a/b", "a/*", "a/**", "**", "a/$*b", "@/x", "k/" * 40 + "z", "é/ü", "*/b", "b/c/d",
    "b/**/d", "c", "c/0", "c/1", "c/2", "c/3", "asked/aloud", "asked/**", "@/*/**", "p/q/r/s/t",
)  # fmt: skip
NO_KEYS = ("", "a//b", "/a", "a/", "a**", "$*", "a#b", "x/" * 300 + "z")
SUFFIXES = ("", "/b", "/x", "/**", "b")
ROUTERS = (b"\x66", b"\x67", b"\x68\x01", b"\x69", b"\x6a", b"")
#: How many messages a dictionary has, and after how many drawn it is written anew.
WORDS = 4096
WORN = 400_000


class Vocabulary:
    """Encoded messages to draw from, which change from time to time."""

    def __init__(self, chance: random.Random) -> None:
        """`chance` decides what they say."""
        self._chance = chance
        self._words: list[bytes] = []
        self._left = 0

    def draw(self, count: int) -> list[bytes]:
        """Some messages."""
        if self._left <= 0:
            self._words = [write(some_message(self._chance)) for _ in range(WORDS)]
            self._left = WORN
        self._left -= count
        return self._chance.choices(self._words, k=count)


def some_message(chance: random.Random) -> Message:
    """A message as a neighbour might say it."""
    kind = chance.randrange(100)
    if kind < 38:
        return _declaration(chance)
    if kind < 48:
        return _interest(chance)
    if kind < 68:
        body = Put(payload=chance.randbytes(8)) if chance.random() < 0.8 else Del()
        return Push(
            node_id=chance.choice((0, 0, 2)),
            qos=chance.choice((5, 13, 21, 1)),
            body=body,
            **_named(chance),
        )
    if kind < 80:
        return Request(
            id=chance.randrange(64),
            target=chance.randrange(3),
            timeout=chance.choice((0, 1, 1000)),
            body=Query(),
            **_named(chance),
        )
    if kind < 86:
        return _response(chance, chance.randrange(64))
    if kind < 92:
        return ResponseFinal(id=chance.randrange(64))
    return _link_states(chance)


def answers(chance: random.Random, face: Face) -> list[bytes]:
    """What a node waits for: replies to its queries, and rows for its interests."""
    said: list[bytes] = []
    for id in list(face.requests)[:4]:
        if chance.random() < 0.7:
            said.append(write(_response(chance, id)))
        if chance.random() < 0.5:
            said.append(write(ResponseFinal(id=id)))
    for id in list(face.interests_out)[:4]:
        token = DeclareToken(id=chance.choice((0, 0, 7)), **_named(chance))
        said.append(write(Declare(interest_id=id, body=token)))
        if chance.random() < 0.5:
            said.append(write(Declare(interest_id=id, body=DeclareFinal())))
    return said


def _named(chance: random.Random) -> dict[str, Any]:
    """A key: written out, or by a number that was declared or was not."""
    scope = chance.choice((0, 0, 0, 1, 2, 3, 9))
    if scope:
        suffix = chance.choice(SUFFIXES)
    else:
        suffix = chance.choice(KEYS if chance.random() < 0.97 else NO_KEYS)
    return {"scope": scope, "suffix": suffix, "sender_mapping": chance.random() < 0.8}


def _declaration(chance: random.Random) -> Message:
    id = chance.randrange(48)
    named = _named(chance)
    what = chance.randrange(9)
    body: Any
    if what == 0:
        body = DeclareKeyExpr(
            id=chance.choice((0, 1, 1, 2, 2, 3, 3)), scope=named["scope"], suffix=named["suffix"]
        )
    elif what == 1:
        body = UndeclareKeyExpr(id=chance.randrange(4))
    elif what == 2:
        filter = chance.choice((None, None, None, b"x > 1", b"((", b"\xff"))
        body = DeclareSubscriber(id=id, filter=filter, **named)
    elif what == 3:
        body = UndeclareSubscriber(id=id, key=KeyExt(**named))
    elif what == 4:
        body = DeclareQueryable(id=id, info=chance.choice((0, 1, 257)), **named)
    elif what == 5:
        body = UndeclareQueryable(id=id, key=KeyExt(**named))
    elif what == 6:
        body = DeclareToken(id=id, **named)
    elif what == 7:
        body = UndeclareToken(id=id, key=KeyExt(**named))
    else:
        body = DeclareFinal()
    return Declare(
        interest_id=chance.choice((None, None, None, 0, id)),
        node_id=chance.choice((0, 0, 1, 3)),
        body=body,
    )


def _interest(chance: random.Random) -> Message:
    return Interest(
        mode=chance.randrange(4),
        id=chance.randrange(48),
        key_exprs=chance.random() < 0.7,
        subscribers=chance.random() < 0.5,
        queryables=chance.random() < 0.5,
        tokens=chance.random() < 0.5,
        restricted=chance.random() < 0.9,
        aggregate=chance.random() < 0.5,
        **_named(chance),
    )


def _response(chance: random.Random, id: int) -> Message:
    answer = Reply(body=Put(payload=b"r")) if chance.random() < 0.7 else Err(payload=b"e")
    return Response(id=id, body=answer, **_named(chance))


def _link_states(chance: random.Random) -> Message:
    return write_entries(
        [
            LinkState(
                psid=chance.randrange(6),
                sn=chance.randrange(1 << chance.choice((3, 10, 20))),
                zid=chance.choice(ROUTERS),
                whatami=chance.choice((0, 0, 1, 2, 4)),
                links=tuple(chance.randrange(7) for _ in range(chance.randrange(4))),
                locators=chance.choice((None, (), ("tcp/127.0.0.1:1",), ("nonsense",))),
            )
            for _ in range(chance.randrange(4))
        ]
    )

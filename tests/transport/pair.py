"""Two sides of a conversation, with the test in between."""

from __future__ import annotations

from zenlake.transport.handshake import Offer, Terms
from zenlake.transport.listener import Listener
from zenlake.transport.outbox import Outbox
from zenlake.transport.unicast import Unicast
from zenlake.wire import Message

ROUTER, PEER, CLIENT = 0, 1, 2
COOKIE = b"a cookie"


class Ear(Listener):
    """Remembers everything that a conversation tells it."""

    def __init__(self) -> None:
        self.refusal = -1
        self.terms: Terms | None = None
        self.messages: list[tuple[Message, int, bool]] = []
        self.endings: list[Exception | None] = []

    def admit(self, terms: Terms) -> int:
        return self.refusal

    def opened(self, terms: Terms, now: float) -> None:
        self.terms = terms

    def heard(self, message: Message, priority: int, reliable: bool) -> None:
        self.messages.append((message, priority, reliable))

    def closed(self, error: Exception | None, now: float) -> None:
        self.endings.append(error)


def side(
    offer: Offer, *, stream: bool = True, depth: int = 2, max_message: int = 1 << 20
) -> Unicast:
    """One side of a conversation."""
    outbox = Outbox(65535, 2 if stream else 0, 0x0FFF_FFFF, 0, False, depth)
    return Unicast(offer, Ear(), stream, outbox, max_message=max_message)


def ear(unicast: Unicast) -> Ear:
    """What a side was told."""
    listener = unicast.listener
    assert isinstance(listener, Ear)
    return listener


def taken(unicast: Unicast) -> list[bytes]:
    """Everything that a side wants to send, batch by batch, with lengths."""
    batches: list[bytes] = []
    while batch := unicast.outbox.take():
        batches.append(batch)
    return batches


def exchange(one: Unicast, other: Unicast, now: float = 0.0) -> None:
    """Carry bytes both ways until both are silent."""
    while True:
        there, back = taken(one), taken(other)
        if not there and not back:
            return
        for batch in there:
            other.receive(batch, now)
        for batch in back:
            one.receive(batch, now)


def opened(
    mine: Offer | None = None, theirs: Offer | None = None, *, stream: bool = True, depth: int = 2,
    max_message: int = 1 << 20,
) -> tuple[Unicast, Unicast]:  # fmt: skip
    """Two sides with an open session: who connected, who accepted."""
    one = side(
        mine or Offer(b"\x01" * 16, CLIENT), stream=stream, depth=depth, max_message=max_message
    )
    other = side(
        theirs or Offer(b"\x02" * 16, ROUTER), stream=stream, depth=depth, max_message=max_message
    )
    other.listen(0.0, COOKIE)
    one.connect(0.0)
    exchange(one, other)
    return one, other

"""A neighbour: the conversation over its link, and its face in the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.entities import LocalSubscriber
from zenlake.node.sample import Sample
from zenlake.routing.face import Face
from zenlake.routing.tables import is_key
from zenlake.transport.handshake import Terms
from zenlake.transport.outbox import Outbox
from zenlake.transport.unicast import OPEN, Listener, Unicast
from zenlake.wire.codec_network import (
    Declare,
    Interest,
    Oam,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenlake.wire.message import Message

if TYPE_CHECKING:
    from zenlake.node.node import Node

#: How many keys of a neighbour are remembered with their way.
INBOUND = 1 << 14


class Inbound:
    """A key that a neighbour publishes on, and who hears it."""

    __slots__ = ("faces", "key", "key_expr", "subscribers", "version")

    def __init__(self, key: str) -> None:
        """Its way is found when it is first needed."""
        self.key: str = key
        self.key_expr: KeyExpr = KeyExpr.trusted(key)
        self.version: int = -1
        self.subscribers: list[LocalSubscriber] = []
        self.faces: list[Face] = []


class Neighbour(Listener):
    """Somebody at the other end of a link."""

    def __init__(
        self, node: Node, src: str, dst: str, stream: bool, mtu: int, attempt: int
    ) -> None:
        """`attempt`: the connection plan's number for it; 0 if it connected to us."""
        self.node: Node = node
        self.src: str = src
        self.dst: str = dst
        self.stream: bool = stream
        self.mtu: int = mtu
        self.attempt: int = attempt
        self.face: Face | None = None
        self.unicast: Unicast | None = None
        self.error: Exception | None = None
        #: Told when the conversation is over, so that the link can be closed.
        self.finished: Callable[[], None] | None = None
        #: Ways by declared id (no suffix), and by whole key.
        self._by_id: dict[int, Inbound] = {}
        self._by_key: dict[str, Inbound] = {}

    # ------------------------------------------------------------------------------- life

    def admit(self, terms: Terms) -> int:
        """Whether it may open a session with this node."""
        return self.node.admit(self, terms)

    def opened(self, terms: Terms, now: float) -> None:
        """The session is open."""
        self.node.opened(self, terms, now)

    def closed(self, error: Exception | None, now: float) -> None:
        """The session is over."""
        self.error = error
        self.node.closed(self, error, now)
        finished = self.finished
        if finished is not None:
            finished()

    def is_open(self) -> bool:
        """Whether a session is open."""
        unicast = self.unicast
        return unicast is not None and unicast.state == OPEN

    # ------------------------------------------------------------------------------ hearing

    def heard(self, message: Message, priority: int, reliable: bool) -> None:
        """A network message came."""
        if isinstance(message, Push):
            self._push(message, reliable)
            return
        face = self.face
        if face is None:
            return
        node = self.node
        if isinstance(message, Response):
            node.questions.response(face, message)
        elif isinstance(message, ResponseFinal):
            node.questions.response_final(face, message.id)
        elif isinstance(message, Request):
            node.questions.request(face, message, node.now)
            node.wake_by(node.now + node.questions.default_timeout)
        elif isinstance(message, Declare):
            self._by_id.clear()
            node.tables.heard(face, message)
        elif isinstance(message, Interest):
            node.tables.interest(face, message, node.now)
            node.wake_by(node.now + node.tables.interest_timeout)
        elif isinstance(message, Oam):
            node.maintained(self, message)

    def _inbound(self, push: Push) -> Inbound | None:
        """The way of a key, or None if it means nothing."""
        face = self.face
        if face is None:
            return None
        scope = push.scope
        suffix = push.suffix
        if scope and not suffix and push.sender_mapping:
            inbound = self._by_id.get(scope)
            if inbound is not None:
                return inbound
        key = face.keys.resolve(scope, push.sender_mapping, suffix)
        if key is None:
            face.ignored += 1
            return None
        inbound = self._by_key.get(key)
        if inbound is None:
            if not is_key(key):
                face.ignored += 1
                return None
            if len(self._by_key) >= INBOUND:
                self._by_key.clear()
                self._by_id.clear()
            inbound = Inbound(key)
            self._by_key[key] = inbound
        if scope and not suffix and push.sender_mapping:
            self._by_id[scope] = inbound
        return inbound

    def _push(self, push: Push, reliable: bool) -> None:
        inbound = self._by_id.get(push.scope) if push.scope and not push.suffix else None
        if inbound is None or not push.sender_mapping:
            inbound = self._inbound(push)
            if inbound is None:
                return
        node = self.node
        if inbound.version != node.tables.version:
            node.find_way(self, inbound)
        if inbound.subscribers:
            sample = Sample(inbound.key_expr, push, reliable)
            for subscriber in inbound.subscribers:
                subscriber.sink.push(sample)
        if inbound.faces:
            node.forward(push, inbound, reliable)


def outbox_for(stream: bool, depth: int) -> Outbox:
    """An outbox before any terms are agreed."""
    return Outbox(65535, 2 if stream else 0, 0x0FFF_FFFF, 0, False, depth)

"""Links in memory: between two nodes, and between a node and a stranger that says anything."""

from __future__ import annotations

import random
from typing import Any

from zenlake.node.node import Node
from zenlake.node.sessions.connect import Attempt
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.transport.compress import Lz4
from zenlake.transport.handshake import Offer
from zenlake.transport.listener import Listener
from zenlake.transport.outbox import Outbox
from zenlake.transport.unicast import OPEN, OPENING, Unicast
from zenlake.wire import Fragment, Frame, write

MTU = 65535
PIECE = 3000


class Wire:
    """A link between two nodes that behave."""

    def __init__(self, near: Node, attempt: Attempt, far: Node, now: float) -> None:
        """`near` connects to `far`."""
        self.ends = (
            (near, near.connected(attempt, "sim/near", "sim/far", True, MTU, now)),
            (far, far.accepted("sim/far", "sim/near", True, MTU, now)),
        )

    def carry(self, now: float) -> bool:
        """Bring to each side what the other has said; whether there was anything."""
        moved = False
        for (_, speaker), (hearing, hearer) in (self.ends, self.ends[::-1]):
            assert speaker.unicast is not None
            while batch := speaker.unicast.outbox.take():
                hearing.receive(hearer, batch, now)
                moved = True
        return moved


class Stranger:
    """The far end of a link: it opens a session as it should, and then says what it is told to.

    Args:
        node: whom it speaks to.
        offer: as whom it opens the session.
        attempt: the connection that the node makes; None: the stranger connects.
        stream: whether the link is a stream.
        now: what time it is.
    """

    def __init__(
        self, node: Node, offer: Offer, attempt: Attempt | None, stream: bool, now: float
    ) -> None:
        self.node = node
        self.stream = stream
        outbox = Outbox(MTU, 2 if stream else 0, 0xFFFF_FFFF, 0, True, 2)
        self.unicast = Unicast(offer, Listener(), stream, outbox)
        if attempt is None:
            self.unicast.connect(now)
            self.neighbour: Neighbour = node.accepted("sim/node", "sim/far", stream, MTU, now)
        else:
            self.unicast.listen(now, b"cookie!!")
            self.neighbour = node.connected(attempt, "sim/node", "sim/far", stream, MTU, now)
        for _ in range(4):
            while batch := self.unicast.outbox.take():
                self.send(batch, now)
            for batch in self.heard():
                if self.unicast.state == OPENING:
                    self.unicast.receive(batch, now)
        self._sns: dict[tuple[int, bool], int] = {}
        self._lz4 = Lz4()

    @property
    def is_open(self) -> bool:
        """Whether both sides think that they have a session."""
        near = self.neighbour.unicast
        return self.unicast.state == OPEN and near is not None and near.state == OPEN

    def heard(self) -> list[bytes]:
        """What the node has said since the last call."""
        near = self.neighbour.unicast
        said: list[bytes] = []
        while near is not None and (batch := near.outbox.take()):
            said.append(batch)
        return said

    def say(self, batch: bytes, now: float) -> None:
        """Send a batch as the link wants it."""
        terms = self.unicast.terms
        assert terms is not None
        if terms.compression and not terms.low_latency:
            batch = self._lz4.pack(batch)
        if self.stream:
            batch = len(batch).to_bytes(4 if terms.low_latency else 2, "little") + batch
        self.send(batch, now)

    def shut(self) -> None:
        """The link is gone: what waits for it is let go of, as the edge does."""
        near = self.neighbour.unicast
        if near is not None:
            near.outbox.leave_pool()

    def send(self, data: bytes, now: float) -> None:
        """Send bytes as they are."""
        self.node.receive(self.neighbour, data, now)

    def framed(self, words: list[bytes], chance: random.Random) -> bytes:
        """Messages in a frame, with the next number of a lane, or another."""
        terms = self.unicast.terms
        assert terms is not None
        if terms.low_latency:
            return b"".join(words)
        head = self._lane(chance)
        return write(Frame(**head, messages=())) + b"".join(words)

    def cut(self, word: bytes, chance: random.Random) -> list[bytes]:
        """A message in fragments, of which some may be missing."""
        lane = self._lane(chance)
        pieces = [word[start : start + PIECE] for start in range(0, len(word), PIECE)] or [b""]
        batches: list[bytes] = []
        for index, piece in enumerate(pieces):
            more = index + 1 < len(pieces) or chance.random() < 0.2
            batches.append(write(Fragment(**lane, more=more, first=not index, payload=piece)))
            lane["sn"] = (lane["sn"] + 1) & terms_mask(self.unicast)
        self._sns[(lane["priority"], lane["reliable"])] = lane["sn"]
        if chance.random() < 0.2:
            del batches[chance.randrange(len(batches))]
        return batches

    def _lane(self, chance: random.Random) -> dict[str, Any]:
        terms = self.unicast.terms
        assert terms is not None
        priority = chance.choice((5, 5, 5, 5, 0, 1, 7)) if terms.qos else 5
        reliable = chance.random() < 0.9
        sn = self._sns.get((priority, reliable), terms.tx_initial_sn)
        if chance.random() < 0.01:
            sn = chance.choice((sn + 1, sn - 1, sn + 1000, 0)) & terms.mask
        self._sns[(priority, reliable)] = (sn + 1) & terms.mask
        return {"sn": sn, "priority": priority, "reliable": reliable}


def terms_mask(unicast: Unicast) -> int:
    """The largest sequence number of a session."""
    assert unicast.terms is not None
    return unicast.terms.mask

"""Large messages in pieces: collecting what came in fragments.

A lane collects one message at a time. Whatever is wrong with a train of fragments costs that
message and nothing else: the link stays up.
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import DecodeError
from zenlake.transport.piece import Piece
from zenlake.wire.codec_network import Push, read_network, skip_push_head
from zenlake.wire.codec_zenoh import Put, skip_put_head
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message
from zenlake.wire.numbers import ID, PUSH, PUT

#: Below this many bytes a piece costs more to keep than it carries: so many pieces are kept on
#: the average, and a stranger who sends a message byte by byte loses it.
SMALLEST_PIECE: Final = 32


#: A message whose value begins later than here is put together before it is read.
HEAD: Final = 1024


class Reassembly:
    """The message that one lane is collecting."""

    __slots__ = ("collecting", "dropped", "excessive", "limit", "next_sn", "parts", "size")

    def __init__(self, limit: int) -> None:
        """Collect nothing yet; `limit` bounds what a message may grow to."""
        self.limit: int = limit
        self.parts: list[Piece] = []
        self.size: int = 0
        self.next_sn: int = 0
        self.collecting: bool = False
        #: How many messages were given up, by a gap, an abandoned train or the limit.
        self.dropped: int = 0
        #: How many of them by the limit.
        self.excessive: int = 0

    def clear(self) -> None:
        """Forget what was collected."""
        if self.collecting:
            self.dropped += 1
        self.parts = []
        self.size = 0
        self.collecting = False

    def add(
        self, sn: int, mask: int, payload: Piece, first: bool, more: bool, marked: bool
    ) -> list[Piece] | None:
        """Take a fragment in; gives all pieces of the message when it was the last one.

        `marked`: both sides speak of first fragments, so that a train without one is dropped.
        """
        if first or (not self.collecting and not marked):
            self.clear()
            self.collecting = True
        elif not self.collecting:
            return None
        elif sn != self.next_sn:
            self.clear()
            return None
        self.next_sn = (sn + 1) & mask
        self.size += len(payload)
        if self.size > self.limit or len(self.parts) > self.limit // SMALLEST_PIECE:
            self.clear()
            self.excessive += 1
            return None
        self.parts.append(payload)
        if more:
            return None
        pieces = self.parts
        self.parts = []
        self.size = 0
        self.collecting = False
        return pieces


def read_pieces(pieces: list[Piece]) -> Message:
    """The network message that some pieces are.

    What makes a message large is nearly always the value of a put. It is put together once, from
    the pieces themselves, instead of being cut out of the message again.
    """
    first = pieces[0]
    head = first if isinstance(first, bytes) else bytes(first[:HEAD])
    at = value_at(head)
    if at >= 0:
        r = Reader(head, at)
        size = r.vle(0xFFFF_FFFF)
        start = r.pos
        if start + size == sum([len(piece) for piece in pieces]):
            message = read_network(Reader(head[:at] + b"\0"))
            if isinstance(message, Push):
                body = message.body
                if isinstance(body, Put):
                    # A view, because the first piece is as large as the others.
                    parts: list[Piece] = [memoryview(first)[start:]]
                    parts.extend(pieces[1:])
                    body.payload = b"".join(parts)
                    return message
    return read_network(Reader(b"".join(pieces)))


def value_at(head: bytes) -> int:
    """Where the length of a put's value stands in the first piece of a message, or -1."""
    try:
        r = Reader(head)
        header = r.u8()
        if header & ID != PUSH:
            return -1
        skip_push_head(r, header)
        header = r.u8()
        if header & ID != PUT or not skip_put_head(r, header):
            return -1  # or in shared memory: another shape
        at = r.pos
        r.skip_vle()
    except DecodeError:
        return -1
    return at

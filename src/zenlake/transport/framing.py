"""How batches look on one link: lengths, frames, fragments, compression.

    stream, ordinary       length (2)   frame header, messages … frame header, messages …
    stream, low latency    length (4)   message      length (4)   message …
    datagram               the same without the length
    fragment               length (2)   fragment header, a slice of one large message

`Framing` holds what two sides agreed on when the session opened; it has no queues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from zenlake.transport.lane import FragmentedMessage, QueuedBatch, TransmitLane
from zenlake.transport.piece import Piece
from zenlake.wire.cursor import Writer
from zenlake.wire.numbers import (
    FRAGMENT,
    FRAGMENT_EXT_FIRST,
    FRAGMENT_EXT_PRIORITY,
    FRAGMENT_FLAG_MORE,
    FRAGMENT_FLAG_RELIABLE,
    FRAME,
    FRAME_FLAG_RELIABLE,
    MORE,
)

#: The longest header of a fragment: id, sequence number, lane, first mark.
FRAGMENT_HEAD: Final = 1 + 5 + 2 + 1


def _vle(value: int) -> bytes:
    w = Writer()
    w.vle(value, 0xFFFF_FFFF_FFFF_FFFF)
    return b"".join(w.parts)


#: Bytes of a variable-length integer: the last one, and one that others follow.
_LAST: Final[list[bytes]] = [bytes((value,)) for value in range(0x80)]
_FIRST: Final[list[bytes]] = [bytes((0x80 | value,)) for value in range(0x80)]
#: Lengths of small payloads, encoded once: those of one byte, then those of two. They are put
#: together of bytes, as encoding all of them takes milliseconds of each start.
_SMALL: Final[list[bytes]] = _LAST + [low + high for high in _LAST[1:] for low in _FIRST]


def vle(value: int) -> bytes:
    """A variable-length integer as bytes."""
    return _SMALL[value] if 0 <= value < 0x4000 else _vle(value)


@final
class HeadCache:
    """The last message head with the length of its payload, joined.

    Payloads of one publisher are of one size as a rule, so these bytes are joined once.
    """

    __slots__ = ("head", "joined", "length")

    def __init__(self) -> None:
        """Empty."""
        self.head: bytes = b""
        self.length: int = -1
        self.joined: bytes = b""

    def join(self, head: bytes, length: int) -> bytes:
        """`head` and the encoded `length`, which are kept; `Outbox.push` looks here first."""
        self.head = head
        self.length = length
        self.joined = head + (_SMALL[length] if length < 0x4000 else vle(length))
        return self.joined


@final
class Framing:
    """The agreed form of batches on one link."""

    __slots__ = ("bare", "limit", "mask", "pack", "prefix")

    def __init__(self, prefix: int) -> None:
        """`prefix`: bytes of length before each batch (0 on a datagram link)."""
        self.prefix: int = prefix
        #: Bytes that a batch may have behind its prefix.
        self.limit: int = 0
        #: The largest sequence number.
        self.mask: int = 0
        #: Low latency: messages travel bare, each behind its own length, without frames.
        self.bare: bool = False
        #: Compresses a batch, if that was agreed.
        self.pack: Callable[[bytes], bytes] | None = None

    def agree(
        self, batch_size: int, mask: int, bare: bool, pack: Callable[[bytes], bytes] | None
    ) -> None:
        """Take over the terms of a session that has opened."""
        self.bare = bare
        self.pack = pack
        if bare and self.prefix:
            self.prefix = 4
        self.limit = batch_size - self.prefix - (0 if pack is None else 1)
        self.mask = mask

    def open_frame(self, lane: TransmitLane, reliable: bool) -> None:
        """Begin a frame in the lane's open batch."""
        lane.settle()
        w = lane.writer
        if not w.parts:
            w.parts.append(b"")  # replaced by the length when the batch is sealed
        header = FRAME | FRAME_FLAG_RELIABLE if reliable else FRAME
        if lane.mark:
            header |= MORE
        w.u8(header)
        if reliable:
            w.vle(lane.numbers[1], 0xFFFF_FFFF)
            lane.numbers[1] = (lane.numbers[1] + 1) & self.mask
            lane.frame = 1
        else:
            w.vle(lane.numbers[0], 0xFFFF_FFFF)
            lane.numbers[0] = (lane.numbers[0] + 1) & self.mask
            lane.frame = 0
        if lane.mark:
            w.raw(lane.mark)

    def seal(self, w: Writer) -> QueuedBatch:
        """The batch that was written, with its length in front."""
        parts = w.parts
        size = w.size
        if not self.bare:
            if self.pack is not None:
                return QueuedBatch.single(self.prefixed(b"".join(parts)))
            prefix = self.prefix
            if prefix == 2:
                parts[0] = bytes((size & 0xFF, size >> 8))
            elif prefix == 4:
                parts[0] = size.to_bytes(4, "little")
            size += prefix
        return QueuedBatch(parts, size, None)

    def prefixed(self, batch: bytes) -> bytes:
        """A batch of one piece, compressed if that was agreed, with its length in front."""
        pack = self.pack
        if pack is not None:
            batch = pack(batch)
        return len(batch).to_bytes(self.prefix, "little") + batch if self.prefix else batch

    def fragments_of(self, size: int) -> int:
        """How many fragments a message of `size` bytes becomes."""
        chunk = self.limit - FRAGMENT_HEAD
        return (size + chunk - 1) // chunk

    def next_fragment(self, mark: bytes, message: FragmentedMessage, parts: list[Piece]) -> int:
        """Append the next fragment of `message` to `parts`, as one batch; its size."""
        w = Writer()
        start = message.pos
        stop = start + self.limit - FRAGMENT_HEAD
        more = stop < message.size
        header = FRAGMENT
        if message.reliable:
            header |= FRAGMENT_FLAG_RELIABLE
        if more:
            header |= FRAGMENT_FLAG_MORE
        if mark or start == 0:
            header |= MORE
        w.u8(header)
        w.vle(message.sn, 0xFFFF_FFFF)
        message.sn = (message.sn + 1) & self.mask
        if mark:
            w.u8(FRAGMENT_EXT_PRIORITY | (MORE if start == 0 else 0))
            w.u8(mark[1])
        if start == 0:
            w.u8(FRAGMENT_EXT_FIRST)
        pieces = message.pieces(start, stop)
        message.pos = stop
        if self.pack is not None:
            batch = self.prefixed(b"".join([*w.parts, *pieces]))
            parts.append(batch)
            return len(batch)
        size = w.size
        for piece in pieces:
            size += len(piece)
        if self.prefix:
            parts.append(size.to_bytes(self.prefix, "little"))
        parts.extend(w.parts)
        parts.extend(pieces)
        return size + self.prefix

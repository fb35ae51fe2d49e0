"""What waits to be sent to one neighbour: lanes of batches, the most urgent first.

A message is encoded straight into the open batch of its lane. A batch that is full is closed
and queued; a message too large for any batch becomes a train, cut into fragments only when the
link takes them, so that it is copied once. Every lane is bounded: `push` and `send` answer
False when a message finds no room, and whoever sends decides to wait, drop or close.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.transport.lane import FragmentedMessage, QueuedBatch, TransmitLane, ready
from zenlake.transport.piece import Piece
from zenlake.wire.cursor import Writer
from zenlake.wire.message import Message

CONTROL: Final = 0
DATA: Final = 5

#: Messages that a lane of a low-latency datagram link holds.
BARE_QUEUE: Final = 256

#: The longest header of a fragment: id, sequence number, lane, first mark.
FRAGMENT_HEAD: Final = 1 + 5 + 2 + 1

#: What may wait in all lanes together, in bytes, when a message is not to be dropped: a neighbour
#: that asks and asks and never reads must not fill our memory.
FORCED: Final = 256 << 20


def vle(value: int) -> bytes:
    """A variable-length integer as bytes."""
    w = Writer()
    w.vle(value, 0xFFFF_FFFF_FFFF_FFFF)
    return b"".join(w.parts)


#: Lengths of small payloads, ready made.
_SMALL: Final[list[bytes]] = [vle(value) for value in range(0x4000)]


class Outbox:
    """Everything that waits to be sent to one neighbour."""

    __slots__ = (
        "_head",
        "_length",
        "_words",
        "bare",
        "batches_sent",
        "bytes_sent",
        "closed",
        "depth",
        "drops",
        "forced",
        "held",
        "lanes",
        "last",
        "limit",
        "mask",
        "messages_sent",
        "overflowed",
        "oversized",
        "pack",
        "pending",
        "prefix",
        "qos",
        "refused",
        "urgent",
    )  # fmt: skip

    def __init__(
        self, batch_size: int, prefix: int, mask: int, initial_sn: int, qos: bool, depth: int
    ) -> None:
        """`prefix`: bytes of length before each batch; `depth`: how many batches a lane holds."""
        self.limit: int = 0
        self.prefix: int = prefix
        self.mask: int = 0
        self.qos: bool = False
        self.depth: int = depth
        self.lanes: list[TransmitLane] = []
        #: Batches that go before all others: keep-alives, closing words.
        self.urgent: list[bytes] = []
        #: The closing word: it goes when all else has gone.
        self.last: bytes = b""
        #: Bytes in the queues of all lanes, and how many there may be at most.
        self.held: int = 0
        self.forced: int = FORCED
        #: Whether something that must not be dropped found no room: the session cannot go on.
        self.overflowed: bool = False
        #: How many messages were encoded and not yet taken as part of a batch.
        self.pending: int = 0
        self.messages_sent: int = 0
        self.bytes_sent: int = 0
        self.batches_sent: int = 0
        #: What was dropped because there was no room, by priority.
        self.drops: list[int] = [0] * 8
        self.closed: bool = False
        #: Low latency: messages go bare, each behind its own length, without frames.
        self.bare: bool = False
        #: What was too large to go bare.
        self.oversized: int = 0
        #: Whether the last message that was not taken never will be: waiting would not help it.
        self.refused: bool = False
        #: Compresses a batch, if that was agreed.
        self.pack: Callable[[bytes], bytes] | None = None
        #: The last head and length of a payload, and both as they are written.
        self._head: bytes = b""
        self._length: int = -1
        self._words: bytes = b""
        self.agree(batch_size, mask, initial_sn, qos)

    def agree(
        self,
        batch_size: int,
        mask: int,
        initial_sn: int,
        qos: bool,
        bare: bool = False,
        pack: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Begin anew under the terms of a session that has opened."""
        self.bare = bare
        self.pack = pack
        if bare and self.prefix:
            self.prefix = 4
        self.limit = batch_size - self.prefix - (0 if pack is None else 1)
        self.mask = mask
        self.qos = qos
        self.lanes = []
        for priority in range(8 if qos else 1):
            mark = b"" if not qos or priority == DATA else bytes((0x31, priority))
            self.lanes.append(TransmitLane(mark, initial_sn))

    def share(self, other: Outbox) -> None:
        """Count on with another link of the same session."""
        for lane, same in zip(self.lanes, other.lanes, strict=True):
            lane.numbers = same.numbers

    def lane(self, priority: int) -> TransmitLane:
        """The lane of a priority."""
        return self.lanes[priority] if self.qos else self.lanes[0]

    # ------------------------------------------------------------------------------- filling

    def _open_frame(self, lane: TransmitLane, reliable: bool) -> None:
        """Begin a frame in the lane's open batch."""
        lane.settle()
        w = lane.writer
        if not w.parts:
            w.parts.append(b"")  # the place of the length
        header = 0x25 if reliable else 0x05
        if lane.mark:
            header |= 0x80
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

    def _close_batch(self, lane: TransmitLane) -> None:
        """Queue the lane's open batch and begin another."""
        w = lane.writer
        if w.size:
            waiting = self._sealed(w)
            self.held += waiting.size
            lane.queue.append(waiting)
            lane.writer = Writer()
        lane.settle()
        lane.frame = -1

    def _sealed(self, w: Writer) -> QueuedBatch:
        """A batch with its length in front."""
        parts = w.parts
        size = w.size
        if not self.bare:
            if self.pack is not None:
                return ready(self._prefixed(b"".join(parts)))
            prefix = self.prefix
            if prefix == 2:
                parts[0] = bytes((size & 0xFF, size >> 8))
            elif prefix == 4:
                parts[0] = size.to_bytes(4, "little")
            size += prefix
        return QueuedBatch(parts, size, None)

    def push(self, head: bytes, payload: bytes, priority: int, reliable: bool) -> bool:
        """Add a message that is `head`, the payload's length and the payload.

        The way of ordinary publications: nothing is made but the pieces of the batch.
        """
        lane = self.lanes[priority] if self.qos else self.lanes[0]
        length = len(payload)
        if head is not self._head or length != self._length:
            # Values of one publisher are of one size as a rule: its words are joined once.
            self._head = head
            self._length = length
            self._words = head + (_SMALL[length] if length < 0x4000 else vle(length))
        words = self._words
        if self.bare:
            return self._bare(lane, words + payload, False)
        need = len(words) + length
        if not self._room(lane, reliable, need):
            if self.closed:
                return False
            if need + FRAGMENT_HEAD <= self.limit:
                if len(lane.queue) >= self.depth:
                    return False
                self._close_batch(lane)
                self._open_frame(lane, reliable)
            else:
                return self._train(lane, words, payload, reliable, False)
        w = lane.writer
        parts = w.parts
        parts.append(words)
        parts.append(payload)
        w.size += need
        lane.filled += 1
        self.pending += 1
        return True

    def offer(
        self, head: bytes, payload: bytes, priority: int, reliable: bool, congestion: int,
        express: bool,
    ) -> bool:  # fmt: skip
        """Add a publication; False if it was dropped.

        What to do when there is no room (`congestion`: 0 drop, 1 block, 2 block the first) is
        for the edge to decide, which can wait: here a full lane drops.
        """
        taken = self.push(head, payload, priority, reliable)
        if not taken:
            self.drops[priority] += 1
        return taken

    def offer_message(
        self, message: Message, priority: int, reliable: bool, congestion: int, express: bool
    ) -> bool:
        """Add any publication or question; False if it was dropped."""
        return self.send(message, priority, reliable, False)

    def _room(self, lane: TransmitLane, reliable: bool, need: int) -> bool:
        """Whether the open batch takes `need` bytes more; begins a frame if it must."""
        if self.closed:
            return False
        size = lane.writer.size
        if lane.frame == (1 if reliable else 0):
            return size + need <= self.limit
        if size + need + FRAGMENT_HEAD > self.limit:
            return False
        self._open_frame(lane, reliable)
        return True

    def send(
        self,
        message: Message,
        priority: int,
        reliable: bool,
        force: bool = False,
        awaited: bool = False,
    ) -> bool:
        """Add any message; `force`: even beyond the lane's bound (what the node itself says).

        `awaited`: somebody waits for it, so an edge that can writes it at once.
        """
        w = Writer()
        message.write(w)
        taken = self.send_encoded(b"".join(w.parts), priority, reliable, force)
        if not taken:
            self.drops[priority] += 1
        return taken

    def send_encoded(self, data: bytes, priority: int, reliable: bool, force: bool) -> bool:
        """Add a message that is encoded already."""
        lane = self.lanes[priority] if self.qos else self.lanes[0]
        if self.bare:
            return self._bare(lane, data, force)
        need = len(data)
        if not self._room(lane, reliable, need):
            if self.closed:
                return False
            if need + FRAGMENT_HEAD > self.limit:
                return self._train(lane, b"", data, reliable, force)
            if len(lane.queue) >= self.depth and not self._beyond(force):
                return False
            self._close_batch(lane)
            self._open_frame(lane, reliable)
        w = lane.writer
        w.parts.append(data)
        w.size += need
        lane.filled += 1
        self.pending += 1
        return True

    def reply(self, head: bytes, payload: bytes, priority: int, hold: bool) -> bool:
        """Add an answer that is `head`, the payload's length and the payload.

        `hold`: it is not dropped where there is no room; who can wait does, others go beyond.
        """
        if self.push(head, payload, priority, True):
            return True
        return self._reply_beyond(head, payload, priority, hold)

    def _reply_beyond(self, head: bytes, payload: bytes, priority: int, hold: bool) -> bool:
        data = b"".join((head, vle(len(payload)), payload))
        taken = not self.closed and self.send_encoded(data, priority, True, hold)
        if not taken:
            self.drops[priority] += 1
        return taken

    def relay(
        self, parts: list[bytes], size: int, count: int, priority: int, reliable: bool, hold: bool
    ) -> bool:
        """Add `count` messages of others, in pieces of `size` bytes together.

        `hold`: beyond the lane's bound if need be; whoever makes use of that sees that not much
        more comes.
        """
        lane = self.lanes[priority] if self.qos else self.lanes[0]
        if self.bare or size + FRAGMENT_HEAD > self.limit:
            taken = self.send_encoded(b"".join(parts), priority, reliable, hold)
            more = count - 1
        else:
            taken = self._room(lane, reliable, size)
            if not taken and not self.closed:
                taken = len(lane.queue) < self.depth or self._beyond(hold)
                if taken:
                    self._close_batch(lane)
                    self._open_frame(lane, reliable)
            if taken:
                lane.writer.parts.extend(parts)
                lane.writer.size += size
            more = count
        if not taken:
            self.drops[priority] += count
            return False
        lane.filled += more
        self.pending += more
        return True

    def _bare(self, lane: TransmitLane, data: bytes, force: bool) -> bool:
        """Add a message that goes alone (low latency); one that is too large cannot go."""
        if self.closed:
            return False
        size = len(data)
        if size > self.limit:
            self.oversized += 1
            self.refused = True
            return False
        w = lane.writer
        if not self.prefix:
            # A datagram is one message.
            if len(lane.queue) >= BARE_QUEUE and not self._beyond(force):
                return False
            self.held += size
            lane.queue.append(ready(data))
        else:
            if w.size + size + self.prefix > self.limit and w.size:
                if len(lane.queue) >= self.depth and not self._beyond(force):
                    return False
                self._close_batch(lane)
                w = lane.writer
            w.parts.append(size.to_bytes(4, "little"))
            w.parts.append(data)
            w.size += size + 4
        lane.filled += 1
        self.pending += 1
        return True

    def _train(
        self, lane: TransmitLane, head: bytes, value: bytes, reliable: bool, force: bool
    ) -> bool:
        """Queue a message that must travel in fragments."""
        if len(lane.queue) >= self.depth and not self._beyond(force):
            return False
        self._close_batch(lane)
        chunk = self.limit - FRAGMENT_HEAD
        size = len(head) + len(value)
        count = (size + chunk - 1) // chunk
        kind = 1 if reliable else 0
        sn = lane.numbers[kind]
        lane.numbers[kind] = (sn + count) & self.mask
        lane.queue.append(QueuedBatch([], size, FragmentedMessage(head, value, reliable, sn)))
        self.held += size
        self.pending += 1
        if reliable:
            lane.reliable += 1
        else:
            lane.best_effort += 1
        return True

    def _beyond(self, force: bool) -> bool:
        """Whether a message may wait beyond its lane's bound."""
        if not force:
            return False
        if self.held > self.forced:
            self.overflowed = True
            return False
        return True

    def send_transport(self, batch: bytes) -> None:
        """Add transport messages that go before everything else, as one batch."""
        self.urgent.append(self._prefixed(batch))

    def send_close(self, batch: bytes) -> None:
        """Add the closing word, behind all that waits; nothing is taken in after it."""
        self.last = self._prefixed(batch)
        self.closed = True

    def _prefixed(self, batch: bytes) -> bytes:
        pack = self.pack
        if pack is not None:
            batch = pack(batch)
        return len(batch).to_bytes(self.prefix, "little") + batch if self.prefix else batch

    # ------------------------------------------------------------------------------- emptying

    def waiting(self) -> bool:
        """Whether there is anything to send."""
        return self.pending > 0 or len(self.urgent) > 0 or len(self.last) > 0

    def full(self, priority: int) -> bool:
        """Whether a lane has no room for another batch."""
        return len(self.lane(priority).queue) >= self.depth

    def take(self, room: int = 0, closed_only: bool = False) -> bytes:
        """The next bytes for the link: one batch, with its length; empty when there is nothing.

        A stream may be given more of the same lane at once, as much as `room` bytes hold: one
        large write costs both sides less than several small ones. `closed_only`: the batch that
        is being filled behind them stays.
        """
        if self.urgent:
            batch = self.urgent.pop(0)
            self.bytes_sent += len(batch)
            self.batches_sent += 1
            return batch
        for lane in self.lanes:
            if lane.queue or lane.writer.size:
                parts: list[Piece] = []
                size = self._gather(lane, room, closed_only, parts)
                self._emptied()
                self.bytes_sent += size
                lane.bytes_sent += size
                return b"".join(parts)
        self.pending = 0
        batch = self.last
        if batch:
            self.last = b""
            self.bytes_sent += len(batch)
        return batch

    def _gather(self, lane: TransmitLane, room: int, closed_only: bool, parts: list[Piece]) -> int:
        """Take at least one batch out of a lane, and more while they fit into `room`; their size.

        What is left of `room` when the next one does not fit is not worth a smaller one.
        """
        queue = lane.queue
        size = 0
        while queue:
            waiting = queue[0]
            train = waiting.train
            if train is None:
                if size and size + waiting.size > room:
                    return size
                del queue[0]
                self.held -= waiting.size
                parts.extend(waiting.parts)
                size += waiting.size
            else:
                if size and size + self.limit > room:
                    return size
                size += self._cut(lane, train, parts)
                if train.pos >= train.size:
                    del queue[0]
                    self.held -= train.size
            self.batches_sent += 1
            if size >= room:
                return size
        w = lane.writer
        if w.size and (not size or (not closed_only and size + w.size + self.prefix <= room)):
            waiting = self._sealed(w)
            parts.extend(waiting.parts)
            size += waiting.size
            lane.writer = Writer()
            lane.settle()
            lane.frame = -1
            self.batches_sent += 1
        return size

    def _emptied(self) -> None:
        """Note when nothing is left."""
        for lane in self.lanes:
            if lane.queue or lane.writer.size:
                return
        self.messages_sent += self.pending
        self.pending = 0

    def _cut(self, lane: TransmitLane, train: FragmentedMessage, parts: list[Piece]) -> int:
        """Add the next fragment of a train, as a batch; its size."""
        w = Writer()
        chunk = self.limit - FRAGMENT_HEAD
        start = train.pos
        stop = start + chunk
        more = stop < train.size
        header = 0x06
        if train.reliable:
            header |= 0x20
        if more:
            header |= 0x40
        if lane.mark or start == 0:
            header |= 0x80
        w.u8(header)
        w.vle(train.sn, 0xFFFF_FFFF)
        train.sn = (train.sn + 1) & self.mask
        if lane.mark:
            w.u8(0x31 | (0x80 if start == 0 else 0))
            w.u8(lane.mark[1])
        if start == 0:
            w.u8(0x02)
        pieces = train.pieces(start, stop)
        train.pos = stop
        if self.pack is not None:
            batch = self._prefixed(b"".join([*w.parts, *pieces]))
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

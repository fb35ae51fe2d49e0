"""What waits to be sent to one neighbour: lanes of batches, the most urgent first.

A message is encoded straight into the open batch of its lane. Then:

    open batch ──full──► queue ──take()──► link         a lane; there are 8, or 1 without QoS
    large message ─────► queue ──take()──► link         cut into fragments as the link takes them
    urgent (keep-alive, opening) ──────────► link       before every lane
    last (Close) ──────────────────────────► link       when all lanes are empty

States: *open* until `closed` is set. A closed outbox accepts nothing more, and `take` still empties
what is queued. `overflowed` is final too: a forced message found more than `forced` bytes queued,
and the session has to be closed (`Unicast.tick` does).

Invariants:

* `held` is the size of all entries in the queues of all lanes; open batches are not part of it.
* `pending` is zero when all lanes are empty, and else the number of messages accepted since then.
* a lane queues at most `depth` entries, unless messages are forced (`force`, `hold`); forced ones
  are bounded by `forced` bytes for all lanes together.
* a sequence number is used when a frame is opened, or for all fragments when a large message is
  queued; so numbers leave in order within a lane.
* False from `push` or `send_encoded` has changed nothing; `refused` then tells that waiting cannot
  help, until `lose` has counted the message.

There is no lock and no clock here: `engine.shared.SharedOutbox` adds both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.transport.budget import MemoryPool
from zenlake.transport.drops import CONGESTION, OVERSIZED, DropLog
from zenlake.transport.framing import FRAGMENT_HEAD, Framing, HeadCache, vle
from zenlake.transport.lane import FragmentedMessage, QueuedBatch, TransmitLane
from zenlake.transport.piece import Piece
from zenlake.wire.cursor import Writer
from zenlake.wire.message import Message
from zenlake.wire.numbers import FRAME_EXT_PRIORITY

CONTROL: Final = 0
DATA: Final = 5

#: Messages that a lane of a low-latency datagram link holds.
BARE_QUEUE: Final = 256

#: Bytes that may be queued in all lanes together by messages that are not to be dropped: a
#: neighbour that sends queries and never reads the replies must not fill our memory. A node says
#: otherwise by its limits.
FORCED: Final = 64 << 20


class Outbox:
    """Everything that waits to be sent to one neighbour."""

    __slots__ = (
        "batches_sent", "bytes_sent", "closed", "depth", "drops", "forced", "framing", "heads",
        "held", "lanes", "last", "lost", "messages_sent", "on_overflow", "overflowed", "oversized",
        "pending", "pool", "qos", "refused", "urgent",
    )  # fmt: skip

    def __init__(
        self, batch_size: int, prefix: int, mask: int, initial_sn: int, qos: bool, depth: int
    ) -> None:
        """`prefix`: bytes of length before each batch; `depth`: how many batches a lane holds."""
        self.framing: Framing = Framing(prefix)
        #: Whether there is a lane for each priority.
        self.qos: bool = False
        self.depth: int = depth
        self.lanes: list[TransmitLane] = []
        self.heads: HeadCache = HeadCache()
        #: Batches that go before all others: keep-alives and the messages of the opening.
        self.urgent: list[bytes] = []
        #: The Close message, sent when everything else has gone.
        self.last: bytes = b""
        #: Bytes in the queues of all lanes, and how many forced messages may make of it.
        self.held: int = 0
        self.forced: int = FORCED
        #: What waits for all neighbours of the node.
        self.pool: MemoryPool = MemoryPool()
        self.pool.members += 1
        #: Whether a forced message found no room: the session cannot go on. Then what waits is
        #: let go of, and the node is told.
        self.overflowed: bool = False
        self.on_overflow: Callable[[], None] | None = None
        #: How many messages were encoded and not yet taken as part of a batch.
        self.pending: int = 0
        self.messages_sent: int = 0
        self.bytes_sent: int = 0
        self.batches_sent: int = 0
        #: Messages dropped for lack of room, by priority.
        self.drops: list[int] = [0] * 8
        #: The same and those that are too large, by key; None: nobody wants to know.
        self.lost: DropLog | None = None
        self.closed: bool = False
        #: Messages dropped because they are too large for a low-latency session.
        self.oversized: int = 0
        #: Whether the last message that was not accepted never will be, however long it waits.
        self.refused: bool = False
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
        self.framing.agree(batch_size, mask, bare, pack)
        self.qos = qos
        self.lanes = []
        for priority in range(8 if qos else 1):
            mark = b"" if not qos or priority == DATA else bytes((FRAME_EXT_PRIORITY, priority))
            self.lanes.append(TransmitLane(mark, initial_sn))

    def share(self, other: Outbox) -> None:
        """Count on with another link of the same session."""
        for lane, same in zip(self.lanes, other.lanes, strict=True):
            lane.numbers = same.numbers

    def lane(self, priority: int) -> TransmitLane:
        """The lane of a priority."""
        return self.lanes[priority] if self.qos else self.lanes[0]

    # ------------------------------------------------------------------------------- filling

    def _close_batch(self, lane: TransmitLane) -> None:
        """Queue the lane's open batch and begin another."""
        w = lane.writer
        if w.size:
            waiting = self.framing.seal(w)
            self.held += waiting.size
            self.pool.used += waiting.size
            lane.queue.append(waiting)
            lane.writer = Writer()
        lane.settle()
        lane.frame = -1

    def push(self, head: bytes, payload: bytes, priority: int, reliable: bool) -> bool:
        """Add a message that is `head`, the payload's length and the payload.

        Ordinary publications are sent by this: nothing is allocated but the pieces of the batch.
        """
        lane = self.lanes[priority] if self.qos else self.lanes[0]
        length = len(payload)
        heads = self.heads
        if head is heads.head and length == heads.length:
            start = heads.joined
        else:
            start = heads.join(head, length)
        framing = self.framing
        if framing.bare:
            return self._bare(lane, start + payload, False)
        need = len(start) + length
        w = lane.writer
        kind = 1 if reliable else 0
        if lane.frame != kind or w.size + need > framing.limit or self.closed:
            if not self._room(lane, reliable, need):
                if self.closed:
                    return False
                if need + FRAGMENT_HEAD > framing.limit:
                    return self._queue_fragmented(lane, start, payload, reliable, False)
                if len(lane.queue) >= self.depth:
                    return False
                self._close_batch(lane)
                framing.open_frame(lane, reliable)
            w = lane.writer
        parts = w.parts
        parts.append(start)
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
            self.lose(priority, [head], 1)
        return taken

    def offer_message(
        self, message: Message, priority: int, reliable: bool, congestion: int, express: bool
    ) -> bool:
        """Add any publication or query; False if it was dropped."""
        return self.send(message, priority, reliable)

    def _room(self, lane: TransmitLane, reliable: bool, need: int) -> bool:
        """Whether the open batch takes `need` bytes more; begins a frame if it must."""
        if self.closed:
            return False
        size = lane.writer.size
        if lane.frame == (1 if reliable else 0):
            return size + need <= self.framing.limit
        if size + need + FRAGMENT_HEAD > self.framing.limit:
            return False
        self.framing.open_frame(lane, reliable)
        return True

    def send(
        self,
        message: Message,
        priority: int,
        reliable: bool,
        *,
        force: bool = False,
        awaited: bool = False,
    ) -> bool:
        """Add any message; `force`: even beyond the lane's bound (declarations, interests).

        `awaited`: a program waits for it, so `SharedOutbox` writes it at once.
        """
        w = Writer()
        message.write(w)
        taken = self.send_encoded(b"".join(w.parts), priority, reliable, force)
        if not taken:
            self.lose(priority, w.parts, 1)
        return taken

    def send_encoded(self, data: bytes, priority: int, reliable: bool, force: bool) -> bool:
        """Add a message that is encoded already."""
        lane = self.lanes[priority] if self.qos else self.lanes[0]
        if self.framing.bare:
            return self._bare(lane, data, force)
        need = len(data)
        if not self._room(lane, reliable, need):
            if self.closed:
                return False
            if need + FRAGMENT_HEAD > self.framing.limit:
                return self._queue_fragmented(lane, b"", data, reliable, force)
            if len(lane.queue) >= self.depth and not self._beyond(force):
                return False
            self._close_batch(lane)
            self.framing.open_frame(lane, reliable)
        w = lane.writer
        w.parts.append(data)
        w.size += need
        lane.filled += 1
        self.pending += 1
        return True

    def reply(self, head: bytes, payload: bytes, priority: int, hold: bool) -> bool:
        """Add a reply that is `head`, the payload's length and the payload.

        `hold`: not dropped where there is no room, but queued beyond the lane's bound.
        """
        if self.push(head, payload, priority, True):
            return True
        return self._reply_beyond(head, payload, priority, hold)

    def pass_on(self, head: bytes, payload: bytes, priority: int, hold: bool) -> bool:
        """Add a reply of another neighbour; never waits."""
        return self.reply(head, payload, priority, hold)

    def _reply_beyond(self, head: bytes, payload: bytes, priority: int, hold: bool) -> bool:
        data = b"".join((head, vle(len(payload)), payload))
        taken = not self.closed and self.send_encoded(data, priority, True, hold)
        if not taken:
            self.lose(priority, [head], 1)
        return taken

    def relay(
        self, parts: list[bytes], size: int, count: int, priority: int, reliable: bool, hold: bool
    ) -> bool:
        """Add `count` messages of another neighbour, in pieces of `size` bytes together.

        `hold`: beyond the lane's bound if need be; the caller then pauses the link they came from.
        """
        lane = self.lanes[priority] if self.qos else self.lanes[0]
        if self.framing.bare or size + FRAGMENT_HEAD > self.framing.limit:
            taken = self.send_encoded(b"".join(parts), priority, reliable, hold)
            more = count - 1
        else:
            taken = self._room(lane, reliable, size)
            if not taken and not self.closed:
                taken = len(lane.queue) < self.depth or self._beyond(hold)
                if taken:
                    self._close_batch(lane)
                    self.framing.open_frame(lane, reliable)
            if taken:
                lane.writer.parts.extend(parts)
                lane.writer.size += size
            more = count
        if not taken:
            self.lose(priority, parts, count)
            return False
        lane.filled += more
        self.pending += more
        return True

    def lose(self, priority: int, parts: list[bytes], count: int) -> None:
        """Count `count` messages that are dropped; the last of them may end behind its key."""
        reason = OVERSIZED if self.refused else CONGESTION
        if self.refused:
            self.refused = False
            self.oversized += count
        else:
            self.drops[priority] += count
        lost = self.lost
        if lost is not None:
            lost.messages(reason, parts, count)

    def _bare(self, lane: TransmitLane, data: bytes, force: bool) -> bool:
        """Add a message that goes alone (low latency); one that is too large cannot go."""
        if self.closed:
            return False
        size = len(data)
        if size > self.framing.limit:
            self.refused = True
            return False
        w = lane.writer
        if not self.framing.prefix:
            # A datagram is one message.
            if len(lane.queue) >= BARE_QUEUE and not self._beyond(force):
                return False
            self.held += size
            self.pool.used += size
            lane.queue.append(QueuedBatch.single(data))
        else:
            if w.size + size + self.framing.prefix > self.framing.limit and w.size:
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

    def _queue_fragmented(
        self, lane: TransmitLane, head: bytes, value: bytes, reliable: bool, force: bool
    ) -> bool:
        """Queue a message that must travel in fragments."""
        if len(lane.queue) >= self.depth and not self._beyond(force):
            return False
        self._close_batch(lane)
        size = len(head) + len(value)
        count = self.framing.fragments_of(size)
        kind = 1 if reliable else 0
        sn = lane.numbers[kind]
        lane.numbers[kind] = (sn + count) & self.framing.mask
        lane.queue.append(QueuedBatch([], size, FragmentedMessage(head, value, reliable, sn)))
        self.held += size
        self.pool.used += size
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
        if self.overflowed:
            return False
        if self.held > self.forced or self.pool.is_crowded_by(self.held):
            self.overflowed = True
            self.discard()
            overflow = self.on_overflow
            if overflow is not None:
                overflow()
            return False
        return True

    def share_pool(self, pool: MemoryPool, forced: int) -> None:
        """Count waiting bytes together with other outboxes; `forced` bounds its own."""
        self.pool.members -= 1
        self.pool = pool
        pool.members += 1
        pool.used += self.held
        self.forced = forced

    def discard(self) -> None:
        """Let go of all batches that wait: they will not be sent."""
        self.pool.used -= self.held
        self.held = 0
        for lane in self.lanes:
            lane.queue.clear()

    def leave_pool(self) -> None:
        """The link is gone: nothing waits any more."""
        self.discard()
        self.pool.members -= 1
        self.pool = MemoryPool()
        self.pool.members += 1

    def send_transport(self, batch: bytes) -> None:
        """Add transport messages that go before everything else, as one batch."""
        self.urgent.append(self.framing.prefixed(batch))

    def send_close(self, batch: bytes) -> None:
        """Add the Close message behind all that waits, and accept nothing after it."""
        self.last = self.framing.prefixed(batch)
        self.closed = True

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
            message = waiting.fragmented
            if message is None:
                if size and size + waiting.size > room:
                    return size
                del queue[0]
                self.held -= waiting.size
                self.pool.used -= waiting.size
                parts.extend(waiting.parts)
                size += waiting.size
            else:
                if size and size + self.framing.limit > room:
                    return size
                size += self.framing.next_fragment(lane.mark, message, parts)
                if message.pos >= message.size:
                    del queue[0]
                    self.held -= message.size
                    self.pool.used -= message.size
            self.batches_sent += 1
            if size >= room:
                return size
        w = lane.writer
        if w.size and (
            not size or (not closed_only and size + w.size + self.framing.prefix <= room)
        ):
            waiting = self.framing.seal(w)
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

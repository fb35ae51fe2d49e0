"""One session over one link: from the first message of the opening to Close.

Bytes and time in, messages and bytes out:

    unicast = Unicast(offer, listener, stream=True, outbox=outbox)
    unicast.connect(now) | unicast.listen(now, cookie)
    unicast.receive(data, now)        what the link brought
    unicast.outbox.take()             what the link should carry
    unicast.deadline                  when to call `tick`
    unicast.tick(now)
    unicast.close(now, reason) | unicast.fail(error, now) | unicast.lost(error, now)

States:

    OPENING   an `UnicastOpening` answers, as the side that connects or that was connected to. Only
              messages of the opening are read, one batch at a time: what follows the last of
              them may be cut or compressed otherwise.
    OPEN      both sides hold the same `terms`. Frames, fragments and bare messages go to the
              listener; keep-alives are sent when nothing else was; the lease is watched.
    CLOSED    final: what arrives is ignored, `tick` does nothing, the outbox accepts nothing.

    OPENING ──last message of the opening──► OPEN       listener.opened(terms)
    OPENING, OPEN ──close, fail, lost, Close received──► CLOSED       listener.closed(error)

A member of a multicast group (`follow`) is OPEN at once, is sent nothing, and has no deadline.

Invariants:

* the listener is told `opened` at most once, `closed` exactly once after `connect` or `listen`, and
  nothing between those two but what was received while OPEN.
* `receive` and `tick` raise `RemoteError` when the link must be closed; the caller then calls
  `fail`, which sends Close during the opening and nothing in an open session, as other
  implementations do.
* messages of one lane reach the listener in the order of their sequence numbers, each once; the
  links of one session share the numbers (`share`).
* bytes kept for later are bounded: part of one batch (`deframer`, `_early`) and `max_message` bytes
  of fragments in all lanes together.

Locks: none here. The engine calls everything under the node's lock, except `outbox`, which has a
lock of its own (`engine.shared`).
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import ClosedError, DecodeError, HandshakeError, LimitError, RemoteError
from zenlake.transport.backlog import Backlog
from zenlake.transport.budget import MemoryAccount
from zenlake.transport.compress import Lz4
from zenlake.transport.handshake import (
    GENERIC,
    INVALID,
    REASONS,
    Offer,
    Terms,
)
from zenlake.transport.listener import NOBODY, Listener
from zenlake.transport.outbox import Outbox
from zenlake.transport.receive_lanes import DATA, LANES, ReceiveLanes
from zenlake.transport.stream import BatchDeframer
from zenlake.transport.turn import Turn
from zenlake.transport.unicast_opening import UnicastOpening
from zenlake.wire.codec_network import read_network, skip_network
from zenlake.wire.codec_transport import Close, read_transport
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message
from zenlake.wire.numbers import (
    DECLARE,
    FIRST_NETWORK,
    FRAGMENT,
    FRAME,
    FRAME_FLAG_RELIABLE,
    ID,
    KEEP_ALIVE,
    MORE,
    PUSH,
    RESPONSE,
)

#: The largest message that is taken in on a low-latency link.
LARGEST_BARE: Final = 1 << 24
#: Samples under heads that came before cost so little that the clock is looked at after so many.
LOOK: Final = 64

OPENING: Final = 0
OPEN: Final = 1
CLOSED: Final = 2


class Unicast:
    """The session with one neighbour over one link."""

    def __init__(
        self,
        offer: Offer,
        listener: Listener,
        stream: bool,
        outbox: Outbox,
        keep_alive: int = 4,
        max_message: int = 1 << 30,
        open_timeout: float = 10.0,
        account: MemoryAccount | None = None,
    ) -> None:
        """`stream`: batches have a length in front; `outbox`: takes what this side sends.

        `account` is charged for messages that are not complete.
        """
        self.listener: Listener = listener
        self.stream: bool = stream
        self.state: int = OPENING
        self.terms: Terms | None = None
        self.deframer: BatchDeframer = BatchDeframer(2)
        self.outbox: Outbox = outbox
        self.opening: UnicastOpening = UnicastOpening(offer, listener, outbox)
        self.keep_alive: int = keep_alive
        self.open_timeout: float = open_timeout
        #: When `tick` wants to be called.
        self.deadline: float = 0.0
        #: Whether its link is not read: such silence is of our own making.
        self.paused: bool = False
        self.last_heard: float = 0.0
        #: Bytes of an incomplete batch of the opening.
        self._early: bytes = b""
        self._bare: bool = False
        self._lz4: Lz4 | None = None
        self._bytes_seen: int = 0
        self._period: float = 0.0
        #: How long the neighbour may be silent, in seconds.
        self.lease: float = 0.0
        self.lanes: ReceiveLanes = ReceiveLanes(max_message, account)
        #: How much is handled at once; None: all that came.
        self.turn: Turn | None = None
        #: Whether more was received than has been handled: see `go_on`. Until then nothing more
        #: should be read.
        self.behind: bool = False
        self._backlog: Backlog = Backlog()
        self.received: int = 0
        self.bytes_received: int = 0
        self.batches_received: int = 0
        #: What the compressed batches of the last read became, in bytes.
        self.unpacked: int = 0

    # ------------------------------------------------------------------------------- opening

    def connect(self, now: float, expected: bytes = b"") -> None:
        """Begin the opening as the side that connects."""
        self.deadline = now + self.open_timeout
        self.opening.connect(expected)

    def listen(self, now: float, cookie: bytes) -> None:
        """Begin the opening as the side that was connected to."""
        self.deadline = now + self.open_timeout
        self.opening.listen(cookie)

    def follow(self, terms: Terms, next_sns: list[int], now: float) -> None:
        """Receive from a member of a multicast group: there is no opening, and nothing is sent.

        `next_sns`: the numbers of its next frames, by priority * 2 + reliable.
        """
        self._begin(terms, next_sns, now)
        self.deadline = float("inf")
        self.listener.opened(terms, now)

    def _begin(self, terms: Terms, next_sns: list[int], now: float) -> None:
        self.terms = terms
        self.state = OPEN
        self.lanes.begin(terms, next_sns)
        self.lease = terms.rx_lease / 1000.0
        self.last_heard = now

    def _opened(self, terms: Terms, now: float) -> None:
        self._begin(terms, [terms.rx_initial_sn] * LANES, now)
        self._bare = terms.low_latency
        # Bare messages travel as they are, whatever was agreed about batches: as Eclipse does.
        self._lz4 = Lz4() if terms.compression and not terms.low_latency else None
        if terms.low_latency and self.stream:
            self.deframer = BatchDeframer(4)
        self.outbox.agree(
            terms.batch_size,
            terms.mask,
            terms.tx_initial_sn,
            terms.qos,
            terms.low_latency,
            None if self._lz4 is None else self._lz4.pack,
        )
        self._period = terms.tx_lease / 1000.0 / self.keep_alive
        self._bytes_seen = self.outbox.bytes_sent
        self.deadline = now + min(self._period, self.lease)
        self.listener.opened(terms, now)

    def share(self, other: Unicast) -> None:
        """Be one more link of the session of `other`: they share sequence numbers and fragments."""
        self.lanes.share(other.lanes)
        self.outbox.share(other.outbox)

    # ------------------------------------------------------------------------------ receiving

    def receive(self, data: bytes, now: float) -> None:
        """Take in what the link brought.

        Raises `RemoteError` when the link must be closed: see `fail`.
        """
        if self.state == CLOSED:
            return
        self.last_heard = now
        self.bytes_received += len(data)
        self.unpacked = 0
        turn = self.turn
        if turn is not None:
            turn.begin()
        if not self.stream:
            if self.behind:
                self._backlog.add(data, 0, len(data))
            else:
                self._batch(data, 0, len(data), now)
            return
        if self.state == OPENING:
            # What follows the last message of the opening may be cut differently.
            data = self._open_with(data, now)
            if not data:
                return
        deframer = self.deframer
        deframer.feed(data, LARGEST_BARE if self._bare else 65535)
        first = deframer.first
        if first:
            if self.behind:
                self._backlog.add(first, deframer.prefix, len(first))
            else:
                self._batch(first, deframer.prefix, len(first), now)
        starts = deframer.starts
        ends = deframer.ends
        for index in range(len(starts)):
            if self.state == CLOSED:
                return
            if self.behind or (turn is not None and turn.is_over()):
                self.behind = True
                for later in range(index, len(starts)):
                    self._backlog.add(data, starts[later], ends[later])
                return
            self._batch(data, starts[index], ends[index], now)

    def go_on(self, now: float) -> None:
        """Handle more of what was received: another turn.

        Raises `RemoteError` when the link must be closed: see `fail`.
        """
        turn = self.turn
        if turn is not None:
            turn.begin()
        self.behind = False
        backlog = self._backlog
        r = backlog.take_begun()
        if r is not None:
            self._messages(r, backlog.priority, backlog.reliable)
            self._rest_of_batch(r, now)
        while backlog.has_batch():
            if self.state == CLOSED:
                return
            if self.behind or (turn is not None and turn.is_over()):
                self.behind = True
                return
            data, start, end = backlog.next_batch()
            self._batch(data, start, end, now)

    def free(self) -> None:
        """The session is over: let go of all that was received and not handled."""
        self._backlog.clear()
        self._early = b""
        self.behind = False
        self.deframer = BatchDeframer(2)
        self.lanes.free()

    def part(self) -> None:
        """The link is over: tell the listener nothing any more.

        It refers to this, and this to it: without the one, reference counts free both.
        """
        self.listener = NOBODY
        self.opening.part()
        self.outbox.on_overflow = None

    def _open_with(self, data: bytes, now: float) -> bytes:
        """Take the messages of the opening one by one; returns what came behind the last."""
        data = self._early + data
        pos = 0
        while self.state == OPENING and pos + 2 <= len(data):
            stop = pos + 2 + (data[pos] | (data[pos + 1] << 8))
            if stop > len(data):
                break
            self._batch(data, pos + 2, stop, now)
            pos = stop
        rest = data[pos:]
        if self.state == OPENING:
            self._early = rest
            return b""
        self._early = b""
        return rest if self.state == OPEN else b""

    def _bare_message(self, r: Reader, now: float) -> None:
        """Read a message of a low-latency session: no frame around it."""
        kind = r.data[r.pos] & ID
        if kind < FIRST_NETWORK:
            self._other(read_transport(r), now)
            return
        listener = self.listener
        if kind == PUSH and listener.rows:
            taken = listener.heard_rows(r, True)
            if taken:
                self.received += taken
                self.lanes.messages[11] += taken
                return
        taken = listener.heard_push(r, True) if kind == PUSH else 0
        if not taken:
            listener.heard(read_network(r), DATA, True)
            taken = 1
        self.received += taken
        self.lanes.messages[11] += taken

    def _batch(self, data: bytes, start: int, end: int, now: float) -> None:
        self.batches_received += 1
        if self.state == OPEN:
            lz4 = self._lz4
            if lz4 is not None:
                data = lz4.unpack(data[start:end], 65535)
                start = 0
                end = len(data)
                self.unpacked += end
        r = Reader(data, start, end)
        if self._bare and self.state == OPEN:
            while r.pos < r.end and self.state == OPEN:
                self._bare_message(r, now)
            return
        self._rest_of_batch(r, now)

    def _rest_of_batch(self, r: Reader, now: float) -> None:
        """Handle what is left of a batch, or what the turn has time for."""
        if self.behind:
            self._backlog.begun = r
            return
        while r.pos < r.end and self.state != CLOSED:
            kind = r.data[r.pos] & ID
            if kind == FRAME and self.state == OPEN:
                self._frame(r)
            elif kind == FRAGMENT and self.state == OPEN:
                self.received += self.lanes.fragment(r, self.listener)
            elif r.data[r.pos] == KEEP_ALIVE:
                r.pos += 1
            else:
                self._other(read_transport(r), now)
            if self.behind:
                self._backlog.begun = r
                return

    def _other(self, message: Message, now: float) -> None:
        """Handle a transport message that carries no data."""
        if self.state == OPENING:
            terms = self.opening.receive(message)
            if terms is not None:
                self._opened(terms, now)
        elif isinstance(message, Close):
            self.state = CLOSED
            self.outbox.closed = True
            why = REASONS.get(message.reason, f"reason {message.reason}")
            error = ClosedError(f"the other side closed the session: {why}", message.reason)
            self.listener.closed(error, now)

    def _frame(self, r: Reader) -> None:
        lanes = self.lanes
        start = r.pos
        header = r.u8()
        sn = r.vle(0xFFFF_FFFF_FFFF_FFFF)
        priority = lanes.frame_priority(r) if header & MORE else DATA
        reliable = (header & FRAME_FLAG_RELIABLE) != 0
        lane = priority * 2 + (1 if reliable else 0)
        data = r.data
        if not lanes.accept(lane, sn, r):
            while r.pos < r.end and data[r.pos] & ID >= FIRST_NETWORK:
                skip_network(r)
            return
        lanes.bytes[lane] += r.pos - start
        self._messages(r, priority, reliable)

    def _messages(self, r: Reader, priority: int, reliable: bool) -> None:
        """Handle the messages of a frame, or those that the turn has time for."""
        lanes = self.lanes
        lane = priority * 2 + (1 if reliable else 0)
        start = r.pos
        before = self.received
        data = r.data
        turn = self.turn
        listener = self.listener
        looked = before
        over = False
        while r.pos < r.end and not over:
            kind = data[r.pos] & ID
            if kind < FIRST_NETWORK:
                break
            if kind == PUSH:
                taken = listener.heard_rows(r, reliable) if listener.rows else 0
                if not taken:
                    taken = listener.heard_push(r, reliable)
                if taken:
                    self.received += taken
                    if turn is not None and self.received - looked >= LOOK:
                        looked = self.received
                        over = turn.is_over()
                    continue
            self.received += 1
            if kind == RESPONSE and listener.heard_reply(r):
                continue
            listener.heard(read_network(r), priority, reliable)
            over = turn is not None and turn.spend(kind == DECLARE)
        if over and r.pos < r.end:
            self.behind = True
            self._backlog.interrupt(priority, reliable)
        lanes.messages[lane] += self.received - before
        lanes.bytes[lane] += r.pos - start

    # -------------------------------------------------------------------------------- ending

    def tick(self, now: float) -> None:
        """Send a keep-alive if nothing else was sent; raises when the neighbour's lease ran out."""
        if self.state == CLOSED:
            self.deadline = float("inf")
            return
        if self.state == OPENING:
            if now >= self.deadline:
                raise HandshakeError(
                    f"no session after {self.open_timeout:g} s", EXPIRED_OPENING, "silent"
                )
            return
        if self.outbox.overflowed:
            raise LimitError(
                "it does not take what is sent to it: too much waits (limits/session/waiting, "
                "limits/node/waiting)",
                "slow",
            )
        if self.paused:
            self.last_heard = now
        if now >= self.last_heard + self.lease:
            raise RemoteError(f"nothing heard for its lease of {self.lease:g} s")
        outbox = self.outbox
        quiet = outbox.bytes_sent == self._bytes_seen and not outbox.waiting()
        self._bytes_seen = outbox.bytes_sent
        if quiet:
            outbox.send_transport(b"\x04")
            # The keep-alive itself does not count as traffic.
            self._bytes_seen += outbox.framing.prefix + (1 if outbox.framing.pack is None else 2)
        self.deadline = min(now + self._period, self.last_heard + self.lease)

    def fail(self, error: Exception, now: float) -> None:
        """Close after a fault of the neighbour; sends Close only during the opening."""
        if self.state == CLOSED:
            return
        if self.state == OPENING:
            # An open session is cut without Close, as other implementations do.
            if isinstance(error, HandshakeError):
                self.opening.send(Close(reason=error.reason))
            elif isinstance(error, DecodeError):
                self.opening.send(Close(reason=INVALID))
        self.state = CLOSED
        self.outbox.closed = True
        self.listener.closed(error, now)

    def close(self, now: float, reason: int = GENERIC) -> None:
        """Close the session, with Close behind all that waits."""
        if self.state == CLOSED:
            return
        self.state = CLOSED
        w = Writer()
        Close(reason=reason).write(w)
        self.outbox.send_close(w.getvalue())
        self.listener.closed(None, now)

    def lost(self, error: Exception | None, now: float) -> None:
        """The link is gone."""
        if self.state == CLOSED:
            return
        self.state = CLOSED
        self.outbox.closed = True
        self.listener.closed(error, now)


#: An opening that takes too long ends without a reason code of its own.
EXPIRED_OPENING: Final = GENERIC

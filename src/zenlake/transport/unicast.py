"""One neighbour over one link: from the first word to the last.

Bytes and time in, messages and bytes out:

    talk = Unicast(offer, stream=True, listener=face)
    talk.connect(now) | talk.listen(cookie)
    talk.receive(data, now)        what the link brought
    talk.outbox.take()             what the link should carry
    talk.deadline                  when to call
    talk.tick(now)
    talk.close(reason) | talk.lost()
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.errors import ClosedError, DecodeError, HandshakeError, RemoteError
from zenlake.transport.compress import Lz4
from zenlake.transport.fragment import Reassembly, read_pieces
from zenlake.transport.handshake import (
    GENERIC,
    INVALID,
    REASONS,
    Acceptor,
    Initiator,
    Offer,
    Terms,
)
from zenlake.transport.outbox import Outbox
from zenlake.transport.piece import piece
from zenlake.transport.sequence import follows
from zenlake.transport.stream import BatchDeframer
from zenlake.wire.codec_network import read_network, skip_network
from zenlake.wire.codec_transport import Close, read_transport
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message

#: The largest message that is taken in on a low-latency link.
LARGEST_BARE: Final = 1 << 24

OPENING: Final = 0
OPEN: Final = 1
CLOSED: Final = 2


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener:
    """Who is told what one neighbour says: the node's face towards it."""

    #: Whether it wants to see Push messages before they are read, many at a time.
    rows: bool = False

    def admit(self, terms: Terms) -> int:
        """Whether this neighbour may open: -1, or the reason why not."""
        return -1

    def opened(self, terms: Terms, now: float) -> None:
        """The session is open."""

    def heard(self, message: Message, priority: int, reliable: bool) -> None:
        """A network message came."""

    def heard_rows(self, r: Reader, reliable: bool) -> int:
        """Push messages begin at the reader's position: take some of them; how many."""
        return 0

    def heard_push(self, r: Reader, reliable: bool) -> int:
        """A Push begins at the reader's position: take it, and others like it; how many."""
        return 0

    def heard_reply(self, r: Reader) -> bool:
        """A Response begins at the reader's position: take it from there, or leave it (False)."""
        return False

    def closed(self, error: Exception | None, now: float) -> None:
        """The session is over; `error` says why if it was not our wish."""


class Unicast:
    """The conversation with one neighbour."""

    def __init__(
        self,
        offer: Offer,
        listener: Listener,
        stream: bool,
        outbox: Outbox,
        keep_alive: int = 4,
        max_message: int = 1 << 30,
        open_timeout: float = 10.0,
    ) -> None:
        """`stream`: batches need a length in front; `outbox`: where what we say is put."""
        self.offer = offer
        self.listener: Listener = listener
        self.stream: bool = stream
        self.state: int = OPENING
        self.terms: Terms | None = None
        self.deframer: BatchDeframer = BatchDeframer(2)
        self.outbox: Outbox = outbox
        self.initiator: Initiator | None = None
        self.acceptor: Acceptor | None = None
        self.keep_alive: int = keep_alive
        self.max_message: int = max_message
        self.open_timeout: float = open_timeout
        #: When `tick` wants to be called.
        self.deadline: float = 0.0
        self.last_heard: float = 0.0
        #: Bytes that came before the session was open, and may end in its first data.
        self._early: bytes = b""
        self._bare: bool = False
        self._lz4: Lz4 | None = None
        self._bytes_seen: int = 0
        self._period: float = 0.0
        #: How long it may be silent, in seconds.
        self.lease: float = 0.0
        self._mask: int = 0x0FFF_FFFF
        self._qos: bool = False
        self._marked: bool = False
        self._last: list[int] = []  # by priority * 2 + reliable
        self._fragments: list[Reassembly] = []
        #: Bytes of unfinished messages in all lanes together.
        self.collecting: int = 0
        #: Messages received, and what was not delivered, by reason.
        self.received: int = 0
        self.bytes_received: int = 0
        #: What the packed batches of the last read became.
        self.unpacked: int = 0
        self.duplicates: int = 0
        self.undecodable: int = 0
        self.batches_received: int = 0
        #: By priority * 2 + reliable: messages, and the bytes of their frames and fragments.
        self.lane_received: list[int] = [0] * 16
        self.lane_bytes: list[int] = [0] * 16

    # ------------------------------------------------------------------------------- opening

    def connect(self, now: float, expected: bytes = b"") -> None:
        """Say the first word."""
        self.initiator = Initiator(self.offer, expected)
        self.deadline = now + self.open_timeout
        self._say(self.initiator.start())

    def listen(self, now: float, cookie: bytes) -> None:
        """Wait for the first word."""
        self.acceptor = Acceptor(self.offer, cookie)
        self.deadline = now + self.open_timeout

    def _say(self, message: Message) -> None:
        w = Writer()
        message.write(w)
        self.outbox.send_transport(w.getvalue())

    def _handshake(self, message: Message, now: float) -> None:
        """One step of the opening."""
        initiator = self.initiator
        if initiator is not None:
            reply = initiator.receive(message)
            terms = initiator.terms
            if terms is not None:
                # As soon as we know who it is, and again at the end: of two links that both sides
                # make at once, neither side may open one after it has accepted the other.
                reason = self.listener.admit(terms)
                if reason >= 0:
                    raise HandshakeError(f"refused: {REASONS[reason]}", reason)
            if reply is not None:
                self._say(reply)
            if initiator.done and terms is not None:
                self._opened(terms, now)
            return
        acceptor = self.acceptor
        if acceptor is None:
            raise HandshakeError(f"{message.NAME} came before anybody listened", INVALID)
        reply = acceptor.receive(message)
        if reply is not None:
            self._say(reply)
        if acceptor.done and acceptor.terms is not None:
            try:
                reason = self.listener.admit(acceptor.terms)
            except HandshakeError:
                # It has no place for the other side, which knows why once it has heard where
                # this one has put it; a closing word alone has no room for that.
                self._say(acceptor.accept())
                raise
            if reason >= 0:
                raise HandshakeError(f"refused: {REASONS[reason]}", reason)
            self._say(acceptor.accept())
            self._opened(acceptor.terms, now)

    def follow(self, terms: Terms, next_sns: list[int], now: float) -> None:
        """Hear a member of a group from here on: there is no opening, and nothing is answered.

        `next_sns`: the numbers of its next frames, by priority * 2 + reliable.
        """
        self._hear(terms, next_sns, now)
        self.deadline = float("inf")
        self.listener.opened(terms, now)

    def _hear(self, terms: Terms, next_sns: list[int], now: float) -> None:
        self.terms = terms
        self.state = OPEN
        self._mask = terms.mask
        self._qos = terms.qos
        self._marked = terms.patch >= 1
        self._last = [(number - 1) & terms.mask for number in next_sns]
        self._fragments = [Reassembly(self.max_message) for _ in range(16)]
        self.lease = terms.rx_lease / 1000.0
        self.last_heard = now

    def _opened(self, terms: Terms, now: float) -> None:
        self._hear(terms, [terms.rx_initial_sn] * 16, now)
        self._bare = terms.low_latency
        self._lz4 = Lz4() if terms.compression else None
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
        """Be one more link of a session: what was heard and said over the other counts here too."""
        self._last = other._last
        self._fragments = other._fragments
        self.outbox.share(other.outbox)

    # ------------------------------------------------------------------------------ receiving

    def receive(self, data: bytes, now: float) -> None:
        """Take in what the link brought.

        Raises `RemoteError` when the link must be closed; `fail` then says the last word.
        """
        if self.state == CLOSED:
            return
        self.last_heard = now
        self.bytes_received += len(data)
        self.unpacked = 0
        if not self.stream:
            self._batch(data, 0, len(data), now)
            return
        if self.state == OPENING:
            # What follows the last word of the opening may be cut differently.
            data = self._open_with(data, now)
            if not data:
                return
        deframer = self.deframer
        deframer.feed(data, LARGEST_BARE if self._bare else 65535)
        first = deframer.first
        if first:
            self._batch(first, deframer.prefix, len(first), now)
        starts = deframer.starts
        ends = deframer.ends
        for index in range(len(starts)):
            if self.state == CLOSED:
                return
            self._batch(data, starts[index], ends[index], now)

    def _open_with(self, data: bytes, now: float) -> bytes:
        """Take the words of the opening one by one; gives what came behind the last."""
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
        """A message of a low-latency session: no frame around it."""
        kind = r.data[r.pos] & 0x1F
        if kind < 0x19:
            self._other(read_transport(r), now)
            return
        listener = self.listener
        if kind == 0x1D and listener.rows:
            taken = listener.heard_rows(r, True)
            if taken:
                self.received += taken
                self.lane_received[11] += taken
                return
        taken = listener.heard_push(r, True) if kind == 0x1D else 0
        if not taken:
            listener.heard(read_network(r), 5, True)
            taken = 1
        self.received += taken
        self.lane_received[11] += taken

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
        while r.pos < r.end:
            kind = r.data[r.pos] & 0x1F
            if kind == 0x05 and self.state == OPEN:
                self._frame(r)
            elif kind == 0x06 and self.state == OPEN:
                self._fragment(r)
            elif kind == 0x04 and r.data[r.pos] == 0x04:
                r.pos += 1
            else:
                self._other(read_transport(r), now)
            if self.state == CLOSED:
                return

    def _other(self, message: Message, now: float) -> None:
        """A transport message that is not data."""
        if self.state == OPENING:
            self._handshake(message, now)
        elif isinstance(message, Close):
            self.state = CLOSED
            self.outbox.closed = True
            why = REASONS.get(message.reason, f"reason {message.reason}")
            error = ClosedError(f"the other side closed the session: {why}", message.reason)
            self.listener.closed(error, now)

    def _lane_of(self, r: Reader, header: int) -> int:
        """The priority that a frame's extensions name."""
        priority = 5
        if header & 0x80:
            while True:
                tag = r.u8()
                if tag & 0x7F == 0x31:
                    priority = r.vle(0xFFFF_FFFF_FFFF_FFFF) & 7
                    if not self._qos and priority != 5:
                        raise DecodeError(f"a frame on lane {priority}: no lanes agreed", r.pos)
                else:
                    r.skip_extension(tag, "Frame")
                if tag < 0x80:
                    break
        return priority

    def _frame(self, r: Reader) -> None:
        start = r.pos
        before = self.received
        header = r.u8()
        sn = r.vle(0xFFFF_FFFF_FFFF_FFFF)
        priority = self._lane_of(r, header) if header & 0x80 else 5
        mask = self._mask
        if sn > mask:
            raise DecodeError(f"sequence number {sn} is above {mask}", r.pos)
        reliable = (header & 0x20) != 0
        lane = priority * 2 + (1 if reliable else 0)
        data = r.data
        if not follows(self._last[lane], sn, mask):
            self.duplicates += 1
            while r.pos < r.end and data[r.pos] & 0x1F >= 0x19:
                skip_network(r)
            return
        self._last[lane] = sn
        listener = self.listener
        while r.pos < r.end:
            kind = data[r.pos] & 0x1F
            if kind < 0x19:
                break
            if kind == 0x1D and listener.rows:
                taken = listener.heard_rows(r, reliable)
                if taken:
                    self.received += taken
                    continue
            if kind == 0x1D:
                taken = listener.heard_push(r, reliable)
                if taken:
                    self.received += taken
                    continue
            self.received += 1
            if kind == 0x1B and listener.heard_reply(r):
                continue
            listener.heard(read_network(r), priority, reliable)
        self.lane_received[lane] += self.received - before
        self.lane_bytes[lane] += r.pos - start

    def _fragment(self, r: Reader) -> None:
        header = r.u8()
        sn = r.vle(0xFFFF_FFFF_FFFF_FFFF)
        priority = 5
        first = False
        drop = False
        if header & 0x80:
            while True:
                tag = r.u8()
                kind = tag & 0x7F
                if kind == 0x31:
                    priority = r.vle(0xFFFF_FFFF_FFFF_FFFF) & 7
                    if not self._qos and priority != 5:
                        raise DecodeError(f"a fragment on lane {priority}: no lanes agreed", r.pos)
                elif kind == 0x02:
                    first = True
                elif kind == 0x03:
                    drop = True
                else:
                    r.skip_extension(tag, "Fragment")
                if tag < 0x80:
                    break
        mask = self._mask
        if sn > mask:
            raise DecodeError(f"sequence number {sn} is above {mask}", r.pos)
        reliable = (header & 0x20) != 0
        lane = priority * 2 + (1 if reliable else 0)
        payload = piece(r.data, r.pos, r.end)
        r.pos = r.end
        if not follows(self._last[lane], sn, mask):
            self.duplicates += 1
            return
        self._last[lane] = sn
        self.lane_bytes[lane] += len(payload)
        collected = self._fragments[lane]
        if drop:
            self.collecting -= collected.size
            collected.clear()
            return
        former = collected.size
        whole = collected.add(sn, mask, payload, first, (header & 0x40) != 0, self._marked)
        self.collecting += collected.size - former
        if self.collecting > self.max_message:
            # Sixteen lanes together may not collect more than one of them.
            self.collecting -= collected.size
            collected.clear()
            return
        if whole is None:
            return
        try:
            message = read_pieces(whole)
        except DecodeError:
            self.undecodable += 1  # costs this message, not the link
            return
        self.received += 1
        self.lane_received[lane] += 1
        self.listener.heard(message, priority, reliable)

    def incomplete(self) -> int:
        """How many messages were given up because fragments of them were missing."""
        found = 0
        for collected in self._fragments:
            found += collected.dropped
        return found

    # -------------------------------------------------------------------------------- ending

    def tick(self, now: float) -> None:
        """Keep the neighbour's lease alive, and look at ours; raises when it ran out."""
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
            raise RemoteError("it does not take what it is told")
        if now >= self.last_heard + self.lease:
            raise RemoteError(f"nothing heard for its lease of {self.lease:g} s")
        outbox = self.outbox
        quiet = outbox.bytes_sent == self._bytes_seen and not outbox.waiting()
        self._bytes_seen = outbox.bytes_sent
        if quiet:
            outbox.send_transport(b"\x04")
            # Which itself is nothing to rest on.
            self._bytes_seen += outbox.framing.prefix + (1 if outbox.framing.pack is None else 2)
        self.deadline = min(now + self._period, self.last_heard + self.lease)

    def fail(self, error: Exception, now: float) -> None:
        """The neighbour broke the protocol or fell silent: say so if the opening allows it."""
        if self.state == CLOSED:
            return
        if self.state == OPENING:
            # An established session is cut without a word, as other implementations do.
            if isinstance(error, HandshakeError):
                self._say(Close(reason=error.reason))
            elif isinstance(error, DecodeError):
                self._say(Close(reason=INVALID))
        self.state = CLOSED
        self.outbox.closed = True
        self.listener.closed(error, now)

    def close(self, now: float, reason: int = GENERIC) -> None:
        """Say goodbye."""
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

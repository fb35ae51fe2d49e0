"""One conversation: packets and time in, messages and packets out; the same code on both sides.

    Closed ──Open──► Opening ──Accept──► Open ──Close──► Closing ──Close──► Closed

Who opens repeats Open until Accept or Close comes. Who accepts is open at once, and repeats Accept
when Open comes again: nothing else changes then. Each side says how long its silence may last, and
says something four times in that time. What comes out of `receive` is what a program wants to
see: declarations, samples and pulls in the order in which they were sent; all else is done here.
"""

from __future__ import annotations

from typing import Final

from zenlake.clock.backoff import Backoff
from zenlake.errors import DecodeError, EncodeError, RemoteError
from zenlake.xrce.batches import UnreadBatch
from zenlake.xrce.channel import Numbered
from zenlake.xrce.codec import (
    Accept,
    AckNack,
    BatchedData,
    Close,
    Declare,
    Hello,
    KeepAlive,
    Migrate,
    Open,
    PingPong,
    Property,
    Pull,
    Scout,
    StreamData,
    Synch,
    WriteData,
)
from zenlake.xrce.conduit import ConduitState, move_of
from zenlake.xrce.declared import REASON, VERSION
from zenlake.xrce.fragments import OutOfRoom
from zenlake.xrce.markers import XrceMessage, conduit_of, read_messages
from zenlake.xrce.options import (
    BAD_AUTHENTICATION,
    BAD_PARAMETER,
    BAD_SN_LENGTH,
    BAD_VERSION,
    GENERIC,
    NO_ROOM,
    SUCCESS,
    SessionOptions,
    is_complete,
)
from zenlake.xrce.outgoing import CLOSED, CLOSING, NEVER, OPEN, OPENING, OutgoingPackets, written
from zenlake.xrce.properties import (
    AUTHENTICATION,
    COMMIT_MODE,
    CONDUITS,
    SN_LENGTH,
    number_of,
    value_of,
)

__all__ = ["CLOSED", "CLOSING", "NEVER", "OPEN", "OPENING", "XrceSession", "written"]


#: Seconds between two pings that measure the conduit.
PING_EVERY: Final = 5.0
#: How many times as long to wait for an answer to a Synch, each time that there was none.
SYNCH_BACKOFF: Final = Backoff(1.0, 64.0)
#: Resources that moved away from a conduit, and migrations to one that are not finished.
LEFT_MAX: Final = 1024
MOVES_MAX: Final = 256


class XrceSession(OutgoingPackets):
    """One side of a session."""

    def __init__(self, options: SessionOptions, initiator: bool) -> None:
        """Nothing is said yet: see `open` and `accept`."""
        super().__init__(options)
        self.initiator = initiator
        self.peer = b""
        self.peer_lease = 0
        #: Why it is closed: a reason of the protocol, and words.
        self.reason = SUCCESS
        self.why = ""
        #: Whether we ended it because it wanted more than there is room for.
        self.exhausted = False
        self.last_heard = 0.0
        self._acks: dict[int, bool] = {}
        self._next_open = NEVER
        self._close_at = NEVER
        self._accept: bytes = b""
        self._opening: bytes = b""

    # -------------------------------------------------------------------------- opening, closing

    def open(self, now: float) -> None:
        """Ask for a session."""
        options = self.options
        message = Open(
            version=VERSION,
            pid=options.pid,
            lease=options.lease,
            locators=options.locators,
            properties=options.properties(),
        )
        data = written(message)
        if len(data) > options.mtu:
            raise EncodeError(
                f"Open takes {len(data)} bytes and packets have {options.mtu}: shorten the pid "
                f"({len(options.pid)} bytes), or leave out locators and authentication"
            )
        self._opening = data
        self.state = OPENING
        self.last_heard = now
        self.counters.opens = 1
        self._next_open = now + options.open_every
        self._packing.add(data)

    def accept(self, request: Open, now: float, secret: bytes = b"") -> int:
        """Take the Open of another; gives 0, or the reason for which it is refused."""
        options = self.options
        bits = number_of(request.properties, SN_LENGTH)
        if not 7 <= bits <= 63:
            return BAD_SN_LENGTH
        if request.version != VERSION and not (request.version == 0 and self.habits.ocaml):
            return BAD_VERSION
        if not 1 <= len(request.pid) <= 16 or request.lease > options.lease_max:
            return BAD_PARAMETER
        if secret and value_of(request.properties, AUTHENTICATION) != secret:
            return BAD_AUTHENTICATION
        self.bits = bits
        self.peer = request.pid
        self.peer_lease = request.lease
        self._agree(request.properties)
        properties = options.properties(request.properties)
        while True:
            message = Accept(
                open_pid=request.pid,
                accept_pid=options.pid,
                lease=options.lease,
                properties=properties,
            )
            self._accept = written(message)
            if len(self._accept) <= options.mtu or not properties:
                break
            properties = properties[1:]  # none of them is a must, and the last says most
        self._packing.add(self._accept)
        self._opened(now)
        return SUCCESS

    def close(self, now: float, reason: int = SUCCESS, why: str = "") -> None:
        """Say goodbye, and wait a moment for the answer."""
        if self.state not in (OPENING, OPEN):
            return
        self.reason, self.why = reason, why or "closed by this side"
        self._packing.add(written(Close(pid=self.options.pid, reason=reason)))
        if self.state == OPENING:
            self.state = CLOSED
        else:
            self.state = CLOSING
            self._close_at = now + self.options.close_within

    def fail(self, reason: int, why: str) -> None:
        """End it at once, and tell the other side why."""
        if self.state == CLOSED:
            return
        self.reason, self.why = reason, why
        self.exhausted = reason == NO_ROOM
        self._packing.clear()
        self._packing.add(written(Close(pid=self.options.pid, reason=reason)))
        self.state = CLOSED

    def _agree(self, properties: tuple[Property, ...]) -> None:
        self.habits.complete = self.habits.complete or is_complete(properties)
        self.commits_ahead = number_of(properties, COMMIT_MODE)
        theirs = number_of(properties, CONDUITS)
        self.usable = max(1, min(self.options.conduits, theirs))
        self._packing.single = self.options.lossless and not self.habits.complete
        if self.habits.frame and self.options.lossless:
            self._packing.mtu = min(self._packing.mtu, self.habits.frame)

    def _opened(self, now: float) -> None:
        self.state = OPEN
        self.last_heard = now
        self.counters.opens += 1
        if not self.options.lossless:
            # Some receivers take nothing reliable before they know where the channel stands.
            self._packing.add(written(self.conduit(0).reliable_out.synch(ask=False)))

    # ------------------------------------------------------------------------------- receiving

    def receive(self, packet: bytes, now: float) -> list[XrceMessage]:
        """Take a packet; gives what is for the program. What is malformed ends the session."""
        try:
            messages = read_messages(packet)
        except DecodeError as error:
            self.fail(GENERIC, str(error))
            return []
        self.counters.received_bytes += len(packet)
        return self.take(messages, now)

    def take(self, messages: list[XrceMessage], now: float) -> list[XrceMessage]:
        """Take the messages of a packet."""
        ready: list[XrceMessage] = []
        self.last_heard = now
        self.counters.received += len(messages)
        try:
            for message in messages:
                if isinstance(message, (StreamData, UnreadBatch, WriteData, BatchedData)):
                    self._numbered(message, message.reliable, message.synch, now, ready)
                elif isinstance(message, (Declare, Pull)):
                    self._numbered(message, True, message.synch, now, ready)
                elif isinstance(message, AckNack):
                    self._acknack(message, now)
                elif isinstance(message, Synch):
                    self._synch(message)
                else:
                    self._other(message, now, ready)
        except OutOfRoom as full:  # a name of its own: compiled, a name has one type
            self.fail(NO_ROOM, str(full))
        except RemoteError as error:
            self.fail(GENERIC, str(error))
        if self._acks:
            self._acknowledge(now)
        return ready

    def _numbered(
        self,
        message: Numbered,
        reliable: bool,
        asked: bool,
        now: float,
        ready: list[XrceMessage],
    ) -> None:
        if self.state != OPEN:
            self.counters.ignored += 1
            return
        conduit = self.conduit(conduit_of(message) if message.markers else 0)
        if message.sn > conduit.mask:
            if not self._endless(message.sn, conduit):
                raise DecodeError(f"sequence number {message.sn}: they have {self.bits} bits")
            message.sn &= conduit.mask
        if self.options.lossless:
            # The link keeps the order, and peers of the time count both channels together.
            if reliable:
                conduit.reliable_in.next = (message.sn + 1) & conduit.mask
                conduit.reliable_in.high = conduit.reliable_in.next
                complete = conduit.reliable_slices.take(message)
            else:
                complete = conduit.best_slices.take(message)
        else:
            complete = conduit.receive(message, reliable)
        if conduit.moves:
            ready += [one for one in complete if not reliable or not conduit.hold(one)]
        else:
            ready += complete
        if reliable:
            if len(self.conduits) > 1:
                for other in self.conduits.values():
                    if other.moves:
                        ready += other.arrived(self.conduits)
            receiver = conduit.reliable_in
            if asked or (receiver.gap and now - receiver.nacked_at >= self.rtt):
                self._acks[conduit.id] = True

    def _endless(self, sn: int, conduit: ConduitState) -> bool:
        """Whether a number beyond the range is that of a peer that never begins again."""
        if self.options.lossless and sn == conduit.mask + 1:
            self.habits.endless = True
        return self.options.lossless and self.habits.endless

    def _acknack(self, message: AckNack, now: float) -> None:
        if self.state != OPEN:
            return
        conduit = self.conduit(conduit_of(message))
        self._moving.pop(conduit.id, None)
        sender = conduit.reliable_out
        self._backoff = 1.0
        again = sender.acknack(message, now, self.rtt)
        if again is None:
            self._say(sender.synch(ask=False), conduit.id)
            return
        for i, sent in enumerate(again):
            last = i == len(again) - 1
            self._packing.add(sent.with_synch() if last else sent.data, conduit.id, sent)
            if last:
                sender.asks(now, sent.sn)
        self.counters.resent += len(again)
        self._pump(conduit)

    def _synch(self, message: Synch) -> None:
        if self.state != OPEN:
            return
        conduit = self.conduit(conduit_of(message))
        if not message.reliable:
            conduit.best_in.synch(message.sn & conduit.mask)
            return
        if not self.options.lossless:
            conduit.reliable_in.synch(message.sn & conduit.mask, message.count)
        if message.synch:
            self._acks[conduit.id] = True

    def _acknowledge(self, now: float) -> None:
        for id in self._acks:
            receiver = self.conduits[id].reliable_in
            if receiver.gap:
                receiver.nacked_at = now
            self._say(receiver.acknack(), id)
        self._acks.clear()

    def _other(self, message: XrceMessage, now: float, ready: list[XrceMessage]) -> None:
        if isinstance(message, Open):
            self._open_again(message)
        elif isinstance(message, Accept):
            self._accepted(message, now)
        elif isinstance(message, Close):
            self._closed_by_peer(message)
        elif isinstance(message, PingPong):
            self._ping_pong(message, now)
        elif isinstance(message, Migrate):
            self._migrated(message)
        elif isinstance(message, (Scout, Hello)):
            ready.append(message)
        # KeepAlive: being heard is all that it wants.

    def _open_again(self, message: Open) -> None:
        if self.state != OPEN or self.initiator or message.pid != self.peer:
            self.counters.ignored += 1
            return
        self.counters.opens += 1
        if self.counters.opens > self.options.open_tries + 1:
            self.fail(SUCCESS, f"Open came {self.counters.opens} times: the peer does not hear us")
            return
        self._packing.add(self._accept)

    def _accepted(self, message: Accept, now: float) -> None:
        if self.state != OPENING or message.open_pid != self.options.pid:
            self.counters.ignored += 1
            return
        if not 1 <= len(message.accept_pid) <= 16:
            self.fail(BAD_PARAMETER, f"a pid of {len(message.accept_pid)} bytes: 1 to 16")
            return
        self.peer = message.accept_pid
        self.peer_lease = message.lease
        self._agree(message.properties)
        self._next_open = NEVER
        self._opened(now)

    def _closed_by_peer(self, message: Close) -> None:
        if self.state == CLOSED or (self.peer and message.pid not in (self.peer, self.options.pid)):
            self.counters.ignored += 1
            return
        if self.state != CLOSING:
            self.reason = message.reason
            self.why = f"closed by the other side: {REASON.get(message.reason, 'generic')}"
            if self.state == OPEN:
                self._packing.add(written(Close(pid=self.options.pid, reason=SUCCESS)))
        self.state = CLOSED

    def _ping_pong(self, message: PingPong, now: float) -> None:
        if not message.pong:
            self._packing.add(written(PingPong(pong=True, hash=message.hash)))
            return
        sent = self.pings.pop(message.hash, None)
        if sent is not None:
            sample = now - sent
            first = self._pinged_at == sent and self.counters.rtt == 0.02
            self.rtt = sample if first else self.rtt * 7 / 8 + sample / 8
            self.counters.rtt = self.rtt

    def _migrated(self, message: Migrate) -> None:
        new = self.conduit(conduit_of(message))
        old = self.conduit(message.ocid)
        if old is new:
            raise DecodeError(f"Migrate from conduit {old.id} to itself")
        old.left[message.id] = message.bech_last_sn & old.mask
        if len(old.left) > LEFT_MAX:
            raise OutOfRoom(f"more than {LEFT_MAX} resources moved away from one conduit")
        move = move_of(message)
        known = any(move.same(other) for other in new.moves)
        if known or old.past(move.last & old.mask):
            return
        if len(new.moves) >= MOVES_MAX:
            raise OutOfRoom(f"more than {MOVES_MAX} migrations to one conduit are not finished")
        new.moves.append(move)

    # ------------------------------------------------------------------------------------ time

    @property
    def deadline(self) -> float:
        """When `tick` is to be called."""
        if self.state == OPENING:
            return self._next_open
        if self.state == CLOSING:
            return self._close_at
        if self.state != OPEN:
            return NEVER
        at = NEVER
        if self.peer_lease:
            at = self.last_heard + self.peer_lease / 10
        if self.options.lease:
            at = min(at, self.last_sent + self.options.lease / 40)
        every = self._synch_every()
        for conduit in self.conduits.values():
            if conduit.reliable_out.pending:
                at = min(at, conduit.reliable_out.synch_at + every)
        for _, since in self._moving.values():
            at = min(at, since + every)
        return at

    def tick(self, now: float) -> None:
        """Do what the time demands."""
        if self.state == OPENING and now >= self._next_open:
            if self.counters.opens > self.options.open_tries:
                self.state, self.why = CLOSED, "nobody answered Open"
                return
            self.counters.opens += 1
            self._next_open = now + self.options.open_every
            self._packing.add(self._opening)
        elif self.state == CLOSING and now >= self._close_at:
            self.state = CLOSED
        elif self.state == OPEN:
            self._tick_open(now)

    def _tick_open(self, now: float) -> None:
        silence = self.peer_lease / 10
        if silence and now >= self.last_heard + silence:
            self.fail(SUCCESS, f"nothing was heard for {silence:g} s: the lease is over")
            return
        every = self._synch_every()
        asked = False
        for conduit in self.conduits.values():
            sender = conduit.reliable_out
            if sender.pending and now >= sender.synch_at + every:
                sender.asks(now, (sender.next - 1) & conduit.mask)
                asked = True
                self._say(sender.synch(), conduit.id)
        for id, (data, since) in self._moving.items():
            if now >= since + every:
                self._moving[id] = (data, now)
                self._packing.add(data, id)
                self._say(self.conduits[id].reliable_out.synch(), id)
        if asked:
            self._backoff = SYNCH_BACKOFF.after(self._backoff)
            if now - self._pinged_at >= PING_EVERY:
                self.ping(now)
        owed = self.options.lease and now >= self.last_sent + self.options.lease / 40
        if owed and not len(self._packing):
            self._packing.add(written(KeepAlive(pid=self.options.pid)))

"""What one side of a session sends: numbers, packets, fragments, and what waits for its turn."""

from __future__ import annotations

from typing import Final

from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.cursor import Writer
from zenlake.wire.message import Message
from zenlake.xrce.batches import BATCH_HEAD, UnreadBatch
from zenlake.xrce.channel import Numbered, Sent
from zenlake.xrce.codec import (
    AckNack,
    Frag,
    Migrate,
    PingPong,
    RSpace,
    StreamData,
    Synch,
    WriteData,
)
from zenlake.xrce.codec import Conduit as ConduitMarker
from zenlake.xrce.conduit import ConduitState, SliceSeries, Waiting
from zenlake.xrce.fragments import sliced
from zenlake.xrce.markers import Marker
from zenlake.xrce.options import Counters, Habits, SessionOptions
from zenlake.xrce.packing import Packing

CLOSED, OPENING, OPEN, CLOSING = range(4)

#: Seconds between two Synchs at least, and at most while nobody answers.
SYNCH_LEAST: Final = 0.01
SYNCH_MOST: Final = 0.5
NEVER: Final = float("inf")


class OutgoingPackets:
    """The sending half of a session, and the conduits of both halves."""

    def __init__(self, options: SessionOptions) -> None:
        """Nothing is sent before the session is open."""
        self.options = options
        self.state = CLOSED
        self.bits = options.bits
        self.usable = options.conduits
        #: Commits that the other side takes before it has answered the one before (property 10).
        self.commits_ahead = 0
        self.habits = Habits()
        self.counters = Counters()
        self.conduits: dict[int, ConduitState] = {}
        self.last_sent = 0.0
        self.rtt = 0.02
        self._packing = Packing(options.mtu)
        self.pings: dict[int, float] = {}
        self._ping_hash = 0
        self._pinged_at = -NEVER
        self._backoff = 1.0
        #: Migrations that the other side has not shown to know, by new conduit.
        self._moving: dict[int, tuple[bytes, float]] = {}

    def conduit(self, id: int) -> ConduitState:
        """A conduit, which begins with its first use."""
        conduit = self.conduits.get(id)
        if conduit is None:
            if id >= self.usable:
                raise DecodeError(f"conduit {id}: this session has {self.usable}, from 0 on")
            options = self.options
            patient = id != 0 and id == options.shared
            conduit = ConduitState(
                id, self.bits, options.window, options.lossless, options.room, patient
            )
            self.conduits[id] = conduit
        return conduit

    def send(self, message: Numbered, reliable: bool, conduit: int = 0, space: int = 0) -> bool:
        """Send what has a number; False: there is no room for it now.

        Raises `EncodeError` for what cannot be cut into packets, and a conduit that there is not.
        """
        if self.state != OPEN:
            return False
        if conduit >= self.usable and conduit not in self.conduits:
            raise EncodeError(f"conduit {conduit}: this session has {self.usable}, from 0 on")
        state = self.conduit(conduit)
        markers: tuple[Marker, ...] = ()
        if conduit:
            markers = (ConduitMarker(id=conduit, compact=conduit <= 4),)
        if space:
            markers = (*markers, RSpace(id=space))
        message.markers = markers
        queue = self.options.queue
        if isinstance(message, (StreamData, WriteData)):
            size = len(message.payload) + 40
            if size > self._packing.mtu:
                return self._send_large(message, reliable, state)
            if not reliable and state.waiting_bytes + self._packing.size + size <= queue:
                message.sn = state.best_number()
                self._packing.add(written(message), conduit)
                return True
        else:
            message.sn = state.mask
            if isinstance(message, UnreadBatch):
                size = len(message.body) + BATCH_HEAD
            else:
                size = len(written(message))
            if size > self._packing.mtu:
                raise EncodeError(
                    f"{message.NAME} takes {size} bytes and packets have {self._packing.mtu}: "
                    "split it"
                )
        if not reliable:
            if self._packing.size + size > queue:
                self.counters.refused += 1
                return False
            message.sn = state.best_number()
            self._packing.add(written(message), conduit)
            return True
        ready = not state.waiting and not self._blocked(state)
        if ready and self._packing.size + size <= queue:
            self._number(state, message, None)
            return True
        if state.waiting_bytes + self._packing.size + size > queue:
            self.counters.refused += 1
            return False
        state.waiting.append(Waiting(message, size))
        state.waiting_bytes += size
        return True

    def _send_large(
        self, message: StreamData | WriteData, reliable: bool, state: ConduitState
    ) -> bool:
        """Send a sample that may not fit one packet."""
        payload = message.payload
        message.sn = state.mask
        mtu = self._packing.mtu
        if len(written(message)) <= mtu:
            slices = [payload]
        else:
            if not self.habits.complete:
                raise EncodeError(
                    f"a sample of {len(payload)} bytes does not fit a packet of {mtu} bytes, and "
                    "this peer does not put fragments together"
                )
            frag = len(written(Frag(sn_base=state.mask, count=state.mask)))
            message.payload = b""
            overhead = len(written(message)) - 1 + frag
            slices = sliced(payload, overhead, mtu, state.mask >> 1)
        size = len(payload) + len(slices) * 16
        if state.waiting_bytes + self._packing.size + size > max(self.options.queue, size):
            self.counters.refused += 1
            return False
        series = SliceSeries(len(slices)) if len(slices) > 1 else None
        for part in slices:
            one: StreamData | WriteData
            if isinstance(message, StreamData):
                one = StreamData(
                    reliable=reliable, sn=0, id=message.id, prid=message.prid, payload=part
                )
            else:
                one = WriteData(reliable=reliable, sn=0, resource=message.resource, payload=part)
            one.markers = message.markers
            if not reliable:
                self._number_best(state, one, series)
            elif not state.waiting and not self._blocked(state):
                self._number(state, one, series)
            else:
                state.waiting.append(Waiting(one, len(part) + 16, series))
                state.waiting_bytes += len(part) + 16
        return True

    def _number_best(
        self, state: ConduitState, message: Numbered, series: SliceSeries | None
    ) -> None:
        message.sn = state.best_number()
        _mark(message, series)
        self._packing.add(written(message), state.id)

    def _number(self, state: ConduitState, message: Numbered, series: SliceSeries | None) -> None:
        message.sn = state.reliable_out.number()
        _mark(message, series)
        data = written(message)
        head = sum(len(written(marker)) for marker in message.markers) if message.markers else 0
        sent = Sent(message.sn, data, head, True)
        state.reliable_out.sent(sent)
        self._packing.add(data, state.id, sent)

    def begin_shared(self, conduit: int, next: int) -> None:
        """Share a conduit whose messages go to many peers at once, from a number on."""
        sender = self.conduit(conduit).reliable_out
        sender.base = sender.next = next
        self._say(sender.synch(ask=False), conduit)

    def shared(self, conduit: int, sent: Sent) -> None:
        """A message of a shared conduit left by another link: keep it until it is acknowledged."""
        sender = self.conduit(conduit).reliable_out
        sender.number()
        sender.sent(sent)

    def _blocked(self, state: ConduitState) -> bool:
        """Whether a reliable message has to wait: for room, or until a migration is known.

        A Migrate has no number: what follows it on the new conduit could overtake it.
        """
        return state.reliable_out.full() or state.id in self._moving

    def _pump(self, state: ConduitState) -> None:
        """Send what waited for room in the window."""
        while state.waiting and not self._blocked(state):
            item = state.waiting.popleft()
            state.waiting_bytes -= item.size
            self._number(state, item.message, item.series)

    def migrate(self, old: int, new: int, now: float, id: int | None = None) -> None:
        """Say that what went over one conduit, or one resource of it, goes over another."""
        before, after = self.conduit(old), self.conduit(new)
        message = Migrate(
            ocid=old,
            id=id,
            rch_last_sn=(before.reliable_out.next - 1) & before.mask,
            bech_last_sn=(before.best_out - 1) & before.mask,
            markers=(ConduitMarker(id=new, compact=1 <= new <= 4),),
        )
        data = written(message)
        self._packing.add(data, new)
        if not self.options.lossless:
            self._say(after.reliable_out.synch(), new)
            self._moving[new] = (data, now)

    def ping(self, now: float) -> int:
        """Ask how far the other side is; gives what tells this ping from others."""
        self._ping_hash = (self._ping_hash + 1) & 0xFFFF
        self.pings[self._ping_hash] = now
        if len(self.pings) > 16:
            del self.pings[next(iter(self.pings))]
        self._pinged_at = now
        self._packing.add(written(PingPong(hash=self._ping_hash)))
        return self._ping_hash

    def _say(self, message: Synch | AckNack, conduit: int) -> None:
        if conduit:
            message.markers = (ConduitMarker(id=conduit, compact=conduit <= 4),)
        self._packing.add(written(message), conduit)

    def packets(self, now: float) -> list[bytes]:
        """What is to be sent now, packet by packet."""
        packets: list[bytes] = []
        packing = self._packing
        while (packed := packing.packet(now)) is not None:
            data, last, id = packed
            if last is not None and not self.options.lossless:
                sender = self.conduits[id].reliable_out
                asked = sender.to_ask(last.sn, len(data), not len(packing))
                if asked or now - sender.synch_at >= self._synch_every():
                    sender.asks(now, last.sn)
                    data = packing.asking(last)
            packets.append(data)
            self.counters.sent_bytes += len(data)
        if packets:
            self.last_sent = now
            self.counters.sent += len(packets)
        return packets

    @property
    def mtu(self) -> int:
        """Bytes of the largest packet that is sent."""
        return self._packing.mtu

    @property
    def quiet(self) -> bool:
        """Whether nothing waits to be sent or acknowledged."""
        return not len(self._packing) and not any(
            state.waiting or state.reliable_out.pending for state in self.conduits.values()
        )

    @property
    def backlog(self) -> int:
        """How many bytes wait to be sent."""
        return self._packing.size + sum(state.waiting_bytes for state in self.conduits.values())

    def _synch_every(self) -> float:
        return min(SYNCH_MOST, max(SYNCH_LEAST, 2 * self.rtt) * self._backoff)


def _mark(message: Numbered, series: SliceSeries | None) -> None:
    """Give a slice its place in its series: the marker stands before that of the space."""
    if series is None:
        return
    count = None
    if series.base < 0:
        series.base, count = message.sn, series.count
    frag = Frag(sn_base=series.base, count=count)
    markers = message.markers
    spaces = tuple(marker for marker in markers if isinstance(marker, RSpace))
    others = tuple(marker for marker in markers if not isinstance(marker, RSpace))
    message.markers = (*others, frag, *spaces)


def written(message: Message) -> bytes:
    """The bytes of a message."""
    w = Writer()
    message.write(w)
    return w.getvalue()

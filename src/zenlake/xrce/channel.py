"""The two channels of a conduit, one direction at a time: best effort, and reliable.

Sequence numbers count modulo 2^bits and are compared in half of that range: `b` lies behind `a`
if (b - a) mod 2^bits is between 1 and 2^(bits - 1) - 1. A window is at most two short of half of
the range, so that old and new numbers are never confused.

One rule is stricter here than in the programs of 2018. There, a Synch that contradicts what was
received moves the receiver, and messages are lost or given twice. Here, a Synch that is behind
the receiver is old news (datagrams overtake each other) and is passed over, and one that says that
messages are gone for good is a `Lost`: a reliable channel gives exactly what was sent, or ends.
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import RemoteError
from zenlake.xrce.batches import UnreadBatch
from zenlake.xrce.codec import (
    AckNack,
    BatchedData,
    Declare,
    Pull,
    StreamData,
    Synch,
    WriteData,
)

Numbered = Declare | StreamData | BatchedData | UnreadBatch | WriteData | Pull

#: Bits of a mask that are sent; a gap beyond them is told by the next AckNack.
MASK_BITS: Final = 63
#: Messages that a window holds unless told otherwise.
WINDOW: Final = 256
#: Bytes that are under way at most: what a socket of the other side keeps while it is busy.
WINDOW_BYTES: Final = 65536


class Lost(RemoteError):
    """Messages of a reliable channel that nobody can send again."""


def window_of(bits: int, wanted: int = WINDOW) -> int:
    """How many messages may be under way with sequence numbers of so many bits."""
    return max(1, min(wanted, (1 << (bits - 1)) - 2))


class Sent:
    """A message that may have to be sent again."""

    __slots__ = ("at", "data", "head", "reliable", "sn")

    def __init__(self, sn: int, data: bytes, head: int, reliable: bool) -> None:
        """`data`: its bytes with markers, whose header is at `head`."""
        self.sn = sn
        self.data = data
        self.head = head
        self.reliable = reliable
        self.at = 0.0

    def with_synch(self) -> bytes:
        """Its bytes, asking for an acknowledgement."""
        data = bytearray(self.data)
        data[self.head] |= 0x20
        return bytes(data)


class BestEffortReceiver:
    """Gives messages in order, or not at all."""

    __slots__ = ("_half", "_mask", "next")

    def __init__(self, bits: int) -> None:
        """The first message is taken whatever its number: who joins late missed the others."""
        self._mask = (1 << bits) - 1
        self._half = 1 << (bits - 1)
        self.next = -1

    def receive(self, sn: int) -> bool:
        """Whether the message with this number is to be delivered."""
        if self.next >= 0 and ((sn - self.next) & self._mask) >= self._half:
            return False
        self.next = (sn + 1) & self._mask
        return True

    def synch(self, sn: int) -> None:
        """The other side says what comes next."""
        if self.next < 0 or ((sn - self.next) & self._mask) < self._half:
            self.next = sn


class ReliableSender:
    """Numbers messages and keeps them until they are acknowledged.

    On a link that loses nothing (`keep` is False) nothing is kept, and the window never fills.
    """

    def __init__(self, bits: int, window: int, keep: bool = True) -> None:
        """Begin with number 0."""
        self._mask = (1 << bits) - 1
        self.window = window
        self.base = 0
        self.next = 0
        self.keep = keep
        #: When an acknowledgement was last asked for.
        self.synch_at = -1e9
        self.resent = 0
        self._kept: dict[int, Sent] = {}
        self._kept_bytes = 0
        #: The last message for which an acknowledgement was asked for, and bytes sent since.
        self._asked = self._mask
        self._unasked = 0

    @property
    def pending(self) -> int:
        """How many messages are not acknowledged."""
        return len(self._kept)

    def full(self) -> bool:
        """Whether the next message has to wait."""
        return len(self._kept) >= self.window or self._kept_bytes >= WINDOW_BYTES

    def to_ask(self, sn: int, size: int, last: bool) -> bool:
        """Whether a packet that leaves asks for an acknowledgement, lest the next ones wait.

        One in each quarter of the window does, and the `last` one before it is full. `sn`: of the
        last message in the packet; `size`: its bytes.
        """
        self._unasked += size
        if self._unasked * 4 >= WINDOW_BYTES:
            return True
        since = (sn - self._asked) & self._mask
        if self.window <= since * 4 <= self._mask * 2:
            return True
        return last and self.full()

    def asks(self, now: float, sn: int) -> None:
        """An acknowledgement is asked for, with a message or, after one, by itself."""
        self.synch_at = now
        self._asked = sn
        self._unasked = 0

    def number(self) -> int:
        """The number of the next message."""
        sn = self.next
        self.next = (sn + 1) & self._mask
        if not self.keep:
            self.base = self.next
        return sn

    def sent(self, message: Sent) -> None:
        """Keep a message that was given the latest number."""
        if self.keep:
            self._kept[message.sn] = message
            self._kept_bytes += len(message.data)

    def synch(self, ask: bool = True) -> Synch:
        """Where the channel stands."""
        return Synch(synch=ask, reliable=True, sn=self.next, count=len(self._kept))

    def acknack(self, acked: AckNack, now: float, holdoff: float) -> list[Sent] | None:
        """Forget what arrived; gives what is to be sent again, or None if it makes no sense.

        What was sent again less than `holdoff` seconds ago is not sent again yet.
        """
        done = (acked.sn - self.base) & self._mask
        if done > len(self._kept):
            return None if self.keep else []
        for _ in range(done):
            gone = self._kept.pop(self.base, None)
            if gone is not None:
                self._kept_bytes -= len(gone.data)
            self.base = (self.base + 1) & self._mask
        again: list[Sent] = []
        if acked.mask is None:
            return again
        wanted = 2 * acked.mask + 1
        sn = acked.sn
        for _ in range(len(self._kept)):
            if wanted & 1:
                message = self._kept.get(sn)
                if message is not None and now - message.at >= holdoff:
                    message.at = now
                    again.append(message)
            wanted >>= 1
            if not wanted:
                break
            sn = (sn + 1) & self._mask
        self.resent += len(again)
        return again


class ReliableReceiver:
    """Gives messages in the order of their numbers, each once; keeps a few that came early."""

    def __init__(self, bits: int, room: int, patient: bool = False) -> None:
        """`patient`: take nothing before a Synch, as on a channel that began without us."""
        self._mask = (1 << bits) - 1
        self._half = 1 << (bits - 1)
        self._room = room
        self._early: dict[int, Numbered] = {}
        self.next = 0
        #: One more than the highest number that is known to exist.
        self.high = 0
        self.begun = False
        self.patient = patient
        self.nacked_at = -1.0
        self.dropped = 0

    @property
    def gap(self) -> bool:
        """Whether something is known to be missing."""
        return self.next != self.high

    @property
    def held(self) -> int:
        """How many messages wait for earlier ones."""
        return len(self._early)

    def receive(self, message: Numbered) -> list[Numbered]:
        """Take a message; gives those that are now in order."""
        sn = message.sn
        if self.patient and not self.begun:
            self.dropped += 1
            return []
        self.begun = True
        ahead = (sn - self.next) & self._mask
        if ahead == 0 and not self._early:
            if self.next == self.high:
                self.high = (sn + 1) & self._mask
            self.next = (sn + 1) & self._mask
            return [message]
        if ahead >= self._half:
            self.dropped += 1
            return []
        self._raise((sn + 1) & self._mask)
        if sn not in self._early:
            if ahead and len(self._early) >= self._room:
                self.dropped += 1
                return []
            self._early[sn] = message
        ready: list[Numbered] = []
        while (early := self._early.pop(self.next, None)) is not None:
            ready.append(early)
            self.next = (self.next + 1) & self._mask
        return ready

    def synch(self, sn: int, count: int) -> None:
        """Take a Synch about this channel; raises `Lost` if what is missing is gone."""
        oldest = (sn - count) & self._mask
        if not self.begun:
            self.begun = True
            self.next = oldest
            self.high = sn
            return
        if ((sn - self.next) & self._mask) >= self._half:
            return
        gone = (oldest - self.next) & self._mask
        if 0 < gone < self._half:
            raise Lost(
                f"{gone} reliable messages from {self.next} on are gone: the other side can "
                f"send again only from {oldest} on"
            )
        self._raise(sn)

    def acknack(self) -> AckNack:
        """What arrived, and what is missing."""
        gap = (self.high - self.next) & self._mask
        if not gap:
            return AckNack(sn=self.next)
        mask = 0
        for i in range(1, min(gap, MASK_BITS + 1)):
            if ((self.next + i) & self._mask) not in self._early:
                mask |= 1 << (i - 1)
        return AckNack(sn=self.next, mask=mask)

    def _raise(self, high: int) -> None:
        if 0 < ((high - self.high) & self._mask) < self._half:
            self.high = high

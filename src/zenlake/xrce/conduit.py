"""A conduit: two channels each way, and the slices that travel on them.

Messages may move from one conduit to another. `Migrate` says up to which number they went over the
old one; until the old one has delivered those, reliable messages of the new one that moved wait
here, so that their order stays.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from zenlake.xrce.batches import UnreadBatch
from zenlake.xrce.channel import (
    BestEffortReceiver,
    Numbered,
    ReliableReceiver,
    ReliableSender,
    window_of,
)
from zenlake.xrce.codec import BatchedData, Declare, Migrate, Pull, StreamData, WriteData
from zenlake.xrce.fragments import OutOfRoom, SliceReassembly

#: Messages that may wait for those of an old conduit, and about how many bytes they may have.
HELD_MAX: Final = 1024
HELD_BYTES: Final = 1 << 22


class ConduitState:
    """One conduit of a session."""

    def __init__(
        self, id: int, bits: int, window: int, lossless: bool, room: int, patient: bool = False
    ) -> None:
        """`lossless`: the link loses nothing. `room`: bytes of a payload that is put together."""
        self.id = id
        self.mask = (1 << bits) - 1
        self.reliable_out = ReliableSender(bits, window_of(bits, window), keep=not lossless)
        self.reliable_in = ReliableReceiver(bits, window_of(bits, window), patient)
        self.best_in = BestEffortReceiver(bits)
        self.best_out = 0
        self.reliable_slices = SliceReassembly(bits, room)
        self.best_slices = SliceReassembly(bits, room)
        #: Reliable messages that wait for room in the window.
        self.waiting: deque[Waiting] = deque()
        self.waiting_bytes = 0
        #: Where messages came from that moved here, and what waits for them.
        self.moves: list[Move] = []
        self.held: list[Numbered] = []
        self.held_bytes = 0
        #: Best-effort messages behind these numbers have moved away: by id, or all (None).
        self.left: dict[int | None, int] = {}

    def best_number(self) -> int:
        """The number of the next best-effort message."""
        sn = self.best_out
        self.best_out = (sn + 1) & self.mask
        return sn

    def receive(self, message: Numbered, reliable: bool) -> list[Numbered]:
        """Take a message of one of the channels; gives what can be delivered, in order."""
        if not reliable:
            expected = self.best_in.next
            if self.left and self._moved_away(message):
                return []
            if not self.best_in.receive(message.sn):
                return []
            if message.sn != expected:
                self.best_slices.broken()
            return self.best_slices.take(message)
        ready: list[Numbered] = []
        for one in self.reliable_in.receive(message):
            ready += self.reliable_slices.take(one)
        return ready

    def _moved_away(self, message: Numbered) -> bool:
        for id in (None, id_of(message)):
            last = self.left.get(id)
            if last is not None and 0 < ((message.sn - last) & self.mask) <= self.mask >> 1:
                return True
        return False

    def past(self, last: int) -> bool:
        """Whether all reliable messages up to a number were delivered."""
        return 0 < ((self.reliable_in.next - last) & self.mask) <= self.mask >> 1

    def hold(self, message: Numbered) -> bool:
        """Keep a message that has to wait for an old conduit; False: it need not."""
        if not self.moves:
            return False
        moved = id_of(message)
        if not any(move.id is None or move.id == moved for move in self.moves):
            return False
        size = size_of(message)
        if len(self.held) >= HELD_MAX or (self.held and self.held_bytes + size > HELD_BYTES):
            raise OutOfRoom(
                f"{len(self.held)} messages of {self.held_bytes} bytes wait for those of an old "
                f"conduit: at most {HELD_MAX} messages and {HELD_BYTES} bytes may"
            )
        self.held.append(message)
        self.held_bytes += size
        return True

    def arrived(self, conduits: dict[int, ConduitState]) -> list[Numbered]:
        """What no longer has to wait, now that old conduits have gone on."""
        still: list[Move] = []
        for move in self.moves:
            old = conduits.get(move.old)
            if old is not None and not old.past(move.last):
                still.append(move)
        if len(still) == len(self.moves):
            return []
        self.moves = still
        held, self.held = self.held, []
        self.held_bytes = 0
        return [message for message in held if not self.hold(message)]


class Move:
    """Messages that came here from another conduit."""

    __slots__ = ("id", "last", "old")

    def __init__(self, old: int, id: int | None, last: int) -> None:
        """`last`: the number of the last one over the old conduit."""
        self.old = old
        self.id = id
        self.last = last

    def same(self, other: Move) -> bool:
        """Whether it was told before."""
        return (self.old, self.id, self.last) == (other.old, other.id, other.last)


class SliceSeries:
    """The slices of one payload, on their way out."""

    __slots__ = ("base", "count")

    def __init__(self, count: int) -> None:
        """So many; the first one is not numbered yet."""
        self.count = count
        self.base = -1


class Waiting:
    """A message without a number yet, and the series that it is a slice of."""

    __slots__ = ("message", "series", "size")

    def __init__(self, message: Numbered, size: int, series: SliceSeries | None = None) -> None:
        """`size`: its bytes, about."""
        self.message = message
        self.size = size
        self.series = series


def id_of(message: Numbered) -> int | None:
    """The resource or selection that a message is about."""
    if isinstance(message, (StreamData, UnreadBatch, BatchedData, Pull)):
        return message.id
    return None


def size_of(message: Numbered) -> int:
    """The bytes that a message keeps in memory, about."""
    if isinstance(message, (StreamData, WriteData)):
        return len(message.payload) + 64
    if isinstance(message, UnreadBatch):
        return len(message.body) + 64
    if isinstance(message, BatchedData):
        sizes = sum(len(payload) + 64 for payload in message.payloads)
        return sizes + sum(len(sample.payload) + 128 for sample in message.samples)
    if isinstance(message, Declare):
        return 512 * len(message.declarations) + 64
    return 64


def move_of(message: Migrate) -> Move:
    """What a Migrate announces."""
    return Move(message.ocid, message.id, message.rch_last_sn)

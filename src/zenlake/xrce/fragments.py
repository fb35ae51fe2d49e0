"""Payloads that do not fit one packet: cut into slices, and put together again.

The slices of a payload are messages of their own with consecutive numbers on one channel, each
behind a Frag that names the first number of the series. All but the last are equally long. How
many there are is told with the first; where it is not told, a series ends before the first
message that does not belong to it.
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import DecodeError, EncodeError
from zenlake.xrce.channel import Numbered
from zenlake.xrce.codec import Frag, StreamData, WriteData
from zenlake.xrce.markers import fragment_of

#: The largest payload that is put together.
REASSEMBLY_MAX: Final = 1 << 24

Sliced = StreamData | WriteData


def sliced(payload: bytes, overhead: int, mtu: int, most: int) -> list[bytes]:
    """A payload in equal slices (the last may be shorter) for packets of `mtu` bytes.

    `overhead`: what each slice takes besides, without the length of the slice. At most `most`
    slices: their numbers must not run into each other.
    """
    room = mtu - overhead - 1
    if room > 127:
        room = mtu - overhead - (2 if room <= 16384 else 3)
    if room < 1:
        raise EncodeError(
            f"packets of {mtu} bytes leave no room for data behind {overhead} bytes of names and "
            "numbers: declare a resource and use its id"
        )
    count = -(-len(payload) // room)
    if count > most:
        raise EncodeError(
            f"a payload of {len(payload)} bytes takes {count} packets of {mtu} bytes: at most "
            f"{most} with these sequence numbers"
        )
    return [payload[i : i + room] for i in range(0, len(payload), room)]


class OutOfRoom(DecodeError):
    """A series of fragments that is larger than we keep."""


class SliceReassembly:
    """The open series of one channel; messages come here in their order."""

    def __init__(self, bits: int, limit: int = REASSEMBLY_MAX) -> None:
        """`limit`: bytes of one payload."""
        self._mask = (1 << bits) - 1
        self._most = (1 << (bits - 1)) - 1
        self._limit = limit
        self._first: Sliced | None = None
        self._base = 0
        self._count: int | None = None
        self._slices: list[bytes] = []
        self._size = 0
        self.discarded = 0

    @property
    def held(self) -> int:
        """How many bytes wait for the rest of their payload."""
        return self._size

    def take(self, message: Numbered) -> list[Numbered]:
        """Take the next message; gives what is whole, in order."""
        frag = fragment_of(message) if message.markers else None
        if frag is None:
            if self._first is None:
                return [message]
            return [*self._finished(), message]
        if not isinstance(message, StreamData | WriteData):
            raise DecodeError(f"a fragment of {message.NAME}: only samples are cut into fragments")
        complete: list[Numbered] = []
        if self._first is not None and frag.sn_base != self._base:
            complete = self._finished()
        if self._first is None and not self._begin(message, frag):
            return complete
        self._add(message, frag)
        if self._count is not None and len(self._slices) >= self._count:
            complete += self._finished()
        return complete

    def broken(self) -> None:
        """A message of the channel is missing: what was collected is worth nothing."""
        if self._first is not None:
            self.discarded += 1
            self._forget()

    def _begin(self, message: Sliced, frag: Frag) -> bool:
        if message.sn != frag.sn_base:
            self.discarded += 1  # its beginning was lost
            return False
        self._first = message
        self._base = frag.sn_base
        return True

    def _add(self, message: Sliced, frag: Frag) -> None:
        first = self._first
        assert first is not None
        if ((message.sn - self._base) & self._mask) != len(self._slices):
            self.broken()
            return
        if frag.count is not None:
            if frag.count < 2 or frag.count > self._most:
                raise DecodeError(f"a series of {frag.count} fragments: 2 to {self._most}")
            self._count = frag.count
        if not _same(first, message):
            raise DecodeError("fragments of one series that belong to different resources")
        self._slices.append(message.payload)
        self._size += len(message.payload)
        if self._size > self._limit or len(self._slices) > self._most:
            raise OutOfRoom(f"a fragmented payload of more than {self._limit} bytes")

    def _finished(self) -> list[Numbered]:
        first, slices, count = self._first, self._slices, self._count
        assert first is not None
        self._forget()
        if count is not None and len(slices) < count:
            self.discarded += 1
            return []
        first.payload = b"".join(slices)
        first.markers = tuple(m for m in first.markers if not isinstance(m, Frag))
        return [first]

    def _forget(self) -> None:
        self._first = None
        self._count = None
        self._slices = []
        self._size = 0


def _same(one: Sliced, other: Sliced) -> bool:
    if isinstance(one, StreamData):
        return isinstance(other, StreamData) and (one.id, one.prid) == (other.id, other.prid)
    return isinstance(other, WriteData) and one.resource == other.resource

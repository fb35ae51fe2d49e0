"""Timestamps that a node gives to samples it routes, and checks of those that they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from zenlake.clock.hlc import Hlc
from zenlake.wire.codec_zenoh import Del, Put
from zenlake.wire.codec_zenoh import Timestamp as WireTimestamp
from zenlake.wire.cursor import Writer

#: The first byte of a time of today on the wire: its last seven bits, and that there are more.
_FIRST: Final[list[bytes]] = [bytes((0x80 | value,)) for value in range(0x80)]
#: Times before this many seconds since 1970 take fewer bytes.
_SHORT: Final = 0x0100_0000


class Timestamper:
    """Sees that every value that passes has a time, and one that can be true."""

    def __init__(self, hlc: Hlc, wall: Callable[[], int], drop_future: bool) -> None:
        """`wall` reads the clock, in nanoseconds since 1970; `drop_future`: instead of replacing.

        A time too far ahead of this node's clock is replaced by its own, or its value dropped.
        """
        self.hlc: Hlc = hlc
        self.wall: Callable[[], int] = wall
        self.drop_future: bool = drop_future
        #: How many values were dropped, and how many times replaced, for being of the future.
        self.dropped: int = 0
        self.replaced: int = 0
        #: The time that `next` gave: its halves, and its bytes: the first, and all others.
        self.id: bytes = hlc.last.id_bytes
        self.seconds: int = 0
        self.fraction: int = 0
        self.first: bytes = b""
        self.rest: bytes = b""
        #: The wall as it was read for the values that pass together; -1: not yet.
        self._reading: int = -1

    def new(self) -> WireTimestamp:
        """A time of this node, later than all before it."""
        seconds, fraction = self.hlc.tick(self.wall())
        return WireTimestamp(seconds=seconds, fraction=fraction, id=self.id)

    def stamp(self, body: Put | Del) -> bool:
        """Give a value its time, or check it; False: the value is to be dropped."""
        timestamp = body.timestamp
        if timestamp is None:
            body.timestamp = self.new()
            return True
        if self.hlc.follow(timestamp.seconds, timestamp.fraction, self.wall()):
            return True
        if self.drop_future:
            self.dropped += 1
            return False
        self.replaced += 1
        body.timestamp = self.new()
        return True

    # ------------------------------------------------------------------- values that pass together

    def next(self) -> None:
        """Take a time for one of many values: one look at the wall is enough for all of them.

        Of two such times most often only the first byte differs, so the others are kept.
        """
        seconds, fraction = self.hlc.tick(self.reading())
        self._write(seconds, fraction)

    def write(self, word: i64) -> None:
        """Write a time that was taken as a machine word, as `next` does."""
        self._write((word >> 32) + 0x8000_0000, word & 0xFFFF_FFFF)

    def _write(self, seconds: int, fraction: int) -> None:
        if fraction >> 7 != self.fraction >> 7 or seconds != self.seconds or seconds < _SHORT:
            w = Writer()
            w.ntp64(seconds, fraction)
            w.vle(len(self.id), 16)
            w.zid(self.id)
            encoded = b"".join(w.parts)
            self.first = encoded[:1]
            self.rest = encoded[1:]
        else:
            self.first = _FIRST[fraction & 0x7F]
        self.seconds = seconds
        self.fraction = fraction

    def believes(self, seconds: int, fraction: int) -> bool:
        """Whether the time of one of many values can be true."""
        return self.hlc.follow(seconds, fraction, self.reading())

    def reading(self) -> int:
        """The wall, as it was read first since values began to pass together."""
        reading = self._reading
        if reading < 0:
            reading = self.wall()
            self._reading = reading
        return reading

    def forget(self) -> None:
        """Those values have passed: look at the wall again for the next ones."""
        self._reading = -1

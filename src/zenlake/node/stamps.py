"""The times that a node gives to values on their way, and checks on those that have one."""

from __future__ import annotations

from collections.abc import Callable

from zenlake.clock.hlc import Hlc
from zenlake.clock.timestamp import Timestamp
from zenlake.wire.codec_zenoh import Put
from zenlake.wire.codec_zenoh import Timestamp as WireTimestamp


class Stamps:
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

    def new(self) -> WireTimestamp:
        """A time of this node, later than all before it."""
        stamp = self.hlc.new_timestamp(self.wall())
        return WireTimestamp(seconds=stamp.seconds, fraction=stamp.fraction, id=stamp.id_bytes)

    def stamp(self, body: Put) -> bool:
        """Give a value its time, or check it; False: the value is to be dropped."""
        found = body.timestamp
        if found is None:
            body.timestamp = self.new()
            return True
        heard = Timestamp(found.seconds, found.id, found.fraction)
        if self.hlc.update(heard, self.wall()):
            return True
        if self.drop_future:
            self.dropped += 1
            return False
        self.replaced += 1
        body.timestamp = self.new()
        return True

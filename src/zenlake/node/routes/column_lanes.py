"""The lanes of columnar subscribers, for the samples of one neighbour."""

from __future__ import annotations

from zenlake.node.routes.forward import FrameSink, Inbound, Lane, Relay
from zenlake.node.stamps import Timestamper
from zenlake.routing.tables import Tables
from zenlake.wire.codec_network import Push
from zenlake.wire.cursor import Reader


class ColumnLanes:
    """A `Lane` for each `FrameSink` that alone hears some keys of a neighbour."""

    def __init__(self, tables: Tables, stamps: Timestamper | None, relay: Relay) -> None:
        """The lanes give times by `stamps`, and pass on what others hear by `relay`."""
        self._tables: Tables = tables
        self._stamps: Timestamper | None = stamps
        self._relay: Relay = relay
        self.lanes: list[Lane] = []
        self._sinks: list[FrameSink] = []
        #: Whether `walk` may take something.
        self.ready: bool = False

    def learn(self, push: Push, inbound: Inbound, deletes: bool) -> None:
        """Have messages like this one taken by the lane of the one sink that hears them.

        `deletes`: whether the lane may take a Del; else only Put.
        """
        version = self._tables.version
        if self.lanes and self.lanes[0].version != version:
            self.lanes.clear()
            self._sinks.clear()
        sink = inbound.frames[0]
        if sink not in self._sinks:
            lane = sink.lane(self._stamps, self._relay)
            lane.version = version
            self.lanes.append(lane)
            self._sinks.append(sink)
        self.ready = True
        index = self._sinks.index(sink)
        self.lanes[index].learn(push.scope, push.sender_mapping, push.suffix, inbound, deletes)

    def walk(self, r: Reader, reliable: bool) -> int:
        """Take the Push messages that follow and belong to one of the lanes; how many."""
        for lane in self.lanes:
            if lane.version != self._tables.version:
                self.ready = False
                return 0
            taken = lane.walk(r, reliable)
            if taken:
                return taken
        return 0

    def clear(self) -> None:
        """Bytes that named keys may name others now."""
        for lane in self.lanes:
            lane.clear()

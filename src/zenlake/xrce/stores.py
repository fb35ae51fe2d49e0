"""What waits for a subscriber that is asleep: the latest samples of each resource, within bounds.

A window of a periodic subscription is open from origin + n · period on, for `duration`
milliseconds, counted from the moment of the declaration.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from zenlake.xrce.framing import PACKET_MAX
from zenlake.xrce.tables import Subscription

#: Samples of one resource that are kept.
DEPTH: Final = 16
#: Bytes and resources of one store.
BYTES: Final = 1 << 20
RESOURCES: Final = 1024


@dataclass(slots=True)
class Stored:
    """A sample that waits."""

    path: str | None
    payload: bytes
    conduit: int
    order: int


@dataclass(slots=True)
class StoreRoom:
    """The bytes that all stores of one session have together."""

    limit: int
    used: int = 0


class Store:
    """The samples that wait for one subscription."""

    def __init__(
        self,
        depth: int = DEPTH,
        limit: int = BYTES,
        resources: int = RESOURCES,
        room: StoreRoom | None = None,
    ) -> None:
        """`depth`: samples of each resource; `limit`: bytes; `room`: shared with other stores."""
        self._depth = depth
        self._limit = limit
        self._resources = resources
        self._room = room if room is not None else StoreRoom(limit + PACKET_MAX)
        self._rings: dict[str | None, deque[Stored]] = {}
        #: All of them, the oldest first.
        self._all: OrderedDict[int, Stored] = OrderedDict()
        self._order = 0
        self.size = 0
        self.count = 0
        #: How many samples made room for later ones.
        self.dropped = 0

    def put(self, path: str | None, payload: bytes, conduit: int = 0) -> None:
        """Keep a sample; what does not fit pushes out the oldest of all."""
        ring = self._rings.get(path)
        if ring is None:
            if len(self._rings) >= self._resources:
                self._drop_oldest()
            ring = self._rings.setdefault(path, deque())
        if len(ring) >= self._depth:
            self._gone(ring.popleft())
            self.dropped += 1
        self._order += 1
        stored = Stored(path, payload, conduit, self._order)
        ring.append(stored)
        self._all[self._order] = stored
        self.size += len(payload)
        self._room.used += len(payload)
        self.count += 1
        while self.size > self._limit and self.count > 1:
            self._drop_oldest()
        while self._room.used > self._room.limit and self.count:
            self._drop_oldest()

    def take(self, most: int | None = None) -> list[Stored]:
        """The oldest samples, which are kept no longer."""
        taken: list[Stored] = []
        while self._all and (most is None or len(taken) < most):
            oldest = next(iter(self._all.values()))
            ring = self._rings[oldest.path]
            ring.popleft()
            if not ring:
                del self._rings[oldest.path]
            self._gone(oldest)
            taken.append(oldest)
        return taken

    def close(self) -> None:
        """Nobody wants them any more."""
        self._room.used -= self.size
        self.size = self.count = 0
        self._rings.clear()
        self._all.clear()

    def _gone(self, stored: Stored) -> None:
        del self._all[stored.order]
        self.size -= len(stored.payload)
        self._room.used -= len(stored.payload)
        self.count -= 1

    def _drop_oldest(self) -> None:
        self.take(1)
        self.dropped += 1


def inside(one: Subscription, now: float) -> bool:
    """Whether a window of a periodic subscription is open."""
    at = (now - one.since) * 1000 - one.origin
    return at >= 0 and math.fmod(at, one.period) < one.duration


def next_window(one: Subscription, now: float) -> float:
    """When the next window opens; now, if one does right now."""
    at = (now - one.since) * 1000
    if at <= one.origin:
        start: float = one.origin
    else:
        start = one.origin + math.ceil((at - one.origin) / one.period) * one.period
    return one.since + start / 1000

"""The connections of one HTTP server: who may have one, what they hold, when their time is over.

A connection holds a `Seat` from its accept to its end. Once in a while all are asked whether their
time is over: one timer serves all, since a timer for each request would cost more than the request.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol, final

from zenlake.http.limits import HttpLimits
from zenlake.http.shares import Shares, holder_of

__all__ = ["Connections", "Seat", "TimedConnection"]


class TimedConnection(Protocol):
    """A connection that says when its time is over."""

    def check_time(self, now: float) -> None:
        """End the connection if its time is over."""


@final
class Seat:
    """The share of one connection in the server: its place, and bytes that are being read."""

    __slots__ = ("_bytes", "_connections", "_open", "connection", "holder")

    def __init__(self, connections: Connections, holder: str) -> None:
        """`holder`: the address, as `holder_of` counts it."""
        self._connections = connections
        self._bytes = 0
        self._open = True
        self.holder = holder
        #: The connection, whose time is checked once in a while.
        self.connection: TimedConnection | None = None

    def hold(self, amount: int) -> bool:
        """Hold so many bytes from now on instead of those before; False where there is no room."""
        change = amount - self._bytes
        if not change:
            return True
        memory = self._connections.memory
        if change > 0:
            if not memory.take(self.holder, change):
                return False
        else:
            memory.give_back(self.holder, -change)
        self._bytes = amount
        return True

    def leave(self) -> None:
        """Give everything back; the connection has ended."""
        if self._open:
            self._open = False
            self.hold(0)
            self._connections.on_left(self)


@final
class Connections:
    """The connections of one server, on its loop."""

    def __init__(self, limits: HttpLimits) -> None:
        """There are none."""
        self.limits = limits
        self.places = Shares(limits.connections)
        #: Bytes of requests and messages that are being read.
        self.memory = Shares(limits.buffered_bytes)
        #: Connections refused or ended, by reason: head, malformed, method, slow, connections,
        #: address, memory, tls, descriptors, error.
        self.refused: Counter[str] = Counter()
        self._seats: set[Seat] = set()

    def admit(self, address: str) -> Seat | None:
        """Give a connection from an address its seat; None where it finds no room."""
        holder = holder_of(address)
        why = self.places.refusal(holder)
        if why:
            self.refused["connections" if why == "all" else why] += 1
            return None
        self.places.take(holder)
        seat = Seat(self, holder)
        self._seats.add(seat)
        return seat

    def on_left(self, seat: Seat) -> None:
        """Forget a seat."""
        self._seats.discard(seat)
        self.places.give_back(seat.holder)

    def check_times(self, now: float) -> None:
        """End the connections whose time is over."""
        for seat in list(self._seats):
            if seat.connection is not None:
                seat.connection.check_time(now)

    @property
    def check_seconds(self) -> float:
        """How often times are to be checked."""
        return min(1.0, self.limits.shortest_seconds / 4)

    def shown(self) -> dict[str, object]:
        """Return the record that the admin space shows."""
        return {
            "open": self.places.taken,
            "most": self.places.most,
            "most_of_one_address": self.places.most_of_one,
            "addresses": self.places.holders,
            "buffered_bytes": self.memory.taken,
            "refused": dict(self.refused),
        }

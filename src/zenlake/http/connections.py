"""The connections of one HTTP server: who may have one, what they hold, when their time is over.

A connection holds a `Seat` from its accept to its end. Once in a while all are asked whether their
time is over: one timer serves all, since a timer for each request would cost more than the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, final

from zenlake.http.limits import HttpLimits
from zenlake.http.shares import Holding, Shares, holder_of

__all__ = ["SEAT", "Connections", "Seat", "TimedConnection", "seat_of"]

SEAT: Final = "zenlake.seat"
"""The name of the seat in the state of a scope."""


class TimedConnection(Protocol):
    """A connection that says when its time is over."""

    def check_time(self, now: float) -> None:
        """End the connection if its time is over."""


@final
class Seat:
    """The share of one connection in the server: its place, and the bytes that it holds."""

    __slots__ = (
        "_connections", "_open", "answers", "connection", "holder", "making", "reading", "waiting",
    )  # fmt: skip

    def __init__(self, connections: Connections, holder: str) -> None:
        """`holder`: the address, as `holder_of` counts it."""
        self._connections = connections
        self._open = True
        self.holder = holder
        self.answers = connections.answers
        #: Bytes of requests and messages that are being read.
        self.reading = Holding(connections.memory, holder)
        #: Bytes of the answer that is being made, and of one that waits for those before it.
        self.making = Holding(connections.answers, holder)
        #: Bytes that were given to the transport, and that the client has not taken.
        self.waiting = Holding(connections.answers, holder)
        #: The connection, whose time is checked once in a while.
        self.connection: TimedConnection | None = None

    def leave(self) -> None:
        """Give everything back; the connection has ended."""
        if self._open:
            self._open = False
            for held in (self.reading, self.making, self.waiting):
                held.close()
            self._connections.on_left(self)


def seat_of(scope: Mapping[str, Any]) -> Seat:
    """Return the seat of the connection that a request or WebSocket came over.

    Args:
        scope: What the ASGI server says of it.
    """
    seat: Seat = scope["state"][SEAT]
    return seat


@final
class Connections:
    """The connections of one server, on its loop."""

    def __init__(
        self, limits: HttpLimits, guard: AbstractContextManager[Any] | None = None
    ) -> None:
        """There are none; `guard`: a lock, if answers are made on several threads."""
        self.limits = limits
        self.places = Shares(limits.connections)
        #: Bytes of requests and messages that are being read.
        self.memory = Shares(limits.buffered_bytes)
        #: Bytes of answers, from their first part until clients have taken them.
        self.answers = Shares(limits.unsent_bytes, guard)
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
            "unsent_bytes": self.answers.taken,
            "most_unsent_bytes": self.answers.most,
            "refused": dict(self.refused),
        }

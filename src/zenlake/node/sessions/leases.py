"""When each link is looked at next: to say that this node is alive, and to see that others are.

There may be a hundred thousand links, each with a deadline of its own: only those are visited that
are due.
"""

from __future__ import annotations

from zenlake.errors import RemoteError
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.routing.deadlines import Deadlines, Timed


class LeaseDeadline(Timed):
    """The next look at a neighbour's link."""

    __slots__ = ("neighbour",)

    def __init__(self, neighbour: Neighbour, deadline: float) -> None:
        """Not waited for until it is added."""
        super().__init__(deadline)
        #: None when it is looked at no more: the heap may hold this for a lease longer.
        self.neighbour: Neighbour | None = neighbour


class Leases:
    """The deadlines of all links of a node."""

    def __init__(self, neighbours: dict[Neighbour, None]) -> None:
        """`neighbours`: those that there are."""
        self._neighbours: dict[Neighbour, None] = neighbours
        self._deadlines: Deadlines = Deadlines()
        #: Those for which too much waits; appended to by any thread.
        self.overflowed: list[Neighbour] = []

    def add(self, neighbour: Neighbour) -> float:
        """Look at a link when its transport wants it; returns when."""
        self.remove(neighbour)
        unicast = neighbour.unicast
        if unicast is None:
            return float("inf")
        deadline = unicast.deadline
        timed = LeaseDeadline(neighbour, deadline)
        neighbour.timed = timed
        self._deadlines.add(timed)
        return deadline

    def remove(self, neighbour: Neighbour) -> None:
        """Look at a link no more."""
        timed = neighbour.timed
        if timed is not None:
            neighbour.timed = None
            self._deadlines.over(timed)
            assert isinstance(timed, LeaseDeadline)
            timed.neighbour = None

    def next(self) -> float:
        """When `tick` has something to do."""
        return 0.0 if self.overflowed else self._deadlines.next()

    def tick(self, now: float) -> None:
        """Look at the links that are due; one that failed ends its session."""
        while self.overflowed:
            self._look(self.overflowed.pop(), now)
        for timed in self._deadlines.due(now):
            assert isinstance(timed, LeaseDeadline)
            if timed.neighbour is not None:
                self._look(timed.neighbour, now)

    def _look(self, neighbour: Neighbour, now: float) -> None:
        unicast = neighbour.unicast
        if unicast is None or neighbour not in self._neighbours:
            return
        try:
            unicast.tick(now)
        except RemoteError as error:
            unicast.fail(error, now)
            return
        self.add(neighbour)

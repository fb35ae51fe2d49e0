"""Events: what has happened in a node that its edge should know.

A node calls nothing of its edge when a session opens, a link is done or a matching status changes.
It notes an event, and the edge takes all events with `Node.events()` after each call, in the order
in which they happened:

    node.receive(neighbour, data, now)
    for event in node.events():
        ...

Each kind lies beside what it tells of: `SessionOpened`, `SessionClosed`, `LinkFinished` and
`NodesDiscovered` in `node/sessions/events`, `MatchingChanged` in `node/programs/matching`. Only
samples, queries and replies go straight into their sinks, because there are so many of them.
"""

from __future__ import annotations


class NodeEvent:
    """Something that has happened in a node."""


class EventQueue:
    """The events that have not been taken yet."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        """None yet."""
        self._waiting: list[NodeEvent] = []

    def add(self, event: NodeEvent) -> None:
        """Something has happened."""
        self._waiting.append(event)

    def take(self) -> list[NodeEvent]:
        """All events since the last call."""
        waiting = self._waiting
        if waiting:
            self._waiting = []
        return waiting

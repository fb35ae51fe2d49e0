"""Events of sessions and of the topology: see `node/events`."""

from __future__ import annotations

from zenlake.node.events import NodeEvent
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.wire.link_state import KnownNode


class SessionOpened(NodeEvent):
    """A session is open, one more link has joined it, or a member has joined a multicast group."""

    def __init__(self, neighbour: Neighbour) -> None:
        """`neighbour`: the node at the other end of the link."""
        self.neighbour: Neighbour = neighbour

    def __repr__(self) -> str:
        """What happened, and with which neighbour."""
        return f"SessionOpened({self.neighbour.dst!r})"


class SessionClosed(NodeEvent):
    """A session is over, or has lost a link, or a member has left a multicast group."""

    def __init__(self, neighbour: Neighbour, error: Exception | None) -> None:
        """`error`: why; None: this side closed it."""
        self.neighbour: Neighbour = neighbour
        self.error: Exception | None = error

    def __repr__(self) -> str:
        """What happened, and with which neighbour."""
        return f"SessionClosed({self.neighbour.dst!r}, {self.error!r})"


class LinkFinished(NodeEvent):
    """Nothing more will be sent over a link but what waits in its outbox: it can be closed."""

    def __init__(self, neighbour: Neighbour) -> None:
        """`neighbour`: the node at the other end, whether a session was opened or not."""
        self.neighbour: Neighbour = neighbour

    def __repr__(self) -> str:
        """What happened, and with which neighbour."""
        return f"LinkFinished({self.neighbour.dst!r})"


class NodesDiscovered(NodeEvent):
    """A neighbour told of nodes that were not known before, by gossip or link states."""

    def __init__(self, neighbour: Neighbour, nodes: list[KnownNode]) -> None:
        """`nodes`: their ids, roles and locators."""
        self.neighbour: Neighbour = neighbour
        self.nodes: list[KnownNode] = nodes

    def __repr__(self) -> str:
        """How many, and who told of them."""
        return f"NodesDiscovered({self.neighbour.dst!r}, {len(self.nodes)})"

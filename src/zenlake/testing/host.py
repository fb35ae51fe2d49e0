"""A node of a simulated network, with shortcuts to what tests do most, and its edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zenlake.errors import LinkError
from zenlake.node.events import NodeEvent
from zenlake.node.node import Node
from zenlake.node.programs.matching import MatchingChanged
from zenlake.routing.filters import asked_by_routers
from zenlake.testing.recorders import Replier, ReplyRecorder, SampleRecorder
from zenlake.testing.wires import WireEnd
from zenlake.transport.unicast import CLOSED
from zenlake.values.qos import QOS_DEFAULT

if TYPE_CHECKING:
    from zenlake.testing.network import Network

__all__ = ["Host"]


class Host:
    """A node in the network, with shortcuts to what tests do most.

    Everything else is done with `node` itself; `Network.settle` then carries it out.
    """

    def __init__(self, network: Network, name: str, node: Node) -> None:
        self.network = network
        self.name = name
        self.node = node
        self.alive = True
        self.ends: list[WireEnd] = []
        self.scheduled = float("inf")
        #: All events of the node so far.
        self.events: list[NodeEvent] = []

    @property
    def endpoint(self) -> str:
        """Where it listens, if it does."""
        return f"sim/{self.name}"

    @property
    def sessions(self) -> set[str]:
        """The names of the nodes that it has an open session with."""
        names = {host.node.zid: host.name for host in self.network.hosts.values()}
        return {names.get(zid, zid.hex()) for zid in self.node.by_zid}

    # --------------------------------------------------------------------------- programs

    def subscribe(self, key: str, origin: int = 2, filter: str = "") -> SampleRecorder:
        """Declare a subscriber whose samples are recorded; `filter`: what its routers ask."""
        recorder = SampleRecorder()
        asked = asked_by_routers(filter) if filter else None
        recorder.subscriber = self.node.local.subscribe(key, recorder, origin, filter=asked)
        return recorder

    def put(
        self, key: str, payload: bytes = b"", *, qos: int = QOS_DEFAULT, destination: int = 2
    ) -> bool:
        """Publish a value, without declaring a publisher."""
        local = self.node.local
        return local.publication(0, key, qos, True, 0, b"", destination).put(payload)

    def queryable(self, key: str, payload: bytes | None = None, complete: bool = False) -> Replier:
        """Declare a queryable; with a `payload` it replies to every query at once."""
        replier = Replier(self.node, key, payload)
        replier.queryable = self.node.local.queryable(key, replier, complete)
        return replier

    def get(self, key: str, parameters: str = "", **options: Any) -> ReplyRecorder:
        """Send a query; the replies are recorded."""
        replies = ReplyRecorder()
        replies.get = self.node.local.get(key, parameters, replies, **options)
        return replies

    def liveliness_get(self, key: str, timeout: float = 10.0) -> ReplyRecorder:
        """Query the tokens that are alive; the replies are recorded."""
        replies = ReplyRecorder()
        self.node.local.liveliness.get(key, replies, timeout)
        return replies

    def watch_liveliness(self, key: str, history: bool = False) -> SampleRecorder:
        """Record the tokens that come alive and that die."""
        recorder = SampleRecorder()
        recorder.watcher = self.node.local.liveliness.watch(key, recorder, history)
        return recorder

    # ------------------------------------------------------------------------------- edges

    def arrived(self, end: WireEnd, data: bytes) -> None:
        """Bytes came over one of its links."""
        if end.neighbour is not None:
            self.node.receive(end.neighbour, data, self.network.now)

    def ended(self, end: WireEnd) -> None:
        """One of its links is gone."""
        if end in self.ends:
            self.ends.remove(end)
        if end.neighbour is not None:
            self.node.lost(end.neighbour, LinkError("the link was lost"), self.network.now)

    def flush(self) -> None:
        """Carry out what the node asks for: connections, bytes, a later call; take its events."""
        self._take_events()
        if not self.alive:
            return
        network = self.network
        for attempt in self.node.attempts(network.now):
            network.dial(self, attempt.endpoint, attempt)
        for end in list(self.ends):
            neighbour = end.neighbour
            if neighbour is None or neighbour.unicast is None:
                continue
            network.drain(end, neighbour.unicast.outbox.take)
            # Its last words are under way: the link ends behind them.
            if neighbour.unicast.state == CLOSED and not end.closed:
                self.ends.remove(end)
                network.close_end(end)
        if self.node.deadline < self.scheduled:
            self.scheduled = max(self.node.deadline, network.now)
            network.at(self.scheduled, self._tick)

    def _take_events(self) -> None:
        for event in self.node.events():
            self.events.append(event)
            if isinstance(event, MatchingChanged):
                event.deliver()

    def _tick(self) -> None:
        self.scheduled = float("inf")
        if self.alive and self.node.deadline <= self.network.now:
            self.node.tick(self.network.now)
        self.flush()

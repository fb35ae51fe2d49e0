"""Connections to nodes that were discovered, by gossip or scouting, rather than configured."""

from __future__ import annotations

from zenlake.node.core import FOREVER, Core
from zenlake.node.sessions.connect import Attempt, ConnectPlan
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.scouting.autoconnect import Autoconnect, gossip_delay
from zenlake.scouting.believed import believed
from zenlake.wire.link_state import KnownNode

#: How many discovered nodes wait for their connection, and how many locators of each are tried.
MOST_WAITING = 1024
MOST_LOCATORS = 8


class DiscoveredNodes:
    """Nodes that were discovered and are to be connected to, each at its time."""

    def __init__(self, node: Core, plan: ConnectPlan, by_zid: dict[bytes, Neighbour]) -> None:
        """`plan` bounds the connections; `by_zid`: the nodes that there are sessions with."""
        settings = node.settings
        self._node: Core = node
        self._plan: ConnectPlan = plan
        self._by_zid: dict[bytes, Neighbour] = by_zid
        self._gossip: Autoconnect = Autoconnect(
            settings.zid, settings.autoconnect, settings.strategy
        )
        #: When to connect, where, and to whom (gossip waits a moment, so that not all jump).
        self._waiting: list[tuple[float, tuple[str, ...], bytes]] = []
        #: Connections that the edge should make now.
        self._started: list[Attempt] = []
        #: Locators that neighbours told and that are not dialled on their word alone.
        self.passed_over: int = 0

    def gossiped(self, known: KnownNode, within: bool) -> None:
        """A neighbour told of a node; `within`: the neighbour itself is on this machine."""
        node = self._node
        dialable = believed(known.locators, within, node.settings.gossip_networks)
        self.passed_over += len(known.locators) - len(dialable)
        delay = gossip_delay(node.random())
        if dialable:
            self.add(known.zid, known.role, dialable, self._gossip, delay)

    def add(
        self, zid: bytes, role: int, locators: list[str], autoconnect: Autoconnect, delay: float
    ) -> None:
        """A node was discovered (`role` as a flag): connect to it if we want to, after `delay`."""
        node = self._node
        if node.closing or not autoconnect.wants(zid, role, locators, self._by_zid):
            return
        when = node.now + delay
        self._waiting.append((when, tuple(locators[:MOST_LOCATORS]), zid))
        del self._waiting[:-MOST_WAITING]
        node.wake_by(when)

    def tick(self, now: float) -> float:
        """Start the connections whose time has come; when the next one is due."""
        due = [item for item in self._waiting if item[0] <= now]
        if due:
            self._waiting = [item for item in self._waiting if item[0] > now]
            for _, locators, zid in due:
                if zid in self._by_zid or self._node.closing:
                    continue
                attempt = self._plan.find(locators, zid, now)
                if attempt is not None:
                    self._started.append(attempt)
        return min([item[0] for item in self._waiting], default=FOREVER)

    def take_started(self) -> list[Attempt]:
        """The connections that the edge should make now, each once."""
        started = self._started
        self._started = []
        return started

    def clear(self) -> None:
        """Connect to none of them any more."""
        self._waiting = []

"""What the edge does about the events of its node: sessions, links, matching, incidents."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

from zenlake.clock import ZenohId
from zenlake.engine.changes import Changes
from zenlake.engine.flushing import Flushing
from zenlake.engine.pump import Pump
from zenlake.engine.scouts import NodeScouting
from zenlake.node.events import NodeEvent
from zenlake.node.incidents import DENIED, LIMIT, LOGIN, REJECTED, Incident
from zenlake.node.node import Node
from zenlake.node.programs.matching import MatchingChanged
from zenlake.node.sessions.events import (
    LinkFinished,
    NodesDiscovered,
    SessionClosed,
    SessionOpened,
)
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.routing.face import Face
from zenlake.routing.regions import CLIENT

log = logging.getLogger("zenlake.engine")


class EventDispatcher:
    """Acts on the events of one node; each call but `stopped` holds the node's lock."""

    def __init__(self, node: Node, flushing: Flushing, changes: Changes) -> None:
        """`flushing` knows the pump of each outbox; `changes` is notified of sessions."""
        self._node = node
        self._flushing = flushing
        self._changes = changes
        #: The node's scouting, once it has begun.
        self.scouting: NodeScouting | None = None
        #: Called with each neighbour whose session opened (True) or closed.
        self.session_listeners: list[Callable[[Neighbour, bool], None]] = []
        node.on_stopped = self.stopped
        node.rejections.warn = log.warning
        node.incidents.tell = log_incident

    def dispatch(self, events: list[NodeEvent]) -> None:
        """Act on events, and on those that come of that."""
        while events:
            for event in events:
                if isinstance(event, SessionOpened):
                    self._session_changed(event.neighbour, True)
                elif isinstance(event, SessionClosed):
                    self._session_changed(event.neighbour, False)
                elif isinstance(event, LinkFinished):
                    self._link_finished(event.neighbour)
                elif isinstance(event, MatchingChanged):
                    event.deliver()
                elif isinstance(event, NodesDiscovered) and log.isEnabledFor(logging.DEBUG):
                    names = ", ".join(str(ZenohId(node.zid)) for node in event.nodes)
                    log.debug("%s told of %s", event.neighbour.dst, names)
            events = self._node.events()

    def _pump_of(self, neighbour: Neighbour) -> Pump | None:
        unicast = neighbour.unicast
        pump = None if unicast is None else self._flushing.pump_of(unicast.outbox)
        return pump if isinstance(pump, Pump) else None

    def _link_finished(self, neighbour: Neighbour) -> None:
        """Have what waits for a neighbour written, and its link closed."""
        pump = self._pump_of(neighbour)
        if pump is not None:
            pump.finish()

    def _session_changed(self, neighbour: Neighbour, opened: bool) -> None:
        face = neighbour.face
        pump = self._pump_of(neighbour) if opened else None
        if pump is not None:
            pump.link.admit()
        if face is not None:
            log.info(
                "session with %s %s over %s",
                ZenohId(face.zid),
                "opened" if opened else f"closed ({neighbour.error or 'goodbye'})",
                neighbour.dst,
            )
        if self.scouting is not None:
            client = self._node.mode == CLIENT
            if opened:
                self.scouting.connected(client)
            elif not self._node.by_zid and not self._node.closing:
                self.scouting.disconnected(client)
        for listener in list(self.session_listeners):
            listener(neighbour, opened)
        self._changes.notify()

    def stopped(self, face: Face | None, flow: str, reason: str, kind: str, key: str) -> None:
        """The policy stopped a message; the lock may not be held."""
        peer = "" if face is None else str(ZenohId(face.zid))
        neighbour = None if face is None else self._node.by_zid.get(face.zid)
        unicast = None if neighbour is None else neighbour.unicast
        terms = None if unicast is None else unicast.terms
        user = "" if terms is None else terms.user
        words = f"{kind} on {flow}: {reason}"
        with contextlib.suppress(KeyError, RuntimeError):  # two threads at once: one is enough
            self._node.incidents.add(
                DENIED, time.monotonic(), peer=peer, user=user, key=key, reason=words
            )
        if log.isEnabledFor(logging.DEBUG):
            who = peer or "a node that is opening"
            log.debug("%s %s on %s %s: %s", flow, kind, key or "no key", who, reason)


def log_incident(incident: Incident) -> None:
    """Log an incident; what was rejected is told by `node/rejections` already."""
    if incident.kind not in (REJECTED, LOGIN, LIMIT):
        who = f"{incident.peer} {incident.user}".strip() or "an unknown neighbour"
        words = " ".join(filter(None, (incident.key, incident.reason)))
        detail = f" ({incident.detail})" if incident.detail else ""
        log.warning("%s: %s %s%s", incident.kind, who, words, detail)

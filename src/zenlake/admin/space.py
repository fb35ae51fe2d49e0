"""The admin space of a running node: its queryable, its subscriber, and the threads behind them.

Queries and changes come while the node's lock is held, and are only noted then. Queries are
answered as those of all services are (`ext/query_service`): on a bounded pool, askers in turn, so
that a long reply keeps neither the node nor others from their work. One thread makes the changes in
the order in which they came, and a query is answered after the changes that came before it. All
threads end with the node.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from zenlake.admin.documents import Document, Facts, documents, json_document
from zenlake.admin.reload import try_change
from zenlake.api.options import encoding_parts
from zenlake.api.query import Query
from zenlake.engine.asker_lanes import AskerLanes
from zenlake.engine.services import running_plugins, service_metrics
from zenlake.ext.parameter_check import demand_understood
from zenlake.ext.query_service import QueryService
from zenlake.keys import intersects
from zenlake.node.entities import IncomingQuery, QuerySink, SampleSink
from zenlake.node.incidents import DENIED
from zenlake.node.inspection import view
from zenlake.node.node import Node
from zenlake.node.sample import Sample
from zenlake.routing.regions import LOCAL
from zenlake.values import SampleKind, ZenohId
from zenlake.wire.codec_zenoh import Put, Reply

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime

log = logging.getLogger("zenlake.admin")

#: How many queries are answered at once.
THREADS: Final = 4
#: Queries that wait, and changes; what comes while so many do is refused.
WAITING: Final = 256
#: Records in one reply: an operator who wants to see more asks for less at a time.
RECORDS: Final = 10_000
#: How long a reply waits for room in the outbox, in seconds, and the pause between two looks.
PATIENCE: Final = 2.0
PAUSE: Final = 0.002


def version() -> str:
    """What this program calls itself."""
    from zenlake import __version__

    return f"zenlake v{__version__}"


def start(runtime: Runtime) -> AdminSpace:
    """Give a node its admin space."""
    return AdminSpace(runtime)


class AdminSpace:
    """What a node shows of itself to others, and what they may change."""

    def __init__(self, runtime: Runtime) -> None:
        """Declare it on a node that has just started."""
        self._runtime = runtime
        self._permissions = runtime.settings.adminspace.permissions
        self._service = QueryService("admin", THREADS, most=WAITING)
        self._lane = AskerLanes("zenlake admin changes", 1, most_of_one=WAITING)
        #: Notified when a change is done.
        self._changed = threading.Condition()
        self._changes_taken = 0
        self._changes_done = 0
        with runtime.lock:
            node = runtime.node
            self._above = view.root(node)
            node.local.queryable(f"{self._above}/**", _Queries(self), False, no_namespace=True)
            if self._permissions.write:
                node.local.subscribe(f"{self._above}/config/**", _Changes(self), no_namespace=True)

    @property
    def refused(self) -> dict[str, int]:
        """What was refused, by reason."""
        return dict(self._service.refused)

    # ---------------------------------------------------------- with the node's lock held

    def received(self, incoming: IncomingQuery) -> None:
        """A query came for a record."""
        why = self._unwilling(incoming)
        if why:
            self.refuse(why)
            if why == "link":
                reason = "its questions are answered over links within this machine alone"
                self._denied(incoming.branch.query.source.zid, incoming.key, reason)
            incoming.replying.finish_query(incoming)
            return
        before = self._changes_taken
        query = Query(self._runtime, incoming)
        self._service.later_locked(query, lambda query: self._answer(query, before))

    def changed(self, sample: Sample) -> None:
        """A sample came that changes the configuration; who sent it is not known here."""
        if self._lane.submit("changes", lambda: self._make(sample)):
            self._changes_taken += 1
        else:
            self.refuse("busy")

    def takes_changes_of(self, zid: bytes) -> bool:
        """Whether a neighbour may change anything: the rule for links is that for questions."""
        if self._permissions.links != "loopback" or view.is_within(self._runtime.node, zid):
            return True
        self.refuse("link")
        reason = "changes of the configuration are taken over links within this machine alone"
        self._denied(zid, f"{self._above}/config/**", reason)
        return False

    def ended(self) -> None:
        """The node closes."""
        self._service.end()
        self._lane.end()

    def refuse(self, why: str) -> None:
        """Count a refusal."""
        self._service.refused[why] += 1

    def _denied(self, zid: bytes, key: str, reason: str) -> None:
        """Have operators know who was refused what."""
        node = self._runtime.node
        node.incidents.add(DENIED, node.now, peer=str(ZenohId(zid)), key=key, reason=reason)

    def _unwilling(self, query: IncomingQuery) -> str:
        if not self._permissions.read:
            return "read"
        if self._permissions.links == "loopback" and not came_from_within(
            self._runtime.node, query
        ):
            return "link"
        return ""

    # ------------------------------------------------------------------------ on the threads

    def _make(self, sample: Sample) -> None:
        try:
            self._change(sample)
        finally:
            with self._changed:
                self._changes_done += 1
                self._changed.notify_all()

    def _answer(self, query: Query, before: int) -> None:
        """Reply with the records that a query is about, after so many changes."""
        demand_understood(query.parameters, "@")
        with self._changed:
            while self._changes_done < before:
                if self._service.is_over(query):
                    return
                self._changed.wait(PATIENCE)
        for document in self._found(query):
            if self._service.is_over(query):
                return
            self._reply(query, document)

    def _found(self, query: Query) -> list[Document]:
        """The records that a query is about."""
        runtime, asked = self._runtime, query.incoming.key
        # Services have locks of their own, and are asked without the node's.
        counted = service_metrics(runtime) if intersects(asked, f"{self._above}/metrics") else []
        plugins = running_plugins(runtime)
        with runtime.locked() as node:
            uptime = node.now - runtime.started
            facts = Facts(version(), runtime.config, uptime, self.refused, counted, plugins)
            parameters = query.incoming.body.parameters
            found = list(_bounded(documents(node, asked, parameters, facts)))
        if len(found) > RECORDS:
            found.pop()
            self.refuse("records")
            log.warning(
                "admin space: '%s' has more than %d records: the rest is left out", asked, RECORDS
            )
        for service in list(runtime.services.values()):
            for key, content in service.documents(self._above, asked):
                found.append(json_document(key, content))
        return found

    def _reply(self, query: Query, document: Document) -> None:
        id, schema = encoding_parts(document.encoding)
        body = Reply(body=Put(encoding=id, schema=schema, payload=document.payload))
        deadline = time.monotonic() + PATIENCE
        while True:
            with self._runtime.locked() as node:
                if node.local.reply(query.incoming, document.key, body):
                    return
            if time.monotonic() >= deadline:
                self.refuse("congestion")
                return
            time.sleep(PAUSE)

    def _change(self, sample: Sample) -> None:
        path = str(sample.key_expr)[len(self._above) + len("/config/") :]
        text: str | None = None
        if sample.kind is SampleKind.PUT:
            try:
                text = sample.payload.to_bytes().decode()
            except UnicodeDecodeError:
                log.warning("refused: %s: the new value is no text", path)
                self.refuse("invalid")
                return
        why = try_change(self._runtime, path, text)
        if why:
            self.refuse(why)


def _bounded(replies: Iterable[Document]) -> Iterable[Document]:
    for number, document in enumerate(replies):
        yield document
        if number >= RECORDS:
            return


def came_from_within(node: Node, query: IncomingQuery) -> bool:
    """Whether a query came from this node itself, or over a link within this machine."""
    face = query.branch.query.source
    return face.role == LOCAL or view.is_within(node, face.zid)


class _Queries(QuerySink):
    def __init__(self, space: AdminSpace) -> None:
        self._space = space

    def push(self, query: IncomingQuery) -> None:
        self._space.received(query)

    def end(self) -> None:
        self._space.ended()


class _Changes(SampleSink):
    def __init__(self, space: AdminSpace) -> None:
        self._space = space

    def hears(self, zid: bytes) -> bool:
        return self._space.takes_changes_of(zid)

    def push(self, sample: Sample) -> None:
        self._space.changed(sample)

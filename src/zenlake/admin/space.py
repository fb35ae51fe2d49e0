"""The admin space of a running node: its queryable, its subscriber, and the thread behind them.

Queries and changes come while the node's lock is held, and are only noted then. The thread
answers them, so that a long reply does not keep the node from its work. It ends with the node.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from zenlake.admin.documents import Document, Facts, documents, json_document
from zenlake.admin.reload import try_change
from zenlake.api.options import encoding_parts
from zenlake.engine.services import running_plugins, service_metrics
from zenlake.errors import ZError
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

#: Queries and changes that wait; what comes while so many do is refused.
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
        self._waiting: SimpleQueue[IncomingQuery | Sample | None] = SimpleQueue()
        #: What was refused, by reason.
        self.refused: dict[str, int] = {}
        with runtime.lock:
            node = runtime.node
            self._above = view.root(node)
            node.local.queryable(f"{self._above}/**", _Queries(self), False, no_namespace=True)
            if self._permissions.write:
                node.local.subscribe(f"{self._above}/config/**", _Changes(self), no_namespace=True)
        self._thread = threading.Thread(target=self._work, name="zenlake admin", daemon=True)
        self._thread.start()

    # ---------------------------------------------------------- with the node's lock held

    def received(self, query: IncomingQuery) -> None:
        """A query came for a record."""
        why = self._unwilling(query)
        if why:
            self.refuse(why)
            if why == "link":
                reason = "its questions are answered over links within this machine alone"
                self._denied(query.branch.query.source.zid, query.key, reason)
            query.replying.finish_query(query)
        else:
            self._waiting.put(query)

    def changed(self, sample: Sample) -> None:
        """A sample came that changes the configuration."""
        if self._waiting.qsize() >= WAITING:
            self.refuse("busy")
        else:
            self._waiting.put(sample)

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
        self._waiting.put(None)

    def refuse(self, why: str) -> None:
        """Count a refusal."""
        self.refused[why] = self.refused.get(why, 0) + 1

    def _denied(self, zid: bytes, key: str, reason: str) -> None:
        """Have operators know who was refused what."""
        node = self._runtime.node
        node.incidents.add(DENIED, node.now, peer=str(ZenohId(zid)), key=key, reason=reason)

    def _unwilling(self, query: IncomingQuery) -> str:
        if not self._permissions.read:
            return "read"
        if self._waiting.qsize() >= WAITING:
            return "busy"
        if self._permissions.links == "loopback" and not came_from_within(
            self._runtime.node, query
        ):
            return "link"
        return ""

    # ------------------------------------------------------------------------- on the thread

    def _work(self) -> None:
        while True:
            item = self._waiting.get()
            if item is None:
                return
            try:
                if isinstance(item, IncomingQuery):
                    self._reply_all(item)
                else:
                    self._change(item)
            except ZError as error:
                if self._runtime.closed:
                    return
                log.warning("admin space: %s", error)
            except Exception:
                log.exception("admin space: %r", item)

    def _reply_all(self, query: IncomingQuery) -> None:
        runtime = self._runtime
        try:
            # Services have locks of their own, and are asked without the node's.
            counted = (
                service_metrics(runtime) if intersects(query.key, f"{self._above}/metrics") else []
            )
            plugins = running_plugins(runtime)
            with runtime.locked() as node:
                uptime = node.now - runtime.started
                refused = dict(self.refused)
                facts = Facts(version(), runtime.config, uptime, refused, counted, plugins)
                replies = list(_bounded(documents(node, query.key, query.body.parameters, facts)))
            if len(replies) > RECORDS:
                replies.pop()
                self.refuse("records")
                log.warning(
                    "admin space: '%s' has more than %d records: the rest is left out",
                    query.key,
                    RECORDS,
                )
            for service in list(runtime.services.values()):
                for key, content in service.documents(self._above, query.key):
                    replies.append(json_document(key, content))
            for document in replies:
                self._reply(query, document)
        finally:
            if not runtime.closed:
                with runtime.locked() as node:
                    node.local.finish_query(query)

    def _reply(self, query: IncomingQuery, document: Document) -> None:
        id, schema = encoding_parts(document.encoding)
        body = Reply(body=Put(encoding=id, schema=schema, payload=document.payload))
        deadline = time.monotonic() + PATIENCE
        while True:
            with self._runtime.locked() as node:
                if node.local.reply(query, document.key, body):
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

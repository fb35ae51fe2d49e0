"""The programs of a node: what they declared, what they asked, what they are told."""

from __future__ import annotations

from typing import Final

from zenlake.node.core import Core
from zenlake.node.entities import (
    ANY,
    REMOTE,
    SESSION_LOCAL,
    IncomingQuery,
    LocalQuerier,
    LocalQueryable,
    LocalSubscriber,
    Publication,
    PublicationRoutes,
    QuerySink,
    ReplySink,
    SampleSink,
)
from zenlake.node.programs.declared import ProgramEntities
from zenlake.node.programs.interests import (
    QUERYABLES,
    SUBSCRIBERS,
    ProgramInterest,
    ProgramInterests,
)
from zenlake.node.programs.liveliness import ProgramLiveliness
from zenlake.node.programs.matching import Matching
from zenlake.node.queries.gets import AUTO, LATEST, NONE, Get
from zenlake.routing.face import BOTH, Face, PendingQuery, QueryBranch, ReplyBody
from zenlake.routing.filters import SubscriberFilter
from zenlake.routing.queries import RECEIVE, ROUTE, SEND
from zenlake.routing.resources import QUERYABLE, SUBSCRIBER
from zenlake.wire.codec_network import Request, Responder, TimestampStack
from zenlake.wire.codec_zenoh import Query, QueryBody, SourceInfo

#: What configurations call where samples may go.
DESTINATIONS: Final[dict[str, int]] = {"session_local": SESSION_LOCAL, "remote": REMOTE, "any": ANY}


#: How many queries are remembered with the faces that they go to.
REMEMBERED_QUERIES: Final = 1 << 10


class Local(ProgramEntities):
    """Everything that this node's programs have going."""

    def __init__(self, node: Core) -> None:
        """Nothing yet."""
        super().__init__(node.zid, node.settings.policy.namespace)
        self.node: Core = node
        #: Finds where publications go; set by the node that puts both together.
        self.routes: PublicationRoutes = PublicationRoutes()
        self.gets: set[Get] = set()
        #: Who was asked about a key before, for one version of the tables.
        self._candidates_of: dict[tuple[str, int], list[Face]] = {}
        self._candidates_version: int = -1
        #: Keys that programs have declared: neighbours are told a number for each.
        self.keys: set[str] = set()
        self.interests: ProgramInterests = ProgramInterests(node, self)
        self.matching: Matching = Matching(node, self)
        self.liveliness: ProgramLiveliness = ProgramLiveliness(node, self, self.interests)

    # ------------------------------------------------------------------------------ subscribers

    def subscribe(
        self,
        key: str,
        sink: SampleSink,
        origin: int = ANY,
        no_namespace: bool = False,
        filter: SubscriberFilter | None = None,
    ) -> LocalSubscriber:
        """Declare a subscriber; `no_namespace`: of the node itself, in no namespace.

        `filter`: what its sink asks of samples anyway, and a router may ask before it sends them.
        """
        subscriber = LocalSubscriber(self.eid(), key, sink, origin)
        self.subscribers[subscriber.eid] = subscriber
        if no_namespace and self.namespace is not None:
            self._without_namespace.append(subscriber)
            self.node.tables.declare(self.node.face, SUBSCRIBER, subscriber.eid, key)
            return subscriber
        row = self._subscribers.get(key)
        if row is None:
            self._subscribers.insert(key, [subscriber])
        else:
            row.append(subscriber)
        self.node.tables.version += 1
        if origin != SESSION_LOCAL:
            name = self.outside(key)
            if self.namespace is not None:
                filter = None  # which may be about keys, and others call them otherwise
            self.node.tables.declare(self.node.face, SUBSCRIBER, subscriber.eid, name, 0, filter)
        self.matching.subscribers_changed(key)
        return subscriber

    def unsubscribe(self, subscriber: LocalSubscriber) -> None:
        """Undeclare a subscriber."""
        if self.subscribers.pop(subscriber.eid, None) is None:
            return
        row = self._subscribers.get(subscriber.key)
        if subscriber in self._without_namespace:
            self._without_namespace.remove(subscriber)
        elif row is not None:
            row.remove(subscriber)
            if not row:
                self._subscribers.remove(subscriber.key)
        self.node.tables.version += 1
        self.node.tables.undeclare(self.node.face, SUBSCRIBER, subscriber.eid)
        self.matching.subscribers_changed(subscriber.key)
        subscriber.sink.end()

    # ------------------------------------------------------------------------------------- keys

    def declare_key(self, key: str) -> None:
        """Tell neighbours a number for a key, so that it need not be spelt again."""
        key = self.outside(key)
        self.keys.add(key)
        for face in self.node.tables.faces.values():
            if face is not self.node.face:
                face.wire_key(key, True)
        self.node.tables.version += 1  # publications learn of the number

    def greet(self, face: Face, now: float) -> None:
        """Tell a new neighbour our short names for keys, and show it what we interest."""
        for key in self.keys:
            face.wire_key(key, True)
        self.interests.greet(face, now)

    def undeclare_key(self, key: str) -> None:
        """Tell new neighbours no number for it; those of now keep theirs, which may be in use."""
        self.keys.discard(self.outside(key))

    # ------------------------------------------------------------------------------- publishers

    def publisher(
        self, key: str, qos: int, reliable: bool, encoding: int, schema: bytes, destination: int
    ) -> Publication:
        """Declare a publisher."""
        publication = self.publication(
            self.eid(), key, qos, reliable, encoding, schema, destination
        )
        self.publications[publication.eid] = publication
        if publication.destination != SESSION_LOCAL:
            self.interests.add(publication.eid, ProgramInterest(SUBSCRIBERS, key, BOTH))
        publication.matching = self.matching.of_publisher(publication)
        return publication

    def publication(
        self,
        eid: int,
        key: str,
        qos: int,
        reliable: bool,
        encoding: int,
        schema: bytes,
        destination: int,
    ) -> Publication:
        """A publication on a key, as the program chose or as the configuration says."""
        overwrites = self.node.policy.publications
        if overwrites is not None:
            qos = overwrites.changed(key, qos)
            options = overwrites.options_of(key)
            if options is not None:
                if options.reliability is not None:
                    reliable = options.reliability == "reliable"
                if options.allowed_destination is not None:
                    destination = DESTINATIONS[options.allowed_destination]
        return Publication(
            self.node,
            self.routes,
            eid=eid,
            key=key,
            qos=qos,
            reliable=reliable,
            encoding=encoding,
            schema=schema,
            destination=destination,
        )

    def unpublish(self, publication: Publication) -> None:
        """Undeclare a publisher."""
        if self.publications.pop(publication.eid, None) is None:
            return
        self.interests.remove(publication.eid)
        for sink in publication.status_sinks:
            sink.end()

    # ------------------------------------------------------------------------------- queryables

    def queryable(
        self,
        key: str,
        sink: QuerySink,
        complete: bool,
        origin: int = ANY,
        no_namespace: bool = False,
    ) -> LocalQueryable:
        """Declare a queryable; `no_namespace`: of the node itself, in no namespace."""
        queryable = LocalQueryable(self.eid(), key, sink, complete, origin, no_namespace)
        self.queryables[queryable.eid] = queryable
        if origin != SESSION_LOCAL:
            info = 1 if complete else 0
            name = key if no_namespace else self.outside(key)
            self.node.tables.declare(self.node.face, QUERYABLE, queryable.eid, name, info)
        self.matching.queryables_changed(key)
        return queryable

    def unqueryable(self, queryable: LocalQueryable) -> None:
        """Undeclare a queryable."""
        if self.queryables.pop(queryable.eid, None) is None:
            return
        self.node.tables.undeclare(self.node.face, QUERYABLE, queryable.eid)
        self.matching.queryables_changed(queryable.key)
        queryable.sink.end()

    def deliver_query(self, branch: QueryBranch, key: str, body: Query, target: int) -> None:
        """A query for our queryables."""
        local = branch.query.source is self.node.face
        queryables = self.queryables_of(key, target, local)
        if not queryables:
            self.node.queries.close(branch)
            return
        branch.working = len(queryables)
        stack = branch.stack
        if stack is not None:
            stack = self.node.stamped(stack, RECEIVE)
        name = self.inside(key)
        for queryable in queryables:
            called = key if queryable.no_namespace or name is None else name
            queryable.sink.push(
                IncomingQuery(
                    self, branch, queryable.eid, called, body, stack, queryable.no_namespace
                )
            )

    def reply(
        self, incoming: IncomingQuery, key: str, body: ReplyBody, express: bool | None = None
    ) -> bool:
        """One of our queryables replies; False if there was no room for it.

        `express`: whether the reply leaves at once; as the query did, if None.
        """
        responder = Responder(zid=self.node.zid, eid=incoming.eid)
        branch = incoming.branch
        stack = incoming.stack
        if stack is not None:
            # A reply brings the times of its query.
            stack = self.node.stamped(stack, SEND)
            if branch.query.receiver is None:
                stack = self.node.stamped(stack, ROUTE)
        full_key = key if incoming.no_namespace else self.outside(key)
        return self.node.queries.reply(branch, full_key, body, responder, stack, express)

    def finish_query(self, incoming: IncomingQuery) -> None:
        """One of our queryables is done with a query."""
        if incoming.done:
            return
        incoming.done = True
        branch = incoming.branch
        branch.working -= 1
        if branch.working <= 0:
            self.node.queries.close(branch)

    # --------------------------------------------------------------------------------- asking

    def querier(self, key: str, target: int, destination: int) -> LocalQuerier:
        """Declare a querier."""
        querier = LocalQuerier(self.eid(), key, target, destination)
        self.queriers[querier.eid] = querier
        if destination != SESSION_LOCAL:
            self.interests.add(querier.eid, ProgramInterest(QUERYABLES, key, BOTH))
        querier.matching = self.matching.of_querier(querier)
        return querier

    def unquerier(self, querier: LocalQuerier) -> None:
        """Undeclare a querier."""
        if self.queriers.pop(querier.eid, None) is None:
            return
        self.interests.remove(querier.eid)
        for sink in querier.status_sinks:
            sink.end()

    def get(
        self,
        key: str,
        parameters: str,
        sink: ReplySink,
        *,
        target: int = 0,
        consolidation: int = AUTO,
        any_key: bool = False,
        timeout: float = 10.0,
        qos: int = 0x0D,
        body: QueryBody | None = None,
        attachment: bytes | None = None,
        source_info: SourceInfo | None = None,
        timestamp_stack: TimestampStack | None = None,
        destination: int = ANY,
        timed: bool = False,
    ) -> Get:
        """Send a query; `timed`: it has a time range, so that all replies are wanted."""
        node = self.node
        if consolidation == AUTO:
            consolidation = NONE if timed else LATEST
        get = Get(key, consolidation, any_key, sink, qos, node.now + timeout, self.namespace)
        full_key = self.outside(key)
        pending = PendingQuery(node.face, 0, qos, get)
        get.query = pending
        get.asking = self.gets
        request = Request(
            id=0,
            scope=0,
            suffix=full_key,
            qos=qos,
            target=target,
            timeout=max(1, int(timeout * 1000)),
            timestamp_stack=timestamp_stack,
            body=Query(
                consolidation=consolidation,
                parameters=parameters,
                source_info=source_info,
                body=body,
                attachment=attachment,
            ),
        )
        targets: list[Face] = []
        if destination != SESSION_LOCAL:
            targets = list(self._candidates(full_key, target))
        if destination != REMOTE and self.queryables_of(full_key, target, True):
            targets.append(node.face)
        self.gets.add(get)
        node.wake_by(get.deadline)
        node.queries.send(pending, full_key, request, targets, node.now)
        if get.over:
            self.gets.discard(get)
        return get

    def _candidates(self, key: str, target: int) -> list[Face]:
        """The faces and queryables to ask; computed anew when the tables have changed."""
        node = self.node
        if (
            self._candidates_version != node.tables.version
            or len(self._candidates_of) >= REMEMBERED_QUERIES
        ):
            self._candidates_version = node.tables.version
            self._candidates_of = {}
        name = (key, target)
        faces = self._candidates_of.get(name)
        if faces is None:
            faces = node.queries.candidates(node.face, key, target, node.zid)
            self._candidates_of[name] = faces
        return faces

    def cancel(self, get: Get) -> None:
        """Ask no more."""
        self.gets.discard(get)
        if get.query is not None:
            self.node.queries.cancel(get.query)
        if not get.over:
            get.over = True
            get.sink.end()

    # ------------------------------------------------------------------------ told by the tables

    def changed(self, kind: int, key: str, face: Face, added: bool) -> None:
        """An entity was declared or undeclared: matching and liveliness may have changed."""
        name = self.inside(key)
        if name is None:
            return
        if kind == SUBSCRIBER:
            self.matching.subscribers_changed(name)
        elif kind == QUERYABLE:
            self.matching.queryables_changed(name)
        else:
            self.liveliness.changed(key, name, face, added)

    # ---------------------------------------------------------------------------- time and end

    def expire(self, now: float) -> None:
        """End the queries whose time has run out."""
        over = [get for get in self.gets if get.over]
        for get in over:
            self.gets.discard(get)
        for get in [get for get in self.gets if get.deadline <= now]:
            self.gets.discard(get)
            if get.query is not None:
                self.node.queries.cancel(get.query)
            get.finish(True)
        self.liveliness.expire(now)

    def deadline(self) -> float:
        """When `expire` has something to do."""
        earliest = self.liveliness.deadline()
        for get in self.gets:
            if not get.over and get.deadline < earliest:
                earliest = get.deadline
        return earliest

    def end(self) -> None:
        """The node closes: everything ends."""
        for subscriber in list(self.subscribers.values()):
            self.unsubscribe(subscriber)
        for queryable in list(self.queryables.values()):
            self.unqueryable(queryable)
        for publication in list(self.publications.values()):
            self.unpublish(publication)
        for querier in list(self.queriers.values()):
            self.unquerier(querier)
        self.liveliness.end()
        for get in list(self.gets):
            self.cancel(get)

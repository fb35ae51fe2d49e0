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
from zenlake.node.programs.declared import Declared
from zenlake.node.programs.interests import (
    QUERYABLES,
    SUBSCRIBERS,
    ProgramInterest,
    ProgramInterests,
)
from zenlake.node.programs.liveliness import Liveliness
from zenlake.node.programs.matching import Matching
from zenlake.node.queries.gets import AUTO, LATEST, NONE, Get
from zenlake.routing.face import BOTH, Answer, Branch, Face, PendingQuery
from zenlake.routing.queries import RECEIVE, ROUTE, SEND
from zenlake.routing.resources import QUERYABLE, SUBSCRIBER
from zenlake.wire.codec_network import Request, Responder, TimestampStack
from zenlake.wire.codec_zenoh import Query, QueryBody, SourceInfo

#: What configurations call where samples may go.
DESTINATIONS: Final[dict[str, int]] = {"session_local": SESSION_LOCAL, "remote": REMOTE, "any": ANY}


#: How many questions are remembered with those who were asked.
QUESTIONS: Final = 1 << 10


class Local(Declared):
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
        self._asked_version: int = -1
        #: Keys that programs have declared: neighbours are told a number for each.
        self.keys: set[str] = set()
        #: Our queryables that still work on a branch.
        self._working: dict[Branch, int] = {}
        self.interests: ProgramInterests = ProgramInterests(node, self)
        self.matching: Matching = Matching(node, self)
        self.liveliness: Liveliness = Liveliness(node, self, self.interests)

    # ------------------------------------------------------------------------------ subscribers

    def subscribe(
        self, key: str, sink: SampleSink, origin: int = ANY, whole: bool = False
    ) -> LocalSubscriber:
        """Declare a subscriber; `whole`: of the node itself, in no namespace."""
        subscriber = LocalSubscriber(self.eid(), key, sink, origin)
        self.subscribers[subscriber.eid] = subscriber
        if whole and self.namespace is not None:
            self._wholes.append(subscriber)
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
            self.node.tables.declare(self.node.face, SUBSCRIBER, subscriber.eid, name)
        self.matching.subscribers_changed(key)
        return subscriber

    def unsubscribe(self, subscriber: LocalSubscriber) -> None:
        """Undeclare a subscriber."""
        if self.subscribers.pop(subscriber.eid, None) is None:
            return
        row = self._subscribers.get(subscriber.key)
        if subscriber in self._wholes:
            self._wholes.remove(subscriber)
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
        """A way to publish on a key, as the program chose or as the configuration says."""
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
            self.node, self.routes, eid, key, qos, reliable, encoding, schema, destination
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
        whole: bool = False,
    ) -> LocalQueryable:
        """Declare a queryable; `whole`: of the node itself, in no namespace."""
        queryable = LocalQueryable(self.eid(), key, sink, complete, origin, whole)
        self.queryables[queryable.eid] = queryable
        if origin != SESSION_LOCAL:
            info = 1 if complete else 0
            name = key if whole else self.outside(key)
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

    def ask(self, branch: Branch, key: str, body: Query, target: int) -> None:
        """A question for our queryables."""
        local = branch.question.source is self.node.face
        asked = self.asked(key, target, local)
        if not asked:
            self.node.queries.close(branch)
            return
        self._working[branch] = len(asked)
        stack = branch.stack
        if stack is not None:
            stack = self.node.stamped(stack, RECEIVE)
        name = self.inside(key)
        for queryable in asked:
            called = key if queryable.whole or name is None else name
            queryable.sink.push(
                IncomingQuery(self, branch, queryable.eid, called, body, stack, queryable.whole)
            )

    def answer(
        self, incoming: IncomingQuery, key: str, body: Answer, express: bool | None = None
    ) -> bool:
        """One of our queryables answers; False if there was no room for it.

        `express`: whether the reply leaves at once; as the query did, if None.
        """
        responder = Responder(zid=self.node.zid, eid=incoming.eid)
        branch = incoming.branch
        stack = incoming.stack
        if stack is not None:
            # An answer brings the times of its question.
            stack = self.node.stamped(stack, SEND)
            if branch.question.asker is None:
                stack = self.node.stamped(stack, ROUTE)
        whole = key if incoming.whole else self.outside(key)
        return self.node.queries.answer(branch, whole, body, responder, stack, express)

    def answered(self, incoming: IncomingQuery) -> None:
        """One of our queryables is done with a question."""
        if incoming.done:
            return
        incoming.done = True
        branch = incoming.branch
        left = self._working.get(branch, 1) - 1
        if left > 0:
            self._working[branch] = left
        else:
            self._working.pop(branch, None)
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
        """Ask a question; `timed`: it has a time range, so that all answers are wanted."""
        node = self.node
        if consolidation == AUTO:
            consolidation = NONE if timed else LATEST
        get = Get(key, consolidation, any_key, sink, qos, node.now + timeout, self.namespace)
        whole = self.outside(key)
        question = PendingQuery(node.face, 0, qos, get)
        get.question = question
        get.asking = self.gets
        request = Request(
            id=0,
            scope=0,
            suffix=whole,
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
            targets = list(self._candidates(whole, target))
        if destination != REMOTE and self.asked(whole, target, True):
            targets.append(node.face)
        self.gets.add(get)
        node.wake_by(get.deadline)
        node.queries.send(question, whole, request, targets, node.now)
        if get.over:
            self.gets.discard(get)
        return get

    def _candidates(self, key: str, target: int) -> list[Face]:
        """Whom to ask; found anew when the tables have changed."""
        node = self.node
        if self._asked_version != node.tables.version or len(self._candidates_of) >= QUESTIONS:
            self._asked_version = node.tables.version
            self._candidates_of = {}
        name = (key, target)
        found = self._candidates_of.get(name)
        if found is None:
            found = node.queries.candidates(node.face, key, target, node.zid)
            self._candidates_of[name] = found
        return found

    def cancel(self, get: Get) -> None:
        """Ask no more."""
        self.gets.discard(get)
        if get.question is not None:
            self.node.queries.cancel(get.question)
        if not get.over:
            get.over = True
            get.sink.end()

    # ------------------------------------------------------------------------ told by the tables

    def changed(self, kind: int, key: str, face: Face, added: bool) -> None:
        """Somebody declared or undeclared something."""
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
        """End the questions whose time has run out."""
        over = [get for get in self.gets if get.over]
        for get in over:
            self.gets.discard(get)
        for get in [get for get in self.gets if get.deadline <= now]:
            self.gets.discard(get)
            if get.question is not None:
                self.node.queries.cancel(get.question)
            get.finish(True)
        self.liveliness.expire(now)

    def deadline(self) -> float:
        """When `expire` has something to do."""
        found = self.liveliness.deadline()
        for get in self.gets:
            if not get.over and get.deadline < found:
                found = get.deadline
        return found

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

"""The programs of a node: what they declared, what they asked, what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenlake.keys.keyexpr import KeyExpr
from zenlake.keys.matching import includes, intersects
from zenlake.keys.tree import KeyTree
from zenlake.node.entities import (
    ANY,
    REMOTE,
    SESSION_LOCAL,
    AnswerSink,
    Incoming,
    LivelinessGet,
    LivelinessSubscriber,
    LocalQuerier,
    LocalQueryable,
    LocalSubscriber,
    Publication,
    QuestionSink,
    SampleSink,
    StatusSink,
    Token,
)
from zenlake.node.gets import AUTO, LATEST, NONE, Get
from zenlake.node.sample import Sample, sample_of
from zenlake.routing.face import Face, InterestOut
from zenlake.routing.policy.namespace import Namespace
from zenlake.routing.queries import RECEIVE, ROUTE, SEND, Answer, Branch, Question
from zenlake.routing.resources import QUERYABLE, SUBSCRIBER, TOKEN
from zenlake.wire.codec_network import Push, Request, Responder, TimestampStack
from zenlake.wire.codec_zenoh import Del, Err, Put, Query, QueryBody, SourceInfo

if TYPE_CHECKING:
    from zenlake.node.node import Node

CURRENT: Final = 1
FUTURE: Final = 2
BOTH: Final = 3


#: What configurations call where samples may go.
DESTINATIONS: Final[dict[str, int]] = {"session_local": SESSION_LOCAL, "remote": REMOTE, "any": ANY}


#: How many questions are remembered with those who were asked.
QUESTIONS: Final = 1 << 10


class Wish:
    """What one of our programs wants neighbours to tell."""

    __slots__ = ("key", "kinds", "mode")

    def __init__(self, kinds: int, key: str, mode: int) -> None:
        """`kinds`: bit 0 subscribers, 1 queryables, 2 tokens."""
        self.kinds: int = kinds
        self.key: str = key
        self.mode: int = mode


class Local:
    """Everything that this node's programs have going.

    In a namespace, programs call keys by what follows its prefix, and so does everything here;
    the tables and neighbours know whole keys. `outside` and `inside` translate.
    """

    def __init__(self, node: Node) -> None:
        """Nothing yet."""
        self.node: Node = node
        self.namespace: Namespace | None = node.settings.policy.namespace
        self.next_eid: int = 1
        self.subscribers: dict[int, LocalSubscriber] = {}
        self._subscribers: KeyTree[list[LocalSubscriber]] = KeyTree()
        #: Subscribers of the node itself, in no namespace; only if the programs are in one.
        self._wholes: list[LocalSubscriber] = []
        self.queryables: dict[int, LocalQueryable] = {}
        self.publications: dict[int, Publication] = {}
        self.queriers: dict[int, LocalQuerier] = {}
        self.tokens: dict[int, Token] = {}
        self.liveliness: dict[int, LivelinessSubscriber] = {}
        self.gets: set[Get] = set()
        #: Who was asked about a key before, for one version of the tables.
        self._candidates_of: dict[tuple[str, int], list[Face]] = {}
        self._asked_version: int = -1
        self.liveliness_gets: dict[int, LivelinessGet] = {}
        #: Standing interests, by the entity that has them.
        self.wishes: dict[int, Wish] = {}
        #: Keys that programs have declared: neighbours are told a number for each.
        self.keys: set[str] = set()
        #: Our queryables that still work on a branch.
        self._working: dict[Branch, int] = {}

    def eid(self) -> int:
        """A number for a new entity."""
        self.next_eid += 1
        return self.next_eid

    def outside(self, key: str) -> str:
        """What everybody else calls a key of our programs."""
        namespace = self.namespace
        return key if namespace is None else namespace.outside(key)

    def inside(self, key: str) -> str | None:
        """What our programs call a key; None if they have no word for it."""
        namespace = self.namespace
        return key if namespace is None else namespace.inside(key)

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
        self._publishers_changed(key)
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
        self._publishers_changed(subscriber.key)
        subscriber.sink.end()

    def subscribers_of(self, key: str, local: bool) -> list[LocalSubscriber]:
        """The subscribers that hear a sample, by whether it comes from this very node."""
        unwanted = REMOTE if local else SESSION_LOCAL
        found: list[LocalSubscriber] = []
        for entry in self._subscribers.intersecting(key):
            for subscriber in entry.value:
                if subscriber.origin != unwanted:
                    found.append(subscriber)
        return found

    def heard_by(self, key: str) -> list[LocalSubscriber]:
        """The subscribers that hear what others say under a whole key."""
        name = self.inside(key)
        found = [] if name is None else self.subscribers_of(name, False)
        for subscriber in self._wholes:
            if intersects(subscriber.key, key):
                found.append(subscriber)
        return found

    # ------------------------------------------------------------------------------------- keys

    def declare_key(self, key: str) -> None:
        """Tell neighbours a number for a key, so that it need not be spelt again."""
        key = self.outside(key)
        self.keys.add(key)
        for face in self.node.tables.faces.values():
            if face is not self.node.face:
                face.wire_key(key, True)
        self.node.tables.version += 1  # publications learn of the number

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
        publication.interested = True
        self.publications[publication.eid] = publication
        if publication.destination != SESSION_LOCAL:
            self._wish(publication.eid, Wish(1, key, BOTH))
        publication.matching = self.publisher_matches(publication)
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
        return Publication(self.node, eid, key, qos, reliable, encoding, schema, destination)

    def unpublish(self, publication: Publication) -> None:
        """Undeclare a publisher."""
        if self.publications.pop(publication.eid, None) is None:
            return
        self._unwish(publication.eid)
        for sink in publication.status_sinks:
            sink.end()

    def publisher_matches(self, publication: Publication) -> bool:
        """Whether anybody would hear it."""
        node = self.node
        if publication.destination != SESSION_LOCAL and node.matches(self.outside(publication.key)):
            return True
        if publication.destination != REMOTE:
            return bool(self.subscribers_of(publication.key, True))
        return False

    def _publishers_changed(self, key: str) -> None:
        for publication in list(self.publications.values()):
            if intersects(publication.key, key):
                matching = self.publisher_matches(publication)
                if matching != publication.matching:
                    publication.matching = matching
                    for sink in list(publication.status_sinks):
                        sink.push(matching)

    def watch(self, entity: Publication | LocalQuerier, sink: StatusSink) -> None:
        """Be told when the matching status changes; told at once if somebody matches already."""
        entity.status_sinks.append(sink)
        if entity.matching:
            sink.push(True)

    def unwatch(self, entity: Publication | LocalQuerier, sink: StatusSink) -> None:
        """Be told no more."""
        if sink in entity.status_sinks:
            entity.status_sinks.remove(sink)
            sink.end()

    # --------------------------------------------------------------------------------- wishes

    def _wish(self, eid: int, wish: Wish) -> list[tuple[Face, InterestOut]]:
        """Show interest to those who tell only when asked."""
        self.wishes[eid] = wish
        tables = self.node.tables
        asked: list[tuple[Face, InterestOut]] = []
        for face in list(tables.faces.values()):
            if tables.asks(face):
                key = self.outside(wish.key)
                out = tables.ask(face, wish.kinds, key, wish.mode, None, eid, self.node.now)
                asked.append((face, out))
        if asked:
            self.node.wake_by(self.node.now + tables.interest_timeout)
        return asked

    def _unwish(self, eid: int) -> None:
        if self.wishes.pop(eid, None) is None:
            return
        tables = self.node.tables
        for face in list(tables.faces.values()):
            for out in list(face.interests_out.values()):
                if out.owner is None and out.owner_id == eid:
                    tables.withdraw(face, out.id)

    def neighbour_added(self, face: Face, now: float) -> None:
        """Show a new neighbour all our interests, and tell it our short names for keys."""
        for key in self.keys:
            face.wire_key(key, True)
        tables = self.node.tables
        if tables.asks(face):
            for eid, wish in list(self.wishes.items()):
                if wish.mode != CURRENT:
                    # After a reconnection the tokens of before are news again only if they are
                    # new: the tables know which.
                    tables.ask(face, wish.kinds, self.outside(wish.key), BOTH, None, eid, now)

    # ------------------------------------------------------------------------------- queryables

    def queryable(
        self,
        key: str,
        sink: QuestionSink,
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
        self._queriers_changed(key)
        return queryable

    def unqueryable(self, queryable: LocalQueryable) -> None:
        """Undeclare a queryable."""
        if self.queryables.pop(queryable.eid, None) is None:
            return
        self.node.tables.undeclare(self.node.face, QUERYABLE, queryable.eid)
        self._queriers_changed(queryable.key)
        queryable.sink.end()

    def _asked(self, whole: str, target: int, local: bool) -> list[LocalQueryable]:
        """The queryables that are asked about a whole key."""
        unwanted = REMOTE if local else SESSION_LOCAL
        name = self.inside(whole)
        found: list[LocalQueryable] = []
        for queryable in self.queryables.values():
            key = whole if queryable.whole else name
            if key is None or queryable.origin == unwanted:
                continue
            if target == 2 and not (queryable.complete and includes(queryable.key, key)):
                continue
            if intersects(queryable.key, key):
                found.append(queryable)
        return found

    def ask(self, branch: Branch, key: str, body: Query, target: int) -> None:
        """A question for our queryables."""
        local = branch.question.source is self.node.face
        asked = self._asked(key, target, local)
        if not asked:
            self.node.questions.close(branch)
            return
        self._working[branch] = len(asked)
        stack = branch.stack
        if stack is not None:
            stack = self.node.stamped(stack, RECEIVE)
        name = self.inside(key)
        for queryable in asked:
            called = key if queryable.whole or name is None else name
            queryable.sink.push(
                Incoming(self.node, branch, queryable.eid, called, body, stack, queryable.whole)
            )

    def answer(self, incoming: Incoming, key: str, body: Answer) -> bool:
        """One of our queryables answers; False if there was no room for it."""
        responder = Responder(zid=self.node.zid, eid=incoming.eid)
        branch = incoming.branch
        stack = incoming.stack
        if stack is not None:
            # An answer brings the times of its question.
            stack = self.node.stamped(stack, SEND)
            if branch.question.asker is None:
                stack = self.node.stamped(stack, ROUTE)
        whole = key if incoming.whole else self.outside(key)
        return self.node.questions.answer(branch, whole, body, responder, stack)

    def answered(self, incoming: Incoming) -> None:
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
            self.node.questions.close(branch)

    # --------------------------------------------------------------------------------- asking

    def querier(self, key: str, target: int, destination: int) -> LocalQuerier:
        """Declare a querier."""
        querier = LocalQuerier(self.eid(), key, target, destination)
        self.queriers[querier.eid] = querier
        if destination != SESSION_LOCAL:
            self._wish(querier.eid, Wish(2, key, BOTH))
        querier.matching = self.querier_matches(querier)
        return querier

    def unquerier(self, querier: LocalQuerier) -> None:
        """Undeclare a querier."""
        if self.queriers.pop(querier.eid, None) is None:
            return
        self._unwish(querier.eid)
        for sink in querier.status_sinks:
            sink.end()

    def querier_matches(self, querier: LocalQuerier) -> bool:
        """Whether anybody would answer.

        A neighbour's queryable counts only if it covers the whole of what is asked.
        """
        tables = self.node.tables
        if querier.destination != SESSION_LOCAL:
            key = self.outside(querier.key)
            for entry in tables.tree.intersecting(key):
                resource = entry.value
                if not includes(resource.key, key):
                    continue
                for face, infos in resource.holders[QUERYABLE].items():
                    if face is self.node.face:
                        continue
                    if querier.target != 2 or any(info & 1 for info in infos.values()):
                        return True
        if querier.destination != REMOTE:
            return bool(self._asked(self.outside(querier.key), querier.target, True))
        return False

    def _queriers_changed(self, key: str) -> None:
        for querier in list(self.queriers.values()):
            if intersects(querier.key, key):
                matching = self.querier_matches(querier)
                if matching != querier.matching:
                    querier.matching = matching
                    for sink in list(querier.status_sinks):
                        sink.push(matching)

    def get(
        self,
        key: str,
        parameters: str,
        sink: AnswerSink,
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
        question = Question(node.face, 0, qos, get)
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
        if destination != REMOTE and self._asked(whole, target, True):
            targets.append(node.face)
        self.gets.add(get)
        node.wake_by(get.deadline)
        node.questions.send(question, whole, request, targets, node.now)
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
            found = node.questions.candidates(node.face, key, target, node.zid)
            self._candidates_of[name] = found
        return found

    def cancel(self, get: Get) -> None:
        """Ask no more."""
        self.gets.discard(get)
        if get.question is not None:
            self.node.questions.cancel(get.question)
        if not get.over:
            get.over = True
            get.sink.end()

    # ------------------------------------------------------------------------------ liveliness

    def token(self, key: str) -> Token:
        """Be alive under a key."""
        token = Token(self.eid(), key)
        self.tokens[token.eid] = token
        self.node.tables.declare(self.node.face, TOKEN, token.eid, self.outside(key))
        return token

    def untoken(self, token: Token) -> None:
        """Be alive no more."""
        if self.tokens.pop(token.eid, None) is not None:
            self.node.tables.undeclare(self.node.face, TOKEN, token.eid)

    def watch_liveliness(self, key: str, sink: SampleSink, history: bool) -> LivelinessSubscriber:
        """Be told who comes alive and who dies; with `history`, who is alive already."""
        subscriber = LivelinessSubscriber(self.eid(), key, sink)
        self.liveliness[subscriber.eid] = subscriber
        if history:
            for alive in self.alive(key):
                sink.push(token_sample(alive, True))
        self._wish(subscriber.eid, Wish(4, key, BOTH if history else FUTURE))
        return subscriber

    def unwatch_liveliness(self, subscriber: LivelinessSubscriber) -> None:
        """Be told no more."""
        if self.liveliness.pop(subscriber.eid, None) is not None:
            self._unwish(subscriber.eid)
            subscriber.sink.end()

    def alive(self, key: str) -> list[str]:
        """The tokens under a key that we know of."""
        found: list[str] = []
        for entry in self.node.tables.tree.intersecting(self.outside(key)):
            if entry.value.holders[TOKEN]:
                name = self.inside(entry.value.key)
                if name is not None:
                    found.append(name)
        return found

    def liveliness_get(self, key: str, sink: AnswerSink, timeout: float) -> LivelinessGet:
        """Ask who is alive now."""
        get = LivelinessGet(self.eid(), key, sink, self.node.now + timeout)
        for alive in self.alive(key):
            get.seen.add(alive)
            sink.push(alive, Put(), None, 5)
        self.liveliness_gets[get.eid] = get
        for face, out in self._wish(get.eid, Wish(4, key, CURRENT)):
            if not out.final:
                get.waiting.add((face.id, out.id))
        self.node.wake_by(get.deadline)
        if not get.waiting:
            self._liveliness_over(get)
        return get

    def cancel_liveliness(self, get: LivelinessGet) -> None:
        """Ask no more."""
        if get.eid in self.liveliness_gets:
            self._liveliness_over(get)

    def _liveliness_over(self, get: LivelinessGet) -> None:
        self.liveliness_gets.pop(get.eid, None)
        self.wishes.pop(get.eid, None)
        for face in self.node.tables.faces.values():
            for out in list(face.interests_out.values()):
                if out.owner is None and out.owner_id == get.eid:
                    del face.interests_out[out.id]
                    self.node.tables.unanswered.over(out)
        get.sink.end()

    # ------------------------------------------------------------------------ told by the tables

    def changed(self, kind: int, key: str, face: Face, added: bool) -> None:
        """Somebody declared or undeclared something."""
        name = self.inside(key)
        if name is None:
            return
        if kind == SUBSCRIBER:
            self._publishers_changed(name)
        elif kind == QUERYABLE:
            self._queriers_changed(name)
        elif self.liveliness:
            self._token_changed(key, name, face, added)

    def _token_changed(self, key: str, name: str, face: Face, added: bool) -> None:
        resource = self.node.tables.tree.get(key)
        others = 0
        if resource is not None:
            others = len(resource.holders[TOKEN]) - (1 if face in resource.holders[TOKEN] else 0)
        if others:
            return  # one of several under this key came or went: it is still alive
        for subscriber in list(self.liveliness.values()):
            if intersects(subscriber.key, name):
                subscriber.sink.push(token_sample(name, added))

    def token_present(self, interest: InterestOut, key: str) -> None:
        """A token is alive now, says an answer."""
        get = self.liveliness_gets.get(interest.owner_id)
        name = self.inside(key)
        if get is not None and name is not None and name not in get.seen:
            get.seen.add(name)
            get.sink.push(name, Put(), None, 5)

    def interest_final(self, interest: InterestOut) -> None:
        """An interest of ours has been answered."""
        get = self.liveliness_gets.get(interest.owner_id)
        if get is None:
            return
        if not self._still_waiting(get):
            self._liveliness_over(get)

    def _still_waiting(self, get: LivelinessGet) -> bool:
        faces = self.node.tables.faces
        for face_id, id in get.waiting:
            face = faces.get(face_id)
            if face is not None:
                out = face.interests_out.get(id)
                if out is not None and not out.final and out.deadline != float("inf"):
                    return True
        return False

    # ---------------------------------------------------------------------------- time and end

    def expire(self, now: float) -> None:
        """End the questions whose time has run out."""
        over = [get for get in self.gets if get.over]
        for get in over:
            self.gets.discard(get)
        for get in [get for get in self.gets if get.deadline <= now]:
            self.gets.discard(get)
            if get.question is not None:
                self.node.questions.cancel(get.question)
            get.finish(True)
        for liveliness in [g for g in self.liveliness_gets.values() if g.deadline <= now]:
            liveliness.sink.push(liveliness.key, Err(encoding=1, payload=b"Timeout"), None, 5)
            self._liveliness_over(liveliness)

    def deadline(self) -> float:
        """When `expire` has something to do."""
        found = float("inf")
        for get in self.gets:
            if not get.over and get.deadline < found:
                found = get.deadline
        for liveliness in self.liveliness_gets.values():
            if liveliness.deadline < found:
                found = liveliness.deadline
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
        for token in list(self.tokens.values()):
            self.untoken(token)
        for watcher in list(self.liveliness.values()):
            self.unwatch_liveliness(watcher)
        for liveliness in list(self.liveliness_gets.values()):
            self._liveliness_over(liveliness)
        for get in list(self.gets):
            self.cancel(get)


def token_sample(key: str, alive: bool) -> Sample:
    """The news that a token came alive or died."""
    body: Put | Del = Put() if alive else Del()
    return sample_of(KeyExpr.trusted(key), Push(scope=0, suffix=key, body=body), True)

"""What the programs of a node declare: subscribers, publishers, queryables, queriers, tokens."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.core import Core
from zenlake.node.sample import Sample, sample_of
from zenlake.node.traffic import Tally
from zenlake.routing.face import Face, QueryBranch, ReplyBody
from zenlake.routing.policy.messages import DELETE, PUT
from zenlake.routing.policy.namespace import Namespace
from zenlake.routing.queries import RECEIVE, ROUTE
from zenlake.transport.drops import DropLog
from zenlake.transport.outbox import Outbox
from zenlake.values.qos import QOS_BLOCK, QOS_BLOCK_FIRST, QOS_EXPRESS, QOS_PRIORITY
from zenlake.wire.codec_network import Push, Responder, TimestampStack
from zenlake.wire.codec_zenoh import Del, Err, Put, Query, Timestamp

SESSION_LOCAL: Final = 0
REMOTE: Final = 1
ANY: Final = 2

#: The version of publications that have no route yet.
NOWHERE: Final = Tally()


#: The kinds of messages that publications make, as the policy counts: a bit for each.
SAMPLES: Final = 1 << PUT | 1 << DELETE


def congestion(qos: int) -> int:
    """What happens when there is no room: 0 drop, 1 block, 2 block the first."""
    return 1 if qos & QOS_BLOCK else (2 if qos & QOS_BLOCK_FIRST else 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class SampleSink:
    """Where a subscriber's samples go."""

    def hears(self, zid: bytes) -> bool:
        """Whether samples of a neighbour are taken at all; asked when their route is found."""
        return True

    def push(self, sample: Sample) -> None:
        """One sample."""

    def commit(self) -> None:
        """The samples pushed so far may be handed over: one wake for many."""

    def end(self) -> None:
        """There will be no more."""

    def drop_log(self) -> DropLog | None:
        """What it could not take, by reason and key; None: nothing, or it does not say."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class QuerySink:
    """Where a queryable's queries go."""

    def push(self, query: IncomingQuery) -> None:
        """One query."""

    def end(self) -> None:
        """There will be no more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplySink:
    """Where the replies to a query go."""

    def keeps(self, key: str, many: int, size: int) -> bool:
        """Return whether the newest reply for a key is kept until the end, and passed on then.

        If not, the key has no reply.

        Args:
            key: The key that it is about.
            many: How many are kept with it.
            size: By how many bytes they become more.
        """
        return True

    def make_room(self, count: int) -> None:
        """So many replies come at once, which lie in memory already."""

    def stamp(self, stack: TimestampStack) -> None:
        """The times of the reply that is pushed next, if any were taken."""

    def push(self, key: str, body: Put | Del | Err, responder: Responder | None, qos: int) -> None:
        """One reply."""

    def value(self, sample: Sample, responder: Responder | None) -> None:
        """One reply that is an ordinary value."""
        stamp: Timestamp | None = None
        if sample.stamp_id:
            stamp = Timestamp(
                seconds=sample.stamp_seconds, fraction=sample.stamp_fraction, id=sample.stamp_id
            )
        body = Put(timestamp=stamp, encoding=sample.encoding_id, payload=sample.content())
        self.push(str(sample.key), body, responder, sample.qos_byte)

    def end(self) -> None:
        """There will be no more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class StatusSink:
    """Receives the matching status of a publisher or querier."""

    def push(self, matching: bool) -> None:
        """The status has changed."""

    def end(self) -> None:
        """There will be no more."""


class LocalSubscriber:
    """A subscriber of this node's programs."""

    __slots__ = ("eid", "key", "origin", "sink")

    def __init__(self, eid: int, key: str, sink: SampleSink, origin: int) -> None:
        """`origin`: whose samples it wants."""
        self.eid: int = eid
        self.key: str = key
        self.sink: SampleSink = sink
        self.origin: int = origin


class LocalQueryable:
    """A queryable of this node's programs."""

    __slots__ = ("complete", "eid", "key", "no_namespace", "origin", "sink")

    def __init__(
        self,
        eid: int,
        key: str,
        sink: QuerySink,
        complete: bool,
        origin: int,
        no_namespace: bool = False,
    ) -> None:
        """`complete`: it knows all that there is to know about its key expression.

        `no_namespace`: it is the node's own, in no namespace.
        """
        self.no_namespace: bool = no_namespace
        self.eid: int = eid
        self.key: str = key
        self.sink: QuerySink = sink
        self.complete: bool = complete
        self.origin: int = origin


class Token:
    """A liveliness token of this node's programs."""

    __slots__ = ("eid", "key")

    def __init__(self, eid: int, key: str) -> None:
        """Alive under `key`."""
        self.eid: int = eid
        self.key: str = key


class LivelinessSubscriber:
    """A subscriber to liveliness tokens."""

    __slots__ = ("eid", "key", "sink")

    def __init__(self, eid: int, key: str, sink: SampleSink) -> None:
        """Receives the tokens under `key` that appear and disappear."""
        self.eid: int = eid
        self.key: str = key
        self.sink: SampleSink = sink


class LivelinessQuery:
    """A query for the liveliness tokens that are alive now."""

    __slots__ = ("deadline", "eid", "key", "seen", "sink", "waiting")

    def __init__(self, eid: int, key: str, sink: ReplySink, deadline: float) -> None:
        """Answered by the neighbours that declare only on interest, and from our own tables."""
        self.eid: int = eid
        self.key: str = key
        self.sink: ReplySink = sink
        self.deadline: float = deadline
        self.seen: set[str] = set()
        #: The interests that are not answered, as (face, id).
        self.waiting: set[tuple[int, int]] = set()


class Remote:
    """One neighbour that a publication goes to, and how its key is written there."""

    __slots__ = ("face", "guarded", "key", "mine", "outbox", "put_head", "scope", "suffix")

    def __init__(self, face: Face, outbox: Outbox, key: str) -> None:
        """Written with what both sides know of the key."""
        self.face: Face = face
        self.outbox: Outbox = outbox
        self.key: str = key
        #: Whether the policy has a say in what it is sent.
        self.guarded: bool = face.egress is not None and face.egress.concerns(SAMPLES)
        scope, mine, suffix = face.wire_key(key, False)
        self.scope: int = scope
        self.mine: bool = mine
        self.suffix: str = suffix
        #: Everything of an ordinary put up to its payload.
        self.put_head: bytes = b""


class PublicationRoutes:
    """Finds where publications go, when the tables have changed."""

    def renew(self, publication: Publication) -> None:
        """Find out anew where a publication goes; called from any thread."""
        raise NotImplementedError


class Publication:
    """A key that is published on, with its route to subscribers.

    The route is a snapshot: it is renewed when the tables have changed, and read without a lock.
    """

    __slots__ = (
        "congestion", "destination", "dropped", "eid", "encoding", "express", "guarded",
        "impatient", "key", "key_expr", "locals", "matching", "node", "priority", "qos",
        "reliable", "remotes", "routes", "schema", "sent", "status_sinks", "tally", "version",
    )  # fmt: skip

    def __init__(
        self,
        node: Core,
        routes: PublicationRoutes,
        eid: int,
        key: str,
        qos: int,
        reliable: bool,
        encoding: int,
        schema: bytes,
        destination: int,
    ) -> None:
        """`qos`: the byte on the wire."""
        self.node: Core = node
        self.routes: PublicationRoutes = routes
        self.eid: int = eid
        self.key: str = key
        self.key_expr: KeyExpr = KeyExpr.trusted(key)
        self.qos: int = qos
        self.priority: int = qos & QOS_PRIORITY
        self.congestion: int = congestion(qos)
        #: Waits for no room, whatever its QoS says.
        self.impatient: bool = False
        self.express: bool = (qos & QOS_EXPRESS) != 0
        self.reliable: bool = reliable
        self.encoding: int = encoding
        self.schema: bytes = schema
        self.destination: int = destination
        self.version: int = -1
        self.remotes: list[Remote] = []
        #: Whether the policy has a say about one of them.
        self.guarded: bool = False
        self.locals: list[LocalSubscriber] = []
        self.matching: bool = False
        self.status_sinks: list[StatusSink] = []
        self.sent: int = 0
        self.dropped: int = 0
        #: Where it is counted with others on the same key; found with the route.
        self.tally: Tally = NOWHERE

    def put(self, payload: bytes) -> bool:
        """Publish a plain value; False if a neighbour's queue had no room for it."""
        node = self.node
        if self.version != node.tables.version:
            self.routes.renew(self)
        if self.guarded:
            body = Put(encoding=self.encoding, schema=self.schema, payload=payload)
            return self.publish(self.message(body, None))
        taken = True
        for remote in self.remotes:
            if not remote.outbox.offer(
                remote.put_head, payload, self.priority, self.reliable, self.congestion,
                self.express,
            ):  # fmt: skip
                taken = False
        self.sent += 1
        tally = self.tally
        tally.samples += 1
        tally.size += len(payload)
        if not taken:
            self.dropped += 1
        if self.locals:
            body = Put(encoding=self.encoding, schema=self.schema, payload=payload)
            self.deliver(self.message(body, None))
        return taken

    def message(self, body: Put | Del, stack: TimestampStack | None) -> Push:
        """The message that publishes `body`, with the QoS of the publication."""
        return Push(scope=0, suffix=self.key, qos=self.qos, timestamp_stack=stack, body=body)

    def publish(self, push: Push) -> bool:
        """Publish a message of `message`; False if a neighbour's queue had no room for it.

        A thread waits for room inside the outbox. A task does so outside of it, between the same
        steps (`engine.tasks.publish`): `begin`, for each remote `address`, and `finish`.
        """
        stack = self.begin(push)
        taken = True
        for remote in self.remotes:
            if self.address(remote, push) and not remote.outbox.offer_message(
                push,
                push.qos & QOS_PRIORITY,
                self.reliable,
                self.patience(push),
                push.qos & QOS_EXPRESS != 0,
            ):
                taken = False
        self.finish(push, stack, taken)
        return taken

    def begin(self, push: Push) -> TimestampStack | None:
        """First step: know who listens now; gives the stack of times as the program began it."""
        node = self.node
        if self.version != node.tables.version:
            self.routes.renew(self)
        stack = push.timestamp_stack
        if stack is not None and self.remotes:
            push.timestamp_stack = node.stamped(stack, ROUTE)
        return stack

    def address(self, remote: Remote, push: Push) -> bool:
        """For each neighbour: its words for the key; False if the policy lets it not go there.

        A policy may also change the QoS, for this neighbour.
        """
        push.scope = remote.scope
        push.suffix = remote.suffix
        push.sender_mapping = remote.mine
        push.qos = self.qos
        if not remote.guarded:
            return True
        return remote.face.may_have(push, remote.key, self.reliable, self.node.moment())

    def patience(self, push: Push) -> int:
        """What becomes of an addressed message that finds no room: its congestion control."""
        return 0 if self.impatient else congestion(push.qos)

    def finish(self, push: Push, stack: TimestampStack | None, taken: bool) -> None:
        """Last step: count it, and deliver it to the subscribers of this very node."""
        self.sent += 1
        body = push.body
        self.tally.add(1, len(body.payload) if isinstance(body, Put) else 0)
        if not taken:
            self.dropped += 1
        if self.locals:
            push.qos = self.qos
            push.timestamp_stack = stack
            self.deliver(push)

    def deliver(self, push: Push) -> None:
        """Hand it to the subscribers of this very node."""
        stack = push.timestamp_stack
        if stack is not None:
            push.timestamp_stack = self.node.stamped(stack, RECEIVE)
        sample = sample_of(self.key_expr, push, self.reliable)
        for subscriber in self.locals:
            subscriber.sink.push(sample)
            subscriber.sink.commit()


class LocalQuerier:
    """A querier of this node's programs."""

    __slots__ = ("destination", "eid", "key", "matching", "status_sinks", "target")

    def __init__(self, eid: int, key: str, target: int, destination: int) -> None:
        """About `key`."""
        self.eid: int = eid
        self.key: str = key
        self.target: int = target
        self.destination: int = destination
        self.matching: bool = False
        self.status_sinks: list[StatusSink] = []


class ReplyHead:
    """What is the same in all ordinary replies to one query, before and behind the key."""

    __slots__ = ("before", "behind", "hold", "outbox", "priority")

    def __init__(
        self, outbox: Outbox | None, before: bytes, behind: bytes, priority: int, hold: bool
    ) -> None:
        """`outbox`: of the node that asked; None: replies are sent as Response messages."""
        self.outbox: Outbox | None = outbox
        self.before: bytes = before
        self.behind: bytes = behind
        self.priority: int = priority
        self.hold: bool = hold


class Replying:
    """What a queryable needs of its node: replies to a query go through it."""

    def __init__(self, zid: bytes, namespace: Namespace | None) -> None:
        """`namespace`: the prefix that the node's programs do not spell."""
        self.zid: bytes = zid
        self.namespace: Namespace | None = namespace

    def reply(
        self, incoming: IncomingQuery, key: str, body: ReplyBody, express: bool | None = None
    ) -> bool:
        """One of our queryables replies; False if there was no room for it.

        `express`: whether the reply leaves at once; as the query did, if None.
        """
        raise NotImplementedError

    def finish_query(self, incoming: IncomingQuery) -> None:
        """One of our queryables is done with a query."""
        raise NotImplementedError


class IncomingQuery:
    """A query that one of our queryables is to reply to."""

    __slots__ = (
        "body",
        "branch",
        "done",
        "eid",
        "head",
        "key",
        "may_wait",
        "no_namespace",
        "replying",
        "stack",
    )

    def __init__(
        self,
        replying: Replying,
        branch: QueryBranch,
        eid: int,
        key: str,
        body: Query,
        stack: TimestampStack | None = None,
        no_namespace: bool = False,
    ) -> None:
        """Asked through `branch`; `stack`: the times that were taken on its route.

        `no_namespace`: its key and those of its replies are in no namespace.
        """
        self.no_namespace: bool = no_namespace
        self.replying: Replying = replying
        self.branch: QueryBranch = branch
        self.eid: int = eid
        self.key: str = key
        self.body: Query = body
        self.stack: TimestampStack | None = stack
        self.done: bool = False
        #: Whether a reply may wait until the querier reads; else it is queued beyond the bound.
        self.may_wait: bool = True
        #: How ordinary replies begin, once there was one.
        self.head: ReplyHead | None = None

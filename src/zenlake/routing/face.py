"""A neighbour as the node's tables see it: what it has, what it was told, what it wants.

With what a neighbour has pending: interests of both sides, and the queries that were sent to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.errors import LimitError
from zenlake.keys.matching import includes
from zenlake.keys.tree import KeyTree
from zenlake.routing.deadlines import NEVER, Timed
from zenlake.routing.filters import SubscriberFilter
from zenlake.routing.keyids import KeyIds, key_cost, literal_prefix
from zenlake.routing.limits import DEFAULTS, ResourceLimits
from zenlake.routing.policy.gate import PolicyGate
from zenlake.routing.policy.messages import PolicyVerdict
from zenlake.routing.regions import LOCAL, PEER, ROUTER, is_brokered, is_south, kind_of
from zenlake.transport.budget import NO_LIMIT, MemoryAccount, MemoryPool
from zenlake.transport.multilink import Purpose
from zenlake.transport.outbox import Outbox
from zenlake.values.qos import QOS_CONTROL, QOS_PRIORITY
from zenlake.wire.codec_declare import DeclareKeyExpr
from zenlake.wire.codec_network import (
    Declare,
    Push,
    Request,
    Responder,
    Response,
    TimestampStack,
)
from zenlake.wire.codec_zenoh import Err, Reply
from zenlake.wire.message import Message

CONTROL_QOS: Final = QOS_CONTROL
#: The lane of what nodes tell each other.
CONTROL: Final = QOS_CONTROL & QOS_PRIORITY

#: What an interest is about: nothing any more, what there is, what comes; or both of these.
FINAL: Final = 0
CURRENT: Final = 1
FUTURE: Final = 2
BOTH: Final = 3

ReplyBody = Reply | Err


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplyReceiver:
    """A program of this node that sent a query."""

    def stamp(self, stack: TimestampStack) -> None:
        """The times of the reply that comes next."""

    def reply(self, key: str, body: ReplyBody, responder: Responder | None) -> None:
        """One reply."""

    def final(self) -> None:
        """There will be no more."""


class PendingQuery(Timed):
    """A query that is not finished."""

    __slots__ = ("branches", "id", "qos", "receiver", "root", "source")

    def __init__(
        self, source: Face, id: int, qos: int, receiver: ReplyReceiver | None, root: bytes = b""
    ) -> None:
        """Asked by a face under its own id, or by one of our programs.

        `root`: the router where it came from, if we are one.
        """
        super().__init__(NEVER)
        self.root: bytes = root
        self.source: Face = source
        self.id: int = id
        self.qos: int = qos
        self.receiver: ReplyReceiver | None = receiver
        self.branches: set[QueryBranch] = set()


class PassedReplies:
    """What is the same in all replies of a responder that are passed on to who asked."""

    __slots__ = ("before", "behind", "hold", "outbox", "priority", "responder")

    def __init__(
        self,
        outbox: Outbox,
        responder: Responder | None,
        before: bytes,
        behind: bytes,
        priority: int,
        hold: bool,
    ) -> None:
        """`before`, `behind`: all of a Response around its key, without the body."""
        self.outbox: Outbox = outbox
        self.responder: Responder | None = responder
        self.before: bytes = before
        self.behind: bytes = behind
        self.priority: int = priority
        self.hold: bool = hold


class QueryBranch:
    """A pending query towards one face that it was sent to."""

    __slots__ = ("face", "id", "passed", "query", "stack", "working")

    def __init__(self, query: PendingQuery, face: Face, id: int) -> None:
        """`id`: the query's number towards that face."""
        self.query: PendingQuery = query
        self.face: Face = face
        self.id: int = id
        #: The times that were taken on the route to our own programs.
        self.stack: TimestampStack | None = None
        #: How many of our own queryables are still to reply to it.
        self.working: int = 0
        #: How its replies are passed on, since the first ordinary one.
        self.passed: PassedReplies | None = None


class InterestIn:
    """What a neighbour wants to be told."""

    __slots__ = (
        "aggregate",
        "announced",
        "announced_info",
        "future",
        "id",
        "key",
        "kinds",
        "shown",
        "waiting",
    )

    def __init__(self, id: int, kinds: int, key: str, future: bool, aggregate: bool) -> None:
        """`kinds`: bit 0 subscribers, 1 queryables, 2 tokens; `key` empty: all keys."""
        self.id: int = id
        self.kinds: int = kinds
        self.key: str = key
        self.future: bool = future
        self.aggregate: bool = aggregate
        #: For an aggregate interest, by kind: the id announced for all that match, or 0.
        self.announced: list[int] = [0, 0, 0]
        #: For an aggregate interest in queryables: whether they were announced as complete.
        self.announced_info: int = 0
        #: Our own interests further north that must be answered first.
        self.waiting: set[tuple[int, int]] = set()
        #: Those that were shown to gateways on its behalf: (face, id there).
        self.shown: list[tuple[Face, int]] = []


class Aggregate:
    """What meets the key of some aggregate interests of one neighbour, counted.

    So a declaration costs a look at its own key, and none at all others that meet the interest.
    """

    __slots__ = ("announced", "behind", "complete", "count", "face", "interests", "key")

    def __init__(self, face: Face, key: str) -> None:
        """Nothing was counted yet."""
        self.face: Face = face
        self.key: str = key
        self.interests: dict[int, InterestIn] = {}
        #: The keys that meet it and that the neighbour should know of; and the keys with complete
        #: queryables that include it.
        self.count: int = 0
        self.complete: int = 0
        #: What was announced to the neighbour: 1 that there are any, 2 that some are complete.
        self.announced: int = 0
        #: Whether an interest in the future alone was not given what there was before.
        self.behind: bool = False

    def state(self) -> int:
        """What should be announced to the neighbour."""
        if not self.count:
            return 0
        return 3 if self.complete else 1


class InterestOut(Timed):
    """What we want a neighbour to tell us."""

    __slots__ = ("face", "final", "future", "id", "key", "kinds", "owner", "owner_id")

    def __init__(
        self,
        face: Face,
        id: int,
        kinds: int,
        key: str,
        future: bool,
        owner: Face | None,
        owner_id: int,
        deadline: float,
    ) -> None:
        """Shown to `face` for `owner` (None: one of our own programs) and its own interest."""
        super().__init__(deadline)
        self.face: Face = face
        self.id: int = id
        self.kinds: int = kinds
        self.key: str = key
        self.future: bool = future
        self.owner: Face | None = owner
        self.owner_id: int = owner_id
        #: Whether all that there is now has been told.
        self.final: bool = False


class Face:
    """One neighbour, or the node's own programs."""

    def __init__(
        self,
        id: int,
        zid: bytes,
        role: int,
        outbox: Outbox | None,
        limits: ResourceLimits = DEFAULTS,
        pool: MemoryPool | None = None,
    ) -> None:
        """`role`: router, peer, client or local; only the local face has no outbox.

        `limits`: what it may have; `pool`: what all faces have together.
        """
        self.id: int = id
        self.zid: bytes = zid
        self.role: int = role
        #: Where it lies, and who live there; -1: it has no place yet (see `lie`).
        self.region: int = -1
        self.kind: int = role
        #: Whether this node serves it, and whether it serves this node.
        self.south: bool = False
        self.serves: bool = False
        #: Whether it hears others of its region through this node, or is one of its mesh.
        self.brokered: bool = False
        self.meshed: bool = False
        self.outbox: Outbox | None = outbox
        #: What each link of its session is for, if there are several.
        self.outboxes: list[tuple[Purpose, Outbox]] = []
        #: What the policy says about what it may be sent; None: nothing.
        self.egress: PolicyGate | None = None
        self.limits: ResourceLimits = limits
        #: How often as much as a client it may have.
        self.times: int = limits.routers if role == ROUTER else 1
        #: What its declarations, interests and numbers for keys cost.
        self.account: MemoryAccount = MemoryAccount(
            NO_LIMIT if role == LOCAL else limits.memory * self.times, pool
        )
        self.keys: KeyIds = KeyIds(self.account)
        #: By kind: what it declared (its id → key).
        self.declared: list[dict[int, str]] = [{}, {}, {}]
        #: The filters of its subscribers, by id; and what it was told of ours (key → filter).
        self.filters: dict[int, SubscriberFilter] = {}
        self.announced_filters: dict[str, str] = {}
        #: How many entities it has declared, how many queries it has open, and to how many
        #: queryables these were sent.
        self.entities: int = 0
        self.asked: dict[int, PendingQuery] = {}
        self.questions: int = 0
        #: What its queries say of who asks (`keys/asker`), since the first that has to.
        self.asker: str = ""
        #: By kind: what it was told (key → our id, and the information told).
        self.announced: list[dict[str, int]] = [{}, {}, {}]
        self.announced_info: dict[str, int] = {}
        self.interests_in: dict[int, InterestIn] = {}
        #: By kind: its future interests in keys, aggregate ones left out, in a tree that is made
        #: with the first of them; and how many it has in everything.
        self.wants: list[KeyTree[dict[int, InterestIn]] | None] = [None, None, None]
        self.wants_all: list[int] = [0, 0, 0]
        #: Whether it allows ids for keys in what we tell it.
        self.wants_keys: bool = False
        self.interests_out: dict[int, InterestOut] = {}
        self.next_id: int = 1
        self.next_interest: int = 1
        self.next_request: int = 1
        #: Requests that we sent to it and that are not final (our id → the branch).
        self.requests: dict[int, QueryBranch] = {}
        #: Whether it has told all that it had at the start (peers only).
        self.settled: bool = role != PEER
        self.closed: bool = False
        #: Whether this node carries its words to others: of several gateways of a peer only one
        #: does. And those gateways, as far as it has told.
        self.carried: bool = True
        self.gateways: frozenset[bytes] = frozenset()
        #: The nodes that a peer is connected to, as far as it has announced them; kept by a broker.
        self.links: frozenset[bytes] = frozenset()
        #: What it said that made no sense, and was ignored; and where that is reported.
        self.ignored: int = 0
        self.on_illegal_key: Callable[[str], None] | None = None
        #: Where it is reported that something was refused because it has too much already.
        self.on_limit: Callable[[str], None] | None = None

    def part(self) -> None:
        """Its session is over: report nothing any more, to whom refers to this."""
        self.on_illegal_key = None
        self.on_limit = None
        if self.egress is not None:
            self.egress.stopped = None

    def illegal_key(self, flaw: str) -> None:
        """Ignore something that it said of a key; `flaw` says what is wrong with the key."""
        self.ignored += 1
        report = self.on_illegal_key
        if report is not None:
            report(flaw)

    def refused(self, limit: str) -> None:
        """Ignore something of it because of a limit, which is named."""
        self.ignored += 1
        self.held_back(f"refused: {limit}")

    def held_back(self, what: str) -> None:
        """Name it for something that it is refused, or must wait for."""
        report = self.on_limit
        if report is not None:
            report(what)

    def lie(self, mode: int, region: int, serves: bool) -> None:
        """Have a place: in a region of a node of `mode`; `serves`: it has that node in its own."""
        self.region = region
        self.kind = kind_of(mode, region)
        self.south = is_south(region)
        self.serves = serves
        self.brokered = is_brokered(region)

    def outbox_for(self, priority: int, reliable: bool) -> Outbox | None:
        """Where a message to it is put: of several links, the one that is for it."""
        best = self.outbox
        fittest = -2
        for purpose, outbox in self.outboxes:
            fitness = purpose.fitness(priority, reliable)
            if fitness > fittest and not outbox.closed:
                best = outbox
                fittest = fitness
        return best

    def send(self, message: Message) -> None:
        """Say something of the node's own: declarations, interests, link states."""
        outbox = self.outbox_for(CONTROL, True)
        if outbox is not None and not self.closed:
            outbox.send(message, CONTROL, True, force=True)

    def may_learn(self, kind: int, key: str) -> bool:
        """Whether it may be sent a declaration or an interest (`kind` as the policy counts)."""
        gate = self.egress
        return gate is None or gate.lets(kind, key)

    def may_have(
        self, message: Push | Request | Response, key: str, reliable: bool, now: float
    ) -> bool:
        """Whether it may be sent a message under a key; if so, with the QoS that it has then."""
        gate = self.egress
        if gate is None:
            return True
        if gate.judge(message, key, now) is not PolicyVerdict.PASS:
            return False
        message.qos = gate.qos(message, key, reliable)
        return True

    def charge(self, key: str) -> bool:
        """Count a key that it wants kept; False if it has had too many."""
        return self.account.charge(key_cost(key))

    def refund(self, key: str) -> None:
        """A key is no longer kept."""
        self.account.refund(key_cost(key))

    def take_on(self, key: str) -> None:
        """Count an entity that it wants kept; raises `LimitError` if that is one too many."""
        most = self.limits.declarations * self.times
        if self.entities >= most:
            raise LimitError(f"it declared more than {most} entities (limits/session/declarations)")
        if not self.charge(key):
            raise LimitError(
                f"its declarations take more than their share of memory: {self.account.used} bytes "
                "(limits/session/memory, limits/node/memory)"
            )
        self.entities += 1

    def let_go(self, key: str) -> None:
        """An entity is no longer kept."""
        self.entities -= 1
        self.refund(key)

    def fresh_id(self) -> int:
        """An id for an entity that is announced to it."""
        id = self.next_id
        self.next_id = id + 1
        return id

    def wire_key(self, key: str, may_declare: bool) -> tuple[int, bool, str]:
        """How to write a key to it: (scope, in my mapping, suffix); may declare a prefix."""
        scope, mine, suffix = self.keys.shortest(key)
        if not may_declare:
            return scope, mine, suffix
        prefix = literal_prefix(key)
        if not prefix or (scope and len(suffix) <= len(key) - len(prefix)):
            return scope, mine, suffix
        id = self.keys.invent(prefix)
        if not id:
            return scope, mine, suffix
        self.send(Declare(qos=CONTROL_QOS, body=DeclareKeyExpr(id=id, scope=0, suffix=prefix)))
        return id, True, key[len(prefix) :]

    def want(self, kind: int, interest: InterestIn) -> None:
        """It has shown a future interest of its own (not an aggregate) in a kind of entity."""
        if not interest.key:
            self.wants_all[kind] += 1
            return
        tree = self.wants[kind]
        if tree is None:
            tree = KeyTree()
            self.wants[kind] = tree
        row = tree.get(interest.key)
        if row is None:
            tree.insert(interest.key, {interest.id: interest})
        else:
            row[interest.id] = interest

    def want_no_more(self, kind: int, interest: InterestIn) -> None:
        """It has withdrawn a future interest of its own (not an aggregate)."""
        if not interest.key:
            self.wants_all[kind] -= 1
            return
        tree = self.wants[kind]
        row = None if tree is None else tree.get(interest.key)
        if tree is None or row is None or row.pop(interest.id, None) is None:
            return
        if not row:
            tree.remove(interest.key)

    def has_interest(self, kind: int, key: str) -> bool:
        """Whether a future interest of its own (not an aggregate) covers this key."""
        if self.wants_all[kind]:
            return True
        tree = self.wants[kind]
        return tree is not None and bool(tree.intersecting(key))

    def knows_all(self, kind: int, key: str) -> bool:
        """Whether a finished interest of ours covers the key: what it did not tell is not there."""
        flag = 1 << kind
        for interest in self.interests_out.values():
            if not interest.final or not interest.kinds & flag:
                continue
            if not interest.key or includes(interest.key, key):
                return True
        return False

"""A node of one role between honest neighbours, and strangers of another role that say anything.

Everything is in memory: nodes are state machines, the links are lists of bytes, the clock is a
number. What is looked at while a stranger lives, and when it is gone:

* nothing comes out of the node but what it promises to raise;
* an honest sample and an honest question arrive, all the time;
* what neighbours may have together is not passed (`limits`);
* questions of the node's own programs come to an end, once;
* nothing is left behind: tables, queries, interests and memory are what they were before.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tools import fuzz
from tools.strangers.wires import Stranger, Wire
from tools.strangers.words import Vocabulary, answers
from zenlake.clock.backoff import Backoff
from zenlake.config import Config
from zenlake.node.entities import IncomingQuery, QuerySink, SampleSink
from zenlake.node.node import Node
from zenlake.node.programs.matching import MatchingChanged
from zenlake.node.sample import Sample
from zenlake.node.sessions.connect import Attempt
from zenlake.node.settings import MODES, NodeSettings
from zenlake.routing.limits import ResourceLimits
from zenlake.routing.policy.policy import Policy
from zenlake.testing.recorders import ReplyRecorder
from zenlake.transport.handshake import Offer, Terms
from zenlake.transport.turn import Turn
from zenlake.wire import Close, Declare, DeclareToken, Push, Put, Query, Reply, Request, write

ROLES = ("router", "peer", "client")
#: How many frames a stranger says before it leaves, and how many messages are in one.
LIFE = 400
TOGETHER = 24
#: What neighbours may have: little, so that it is passed.
LIMITS = ResourceLimits(
    declarations=400, interests=200, memory=600_000, filters=4, queries=40, questions=120,
    waiting=1 << 20, fragments=1 << 17, all_memory=1 << 20, all_waiting=2 << 20,
    all_fragments=1 << 18, links=64, turn_messages=50,
)  # fmt: skip
#: Calls of `tick` after which a node should have come to rest.
RESTLESS = 20_000
RULES = """{
  access_control: {
    enabled: true, default_permission: "allow",
    rules: [{id: "r", permission: "deny", flows: ["ingress", "egress"], key_exprs: ["c/1", "b/**"],
             messages: ["put", "query", "reply", "declare_subscriber", "declare_queryable",
                        "liveliness_token", "liveliness_query"]}],
    subjects: [{id: "all"}], policies: [{rules: ["r"], subjects: ["all"]}],
  },
  low_pass_filter: [{id: "l", flows: ["ingress"], key_exprs: ["a/**"], size_limit: 100,
                     messages: ["put"]}],
  downsampling: [{id: "d", flows: ["egress"], messages: ["put"],
                  rules: [{key_expr: "c/*", freq: 10.0}]}],
}"""


class Heard(SampleSink):
    """The last sample of a subscriber."""

    def __init__(self) -> None:
        """None yet."""
        self.words: set[bytes] = set()

    def push(self, sample: Sample) -> None:
        """Keep it."""
        self.words.add(bytes(sample.payload))


class Answering(QuerySink):
    """A queryable that answers at once, late, or never."""

    def __init__(self, node: Node, key: str, patience: int) -> None:
        """`patience`: how many questions wait for their answer; -1: it never answers."""
        self.node = node
        self.key = key
        self.patience = patience
        self.waiting: list[IncomingQuery] = []

    def push(self, query: IncomingQuery) -> None:
        """Take a question."""
        if self.patience < 0:
            return
        self.waiting.append(query)
        while len(self.waiting) > self.patience:
            first = self.waiting.pop(0)
            self.node.local.reply(first, self.key, Reply(body=Put(payload=b"honest")))
            self.node.local.finish_query(first)


class Nodes:
    """A node of `mode`, two honest neighbours, and strangers of `role`, one after the other."""

    def __init__(self, mode: str, role: str, chance: random.Random, ruled: bool = False) -> None:
        """`ruled`: with access control and filters."""
        self.name = f"{role} to {mode}" + (", with rules" if ruled else "")
        self.group = mode
        self.mode, self.role, self.chance = MODES[mode], MODES[role], chance
        self.messages = 0
        self.lives = 0
        self.life = LIFE
        self.ends: Counter[str] = Counter()
        self.now = 0.0
        self.vocabulary = Vocabulary(chance)
        self.policy = Policy.of(Config.from_json5(RULES).resolved) if ruled else Policy()
        #: A client's neighbours are routers, which bring its words to a client of theirs.
        client = mode == "client"
        self.node = self._node(b"\x11", self.mode, client, ("sim/one", "sim/stranger"))
        first, place = ("router", "sim/one") if client else ("client", "sim/node")
        self.one = self._node(b"\x21", MODES[first], False, () if client else (place,))
        self.two = self._node(b"\x22", MODES["client"], False, (place,))
        self.hosts = (self.node, self.one, self.two)
        self.dialling: Attempt | None = None
        self.wires: list[Wire] = []
        for _ in range(20):
            self._pass(0.1)
        if len(self.wires) != 2:
            raise AssertionError(f"{self.name}: the honest ones have {len(self.wires)} links")
        self.heard = Heard()
        self.two.local.subscribe("honest/word", self.heard)
        self.speaker = self.node if client else self.one
        self.speaker.local.queryable(
            "honest/answer", Answering(self.speaker, "honest/answer", 0), True
        )
        local = self.node.local
        local.subscribe("a/**", Heard())
        local.queryable("c/*", Answering(self.node, "c/2", 0), False)
        local.queryable("b/**", Answering(self.node, "b/c/d", 5), True)
        local.queryable("a/b", Answering(self.node, "a/b", -1), False)
        local.liveliness.watch("**", Heard(), True)
        self.one.local.subscribe("c/**", Heard())
        self.gets: list[ReplyRecorder] = []
        self._pass(30.0)
        self._check_honest(True)
        self.before = self._left()

    def _node(self, zid: bytes, mode: int, every: bool, connect: tuple[str, ...]) -> Node:
        hostile = zid == b"\x11"
        settings = NodeSettings(
            mode=mode,
            zid=zid,
            connect=connect if every or not hostile else ("sim/stranger",),
            connect_all=every,
            retry=Backoff(0.1, 0.1),
            compression=hostile,
            autoconnect=0,
            lease=1_000_000_000,
            limits=LIMITS if hostile else ResourceLimits(),
            query_timeout=2.0,
            interest_timeout=2.0,
            policy=self.policy if hostile else Policy(),
        )
        if hostile and self.chance.random() < 0.5:
            settings = replace(settings, low_latency=True, qos=False)
        node = Node(settings, lambda: self.chance.randbytes(8), self.chance.random)
        if hostile:
            node.turn = Turn(LIMITS.turn_messages, 1.0, lambda: self.now)
        node.start(self.now)
        return node

    # ------------------------------------------------------------------------------ one life

    def round(self) -> None:
        """One stranger's life."""
        self.lives += 1
        stranger = self._stranger()
        if stranger.is_open:
            self._live(stranger)
        else:
            self.ends["no session"] += 1
            self.messages += 4
        self._leave(stranger)
        for seconds in (0.0, 1.0, 3.0, 11.0):
            self._pass(seconds)
        self._check_honest(True)
        self._check_clean()

    def _stranger(self) -> Stranger:
        chance = self.chance
        attempt = None
        if self.dialling is not None and (self.mode == 2 or chance.random() < 0.3):
            attempt, self.dialling = self.dialling, None
        #: A client may be served by a client that says so.
        bound = 1 if self.mode == self.role == 2 else chance.choice((-1, -1, -1, -1, -1, -1, 0, 1))
        low_latency = chance.random() < 0.2
        offer = Offer(
            zid=b"\x66",
            whatami=self.role,
            lease=100_000,
            qos=not low_latency and chance.random() < 0.8,
            low_latency=low_latency,
            compression=chance.random() < 0.2,
            bound=_bounds(bound),
            random=chance.randbytes,
        )
        return self._knock(offer, attempt)

    def _knock(self, offer: Offer, attempt: Attempt | None) -> Stranger:
        """The stranger, on a link of its own."""
        return Stranger(self.node, offer, attempt, self.chance.random() < 0.8, self.now)

    def _live(self, stranger: Stranger) -> None:
        chance = self.chance
        flooding = chance.random() < 0.05
        for count in range(self.life):
            if flooding:
                words = [self._flood(count * TOGETHER + index) for index in range(TOGETHER)]
            else:
                words = self.vocabulary.draw(TOGETHER)
            face = stranger.neighbour.face
            if face is not None and (face.requests or face.interests_out):
                words += answers(chance, face)
            self.messages += len(words)
            kind = chance.random()
            if kind < 0.03:
                large = write(Push(scope=0, suffix="a/b", body=Put(payload=bytes(20_000))))
                for piece in stranger.cut(chance.choice((words[0], large)), chance):
                    stranger.say(piece, self.now)
            elif kind < 0.035:
                damaged = bytearray(stranger.framed(words, chance))
                chance.choice(fuzz.DAMAGES)(damaged, chance, [bytes(damaged)])
                stranger.say(bytes(damaged[:60_000]), self.now)
            elif kind < 0.036:
                stranger.send(chance.randbytes(chance.randrange(40)), self.now)
            else:
                stranger.say(stranger.framed(words, chance), self.now)
            self._programs()
            self._pass(chance.choice((0.0, 0.0, 0.001, 0.02)), stranger)
            self._check_bounds()
            if count % 32 == 31:
                self._check_honest(False)
            if not stranger.is_open:
                self._note(stranger)
                return
        self.ends["it left"] += 1

    def _flood(self, number: int) -> bytes:
        """More of everything than a neighbour may have."""
        if number % 3:
            token = DeclareToken(id=number, scope=0, suffix=f"f/{number % 7}/{number}")
            return write(Declare(body=token))
        return write(Request(id=number, scope=0, suffix="a/b", timeout=10_000, body=Query()))

    def _programs(self) -> None:
        """What the node's own programs do meanwhile."""
        chance, local = self.chance, self.node.local
        what = chance.random()
        if what < 0.1:
            replies = ReplyRecorder()
            self.gets.append(replies)
            key = chance.choice(("asked/aloud", "a/*", "c/**"))
            local.get(key, "", replies, timeout=chance.choice((0.01, 1.0)))
        elif what < 0.15:
            replies = ReplyRecorder()
            self.gets.append(replies)
            local.liveliness.get("**", replies, 1.0)
        elif what < 0.3:
            key = chance.choice(("a/b", "c/1", "p/q"))
            local.publication(0, key, 5, True, 0, b"", 2).put(b"said")

    def _leave(self, stranger: Stranger) -> None:
        """It goes with a word, without one, or falls silent."""
        if not stranger.is_open:
            stranger.heard()
        elif self.chance.random() < 0.4:
            stranger.say(write(Close(reason=0, session=True)), self.now)
        self.node.lost(stranger.neighbour, None, self.now)
        stranger.shut()

    def _note(self, stranger: Stranger) -> None:
        error = stranger.neighbour.error
        self.ends[type(error).__name__] += 1

    # --------------------------------------------------------------------------------- time

    def _pass(self, seconds: float, stranger: Stranger | None = None) -> None:
        """Let time go by, and everybody come to rest."""
        self.now += seconds
        now = self.now
        for node in self.hosts:
            node.now = now
        for _ in range(RESTLESS):
            moved = False
            if stranger is not None:
                near = stranger.neighbour.unicast
                if near is not None and near.behind:
                    self.node.go_on(stranger.neighbour, now)
                    moved = True
                stranger.heard()
            for node in self.hosts:
                if node.deadline <= now:
                    node.tick(now)
                    moved = moved or node.deadline <= now
                    self._connect(node)
                for event in node.events():
                    if isinstance(event, MatchingChanged):
                        event.deliver()
            for wire in self.wires:
                moved = wire.carry(now) or moved
            if not moved:
                return
        raise AssertionError(f"{self.name} does not come to rest")

    def _connect(self, node: Node) -> None:
        for attempt in node.attempts(self.now):
            name = attempt.endpoint.removeprefix("sim/")
            if name == "stranger":
                self.dialling = attempt
            else:
                far = {"one": self.one, "node": self.node}[name]
                self.wires.append(Wire(node, attempt, far, self.now))

    # ------------------------------------------------------------------------------- looking

    def _check_honest(self, alone: bool) -> None:
        """An honest sample arrives, and an honest question is answered."""
        word = b"word %d" % self.messages
        self.heard.words.clear()
        self.speaker.local.publication(0, "honest/word", 5, True, 0, b"", 2).put(word)
        replies = ReplyRecorder()
        self.two.local.get("honest/answer", "", replies, target=1, consolidation=1, timeout=3.0)
        self._pass(0.01)
        self._pass(0.01)
        if word not in self.heard.words:
            raise AssertionError(f"{self.name}: an honest sample did not arrive")
        if b"honest" not in [value for _, value in replies.values()]:
            raise AssertionError(f"{self.name}: an honest question was not answered")
        if alone and replies.finals != 1:
            raise AssertionError(f"{self.name}: an honest question ended {replies.finals} times")

    def _check_bounds(self) -> None:
        node = self.node
        for name, pool in (
            ("memory", node.memory), ("waiting", node.waiting), ("fragments", node.fragments),
        ):  # fmt: skip
            if not 0 <= pool.used <= 2 * pool.limit:
                raise AssertionError(f"{self.name}: {pool.used} of {pool.limit} bytes of {name}")

    def _check_clean(self) -> None:
        for replies in self.gets:
            if replies.finals != 1:
                raise AssertionError(f"{self.name}: a question ended {replies.finals} times")
        self.gets.clear()
        left = self._left()
        if left != self.before:
            before = self.before
            more = {
                name: (before.get(name), left.get(name))
                for name in {*before, *left}
                if left.get(name) != before.get(name)
            }
            raise AssertionError(f"{self.name}: left behind (before, now): {more}")

    def _left(self) -> dict[str, int]:
        """What there is when nobody but the honest ones is there."""
        node = self.node
        tables, queries = node.tables, node.queries
        left = {
            "faces": len(tables.faces),
            "listeners": len(tables.listeners),
            "joining": len(tables.joining),
            "leaving": len(tables.leaving) + len(queries.leaving),
            "telling": len(tables.telling),
            "keys": len(tables.tree.entries()),
            "filters": tables.filters,
            "interests unanswered": tables.unanswered.waiting,
            "queries": len(queries.open),
            "queries unanswered": queries.unanswered.waiting,
            "gets": len(node.local.gets),
            "sessions": len(node.by_zid),
            "links": len(node.neighbours),
            "opening": len(node.sessions.opening),
        }
        for name, pool in (
            ("memory", node.memory), ("waiting", node.waiting), ("fragments", node.fragments),
        ):  # fmt: skip
            left[name] = pool.used
            left[f"{name} members"] = pool.members
        for neighbour in node.by_zid.values():
            face = neighbour.face
            if face is not None:
                of = face.zid.hex()
                left[f"requests to {of}"] = len(face.requests)
                left[f"asked by {of}"] = len(face.asked)
                left[f"questions of {of}"] = face.questions
                left[f"told to {of}"] = sum(map(len, face.announced))
                left[f"interests of {of}"] = len(face.interests_in)
                left[f"interests in {of}"] = len(face.interests_out)
        return left


def _bounds(bound: int) -> Callable[[Terms], int]:
    return lambda terms: bound


def scenes(chance: random.Random) -> list[Nodes]:
    """Every role before every role; and each role with rules."""
    found = [Nodes(mode, role, chance) for mode in ROLES for role in ROLES]
    ruled = (("router", "client"), ("peer", "router"), ("client", "router"))
    return found + [Nodes(mode, role, chance, True) for mode, role in ruled]

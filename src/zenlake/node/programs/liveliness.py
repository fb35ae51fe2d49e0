"""Who is alive: the tokens of our programs, and those of others that they look for."""

from __future__ import annotations

from zenlake.keys.keyexpr import KeyExpr
from zenlake.keys.matching import intersects
from zenlake.node.core import Core
from zenlake.node.entities import (
    LivelinessQuery,
    LivelinessSubscriber,
    ReplySink,
    SampleSink,
    Token,
)
from zenlake.node.programs.declared import ProgramEntities
from zenlake.node.programs.interests import TOKENS, ProgramInterest, ProgramInterests
from zenlake.node.sample import Sample, sample_of
from zenlake.routing.face import BOTH, CURRENT, FUTURE, Face, InterestOut
from zenlake.routing.resources import TOKEN
from zenlake.values.qos import QOS_DEFAULT
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Del, Err, Put


class ProgramLiveliness:
    """The tokens of our programs, and what they want to know of tokens."""

    def __init__(self, node: Core, declared: ProgramEntities, interests: ProgramInterests) -> None:
        """No tokens, no subscribers."""
        self.node: Core = node
        self.declared: ProgramEntities = declared
        self.interests: ProgramInterests = interests
        self.tokens: dict[int, Token] = {}
        self.watchers: dict[int, LivelinessSubscriber] = {}
        self.gets: dict[int, LivelinessQuery] = {}

    def token(self, key: str) -> Token:
        """Be alive under a key."""
        token = Token(self.declared.eid(), key)
        self.tokens[token.eid] = token
        self.node.tables.declare(self.node.face, TOKEN, token.eid, self.declared.outside(key))
        return token

    def untoken(self, token: Token) -> None:
        """Be alive no more."""
        if self.tokens.pop(token.eid, None) is not None:
            self.node.tables.undeclare(self.node.face, TOKEN, token.eid)

    def watch(self, key: str, sink: SampleSink, history: bool) -> LivelinessSubscriber:
        """Subscribe to tokens that come alive and die; with `history`, also those alive already."""
        subscriber = LivelinessSubscriber(self.declared.eid(), key, sink)
        self.watchers[subscriber.eid] = subscriber
        if history:
            for alive in self.alive(key):
                sink.push(token_sample(alive, True))
        self.interests.add(
            subscriber.eid, ProgramInterest(TOKENS, key, BOTH if history else FUTURE)
        )
        return subscriber

    def unwatch(self, subscriber: LivelinessSubscriber) -> None:
        """Be told no more."""
        if self.watchers.pop(subscriber.eid, None) is not None:
            self.interests.remove(subscriber.eid)
            subscriber.sink.end()

    def alive(self, key: str) -> list[str]:
        """The tokens under a key that we know of."""
        alive: list[str] = []
        for entry in self.node.tables.tree.intersecting(self.declared.outside(key)):
            if entry.value.holders[TOKEN]:
                name = self.declared.inside(entry.value.key)
                if name is not None:
                    alive.append(name)
        return alive

    def get(self, key: str, sink: ReplySink, timeout: float) -> LivelinessQuery:
        """Query the tokens that are alive now."""
        get = LivelinessQuery(self.declared.eid(), key, sink, self.node.now + timeout)
        for alive in self.alive(key):
            get.seen.add(alive)
            sink.push(alive, Put(), None, QOS_DEFAULT)
        self.gets[get.eid] = get
        for face, out in self.interests.add(get.eid, ProgramInterest(TOKENS, key, CURRENT)):
            if not out.final:
                get.waiting.add((face.id, out.id))
        self.node.wake_by(get.deadline)
        if not get.waiting:
            self._over(get)
        return get

    def cancel(self, get: LivelinessQuery) -> None:
        """Ask no more."""
        if get.eid in self.gets:
            self._over(get)

    def _over(self, get: LivelinessQuery) -> None:
        self.gets.pop(get.eid, None)
        self.interests.forget(get.eid)
        get.sink.end()

    def changed(self, key: str, name: str, face: Face, added: bool) -> None:
        """A neighbour, or one of us, declared or undeclared a token: `name` to our programs."""
        if not self.watchers:
            return
        resource = self.node.tables.tree.get(key)
        others = 0
        if resource is not None:
            others = len(resource.holders[TOKEN]) - (1 if face in resource.holders[TOKEN] else 0)
        if others:
            return  # one of several under this key came or went: it is still alive
        for subscriber in list(self.watchers.values()):
            if intersects(subscriber.key, name):
                subscriber.sink.push(token_sample(name, added))

    def token_present(self, interest: InterestOut, key: str) -> None:
        """A token is alive now, says a reply."""
        get = self.gets.get(interest.owner_id)
        name = self.declared.inside(key)
        if get is not None and name is not None and name not in get.seen:
            get.seen.add(name)
            get.sink.push(name, Put(), None, QOS_DEFAULT)

    def interest_final(self, interest: InterestOut) -> None:
        """An interest of ours has been answered."""
        get = self.gets.get(interest.owner_id)
        if get is None:
            return
        if not self._still_waiting(get):
            self._over(get)

    def _still_waiting(self, get: LivelinessQuery) -> bool:
        faces = self.node.tables.faces
        for face_id, id in get.waiting:
            face = faces.get(face_id)
            if face is not None:
                out = face.interests_out.get(id)
                if out is not None and not out.final and out.deadline != float("inf"):
                    return True
        return False

    def expire(self, now: float) -> None:
        """End the queries whose time has run out."""
        for get in [get for get in self.gets.values() if get.deadline <= now]:
            get.sink.push(get.key, Err(encoding=1, payload=b"Timeout"), None, 5)
            self._over(get)

    def deadline(self) -> float:
        """When `expire` has something to do."""
        earliest = float("inf")
        for get in self.gets.values():
            if get.deadline < earliest:
                earliest = get.deadline
        return earliest

    def end(self) -> None:
        """The node closes: everything ends."""
        for token in list(self.tokens.values()):
            self.untoken(token)
        for watcher in list(self.watchers.values()):
            self.unwatch(watcher)
        for get in list(self.gets.values()):
            self._over(get)


def token_sample(key: str, alive: bool) -> Sample:
    """The news that a token came alive or died."""
    body: Put | Del = Put() if alive else Del()
    return sample_of(KeyExpr.trusted(key), Push(scope=0, suffix=key, body=body), True)

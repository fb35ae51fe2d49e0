"""Queries of this node's own programs: what becomes of several replies for one key."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.keys.keyexpr import KeyExpr
from zenlake.keys.matching import intersects
from zenlake.node.entities import ReplySink
from zenlake.node.sample import Sample
from zenlake.routing.face import PendingQuery, ReplyBody, ReplyReceiver
from zenlake.routing.policy.namespace import Namespace
from zenlake.wire.codec_network import Responder, TimestampStack
from zenlake.wire.codec_zenoh import Del, Err, Put, Timestamp

AUTO: Final = 0
NONE: Final = 1
MONOTONIC: Final = 2
LATEST: Final = 3


def newer(a: Timestamp | None, b: Timestamp | None) -> bool:
    """Whether `a` is strictly newer than `b`; no time is older than any."""
    if a is None:
        return False
    if b is None:
        return True
    if a.seconds != b.seconds:
        return a.seconds > b.seconds
    if a.fraction != b.fraction:
        return a.fraction > b.fraction
    return a.id > b.id


class ReplyKey:
    """A key that replies are about."""

    __slots__ = ("key", "key_expr", "matches_query")

    def __init__(self, key: str, key_expr: KeyExpr) -> None:
        """As it was told."""
        self.key: str = key
        self.key_expr: KeyExpr = key_expr
        #: The last query whose key expression it was found to match.
        self.matches_query: str = ""


# Nothing that it holds can lead back to it: the collector need not look at it.
@mypyc_attr(acyclic=True)
class KeptReply:
    """The newest reply for one key so far."""

    __slots__ = ("body", "responder", "sample", "stack")

    def __init__(
        self,
        body: Put | Del | None,
        sample: Sample | None,
        responder: Responder | None,
        stack: TimestampStack | None,
    ) -> None:
        """A reply that may still be replaced: an ordinary value, or anything else."""
        self.body: Put | Del | None = body
        self.sample: Sample | None = sample
        self.responder: Responder | None = responder
        self.stack: TimestampStack | None = stack

    def size(self) -> int:
        """Return how many bytes its payload has."""
        sample = self.sample
        if sample is not None:
            return sample.payload_size
        body = self.body
        return len(body.payload) if isinstance(body, Put) else 0

    def timestamp(self) -> Timestamp | None:
        """When it was said, if that was told."""
        body = self.body
        if body is not None:
            return body.timestamp
        sample = self.sample
        if sample is None or not sample.stamp_id:
            return None
        return Timestamp(
            seconds=sample.stamp_seconds, fraction=sample.stamp_fraction, id=sample.stamp_id
        )


class Get(ReplyReceiver):
    """A query of one of this node's programs."""

    def __init__(
        self, key: str, consolidation: int, any_key: bool, sink: ReplySink, qos: int,
        deadline: float, namespace: Namespace | None = None,
    ) -> None:  # fmt: skip
        """`any_key`: replies about other keys are welcome.

        In a namespace replies come under whole keys, and the node that asked knows what follows the
        prefix.
        """
        self.namespace: Namespace | None = namespace
        self.key: str = key
        self.consolidation: int = consolidation
        self.any_key: bool = any_key
        self.sink: ReplySink = sink
        self.qos: int = qos
        self.deadline: float = deadline
        self.query: PendingQuery | None = None
        #: All the queries of our programs that are not over.
        self.asking: set[Get] = set()
        self.kept: dict[str, KeptReply] = {}
        self.over: bool = False
        #: The times of the reply that comes next.
        self.stack: TimestampStack | None = None
        #: Replies that were not passed on: about other keys, or superseded.
        self.unasked: int = 0
        self.superseded: int = 0

    def stamp(self, stack: TimestampStack) -> None:
        """The times of the reply that comes next."""
        self.stack = stack

    def reply(self, key: str, body: ReplyBody, responder: Responder | None) -> None:
        """One reply comes in."""
        stack = self.stack
        self.stack = None
        if self.over:
            return
        namespace = self.namespace
        if namespace is not None and key:
            name = namespace.inside(key)
            if name is None:
                self.unasked += 1
                return
            key = name
        if isinstance(body, Err):
            self._pass_on(key, body, responder, stack)
            return
        if not self.any_key and key != self.key and not intersects(self.key, key):
            self.unasked += 1
            return
        self._consolidate(key, KeptReply(body.body, None, responder, stack))

    def value(
        self,
        reply_key: ReplyKey,
        payload: bytes,
        encoding: int,
        seconds: int,
        fraction: int,
        stamp_id: bytes,
        responder: Responder | None,
    ) -> None:
        """One reply comes in that is an ordinary value."""
        self.stack = None
        if self.over:
            return
        if not self.any_key and reply_key.matches_query != self.key:
            if reply_key.key != self.key and not intersects(self.key, reply_key.key):
                self.unasked += 1
                return
            reply_key.matches_query = self.key
        sample = Sample(
            reply_key.key_expr, payload, True, encoding, b"", seconds, fraction, stamp_id, self.qos,
            True, None,
        )  # fmt: skip
        self._consolidate(reply_key.key, KeptReply(None, sample, responder, None))

    def _consolidate(self, key: str, reply: KeptReply) -> None:
        """Of several replies for one key pass on what is wanted, now or at the end."""
        if self.consolidation == NONE:
            self._say(key, reply)
            return
        former = self.kept.get(key)
        if self.consolidation == MONOTONIC:
            if former is not None and newer(former.timestamp(), reply.timestamp()):
                self.superseded += 1
                return
            self.kept[key] = reply
            self._say(key, reply)
            return
        many = len(self.kept)
        size = reply.size()
        if former is None:
            many += 1
        else:
            self.superseded += 1
            if newer(former.timestamp(), reply.timestamp()):
                return
            size -= former.size()
        if self.sink.keeps(key, many, size):
            self.kept[key] = reply
        elif former is not None:
            del self.kept[key]  # better none than one that is not the newest

    def _say(self, key: str, reply: KeptReply) -> None:
        sample = reply.sample
        body = reply.body
        if sample is not None:
            self.sink.value(sample, reply.responder)
        elif body is not None:
            self._pass_on(key, body, reply.responder, reply.stack)

    def _pass_on(
        self,
        key: str,
        body: Put | Del | Err,
        responder: Responder | None,
        stack: TimestampStack | None,
    ) -> None:
        if stack is not None:
            self.sink.stamp(stack)
        self.sink.push(key, body, responder, self.qos)

    def final(self) -> None:
        """All have answered."""
        self.finish(False)

    def finish(self, timed_out: bool) -> None:
        """Pass on what was kept back, and end."""
        if self.over:
            return
        self.over = True
        if self.consolidation == LATEST:
            self.sink.make_room(len(self.kept))
            for key, kept in self.kept.items():
                self._say(key, kept)
        if timed_out:
            self.sink.push(self.key, Err(encoding=1, payload=b"Timeout"), None, self.qos)
        self.kept.clear()
        self.asking.discard(self)
        self.sink.end()

"""Questions of this node's own programs: what becomes of several answers for one key."""

from __future__ import annotations

from typing import Final

from zenlake.keys.matching import intersects
from zenlake.node.entities import AnswerSink
from zenlake.routing.policy.namespace import Namespace
from zenlake.routing.queries import Answer, Asker, Question
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


class Kept:
    """The newest answer for one key so far."""

    __slots__ = ("body", "responder", "stack")

    def __init__(
        self, body: Put | Del, responder: Responder | None, stack: TimestampStack | None
    ) -> None:
        """An answer that may still be replaced."""
        self.body: Put | Del = body
        self.responder: Responder | None = responder
        self.stack: TimestampStack | None = stack


class Get(Asker):
    """A question that one of our programs asked."""

    def __init__(
        self, key: str, consolidation: int, any_key: bool, sink: AnswerSink, qos: int,
        deadline: float, namespace: Namespace | None = None,
    ) -> None:  # fmt: skip
        """`any_key`: answers about other keys are welcome.

        In a namespace answers come under whole keys, and whoever asked knows what follows the
        prefix.
        """
        self.namespace: Namespace | None = namespace
        self.key: str = key
        self.consolidation: int = consolidation
        self.any_key: bool = any_key
        self.sink: AnswerSink = sink
        self.qos: int = qos
        self.deadline: float = deadline
        self.question: Question | None = None
        self.kept: dict[str, Kept] = {}
        self.over: bool = False
        #: The times of the answer that comes next.
        self.stack: TimestampStack | None = None
        #: Answers that were not passed on: about other keys, or superseded.
        self.unasked: int = 0
        self.superseded: int = 0

    def stamp(self, stack: TimestampStack) -> None:
        """The times of the answer that comes next."""
        self.stack = stack

    def answer(self, key: str, body: Answer, responder: Responder | None) -> None:
        """One answer comes in."""
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
        value = body.body
        if self.consolidation == NONE:
            self._pass_on(key, value, responder, stack)
            return
        kept = self.kept.get(key)
        if self.consolidation == MONOTONIC:
            if kept is not None and newer(kept.body.timestamp, value.timestamp):
                self.superseded += 1
                return
            self.kept[key] = Kept(value, responder, None)
            self._pass_on(key, value, responder, stack)
            return
        if kept is not None:
            self.superseded += 1
            if newer(kept.body.timestamp, value.timestamp):
                return
        self.kept[key] = Kept(value, responder, stack)

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
            for key, kept in self.kept.items():
                self._pass_on(key, kept.body, kept.responder, kept.stack)
        if timed_out:
            self.sink.push(self.key, Err(encoding=1, payload=b"Timeout"), None, self.qos)
        self.kept.clear()
        self.sink.end()

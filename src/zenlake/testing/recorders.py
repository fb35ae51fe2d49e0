"""Sinks that remember what they were given, and a queryable that answers."""

from __future__ import annotations

from zenlake.node.entities import (
    IncomingQuery,
    LivelinessSubscriber,
    LocalQueryable,
    LocalSubscriber,
    QuerySink,
    ReplySink,
    SampleSink,
    StatusSink,
)
from zenlake.node.node import Node
from zenlake.node.queries.gets import Get
from zenlake.node.sample import Sample
from zenlake.values.qos import SampleKind
from zenlake.wire.codec_network import Responder
from zenlake.wire.codec_zenoh import Del, Err, Put, Reply

__all__ = ["Replier", "ReplyRecorder", "SampleRecorder", "Statuses"]


class SampleRecorder(SampleSink):
    """Keeps the samples of a subscriber."""

    def __init__(self) -> None:
        """Nothing was heard yet."""
        self.samples: list[Sample] = []
        self.ended: bool = False
        self.subscriber: LocalSubscriber | None = None
        self.watcher: LivelinessSubscriber | None = None

    def push(self, sample: Sample) -> None:
        """Keep a sample."""
        self.samples.append(sample)

    def end(self) -> None:
        """Note that there will be no more."""
        self.ended = True

    def values(self) -> list[tuple[str, bytes]]:
        """Keys and payloads, in the order of arrival."""
        return [(str(sample.key_expr), bytes(sample.payload)) for sample in self.samples]

    def changes(self) -> list[tuple[str, str]]:
        """Keys and whether they were put or deleted: what a liveliness subscriber hears."""
        names = {SampleKind.PUT: "put", SampleKind.DELETE: "delete"}
        return [(names[sample.kind], str(sample.key_expr)) for sample in self.samples]


class ReplyRecorder(ReplySink):
    """Keeps the answers to a question."""

    def __init__(self) -> None:
        """Nothing was answered yet."""
        self.all: list[tuple[str, Put | Del | Err, Responder | None]] = []
        #: How often the end came: once, if all is well.
        self.finals: int = 0
        self.get: Get | None = None

    def push(self, key: str, body: Put | Del | Err, responder: Responder | None, qos: int) -> None:
        """Keep an answer."""
        self.all.append((key, body, responder))

    def end(self) -> None:
        """Note the end."""
        self.finals += 1

    def values(self) -> list[tuple[str, bytes]]:
        """Keys and payloads of the values, in the order of arrival."""
        return [(key, body.payload) for key, body, _ in self.all if isinstance(body, Put)]

    def keys(self) -> list[str]:
        """The keys that answers are about, sorted; errors left out."""
        return sorted(key for key, body, _ in self.all if not isinstance(body, Err))

    def errors(self) -> list[bytes]:
        """The payloads of errors."""
        return [body.payload for _, body, _ in self.all if isinstance(body, Err)]


class Replier(QuerySink):
    """Keeps the questions for a queryable, and answers them."""

    def __init__(self, node: Node, key: str, payload: bytes | None) -> None:
        """With a `payload` every question is answered at once; without, when the test says."""
        self.node = node
        self.key = key
        self.payload = payload
        self.queries: list[IncomingQuery] = []
        self.ended: bool = False
        self.queryable: LocalQueryable | None = None

    def push(self, query: IncomingQuery) -> None:
        """Keep a question, and answer it."""
        self.queries.append(query)
        if self.payload is not None:
            self.reply(query, self.key, self.payload)
            self.finish(query)

    def end(self) -> None:
        """Note that there will be no more."""
        self.ended = True

    def reply(self, query: IncomingQuery, key: str, payload: bytes) -> bool:
        """Answer with a value."""
        return self.node.local.reply(query, key, Reply(body=Put(payload=payload)))

    def fail(self, query: IncomingQuery, payload: bytes) -> bool:
        """Answer with an error."""
        return self.node.local.reply(query, query.key, Err(payload=payload))

    def finish(self, query: IncomingQuery) -> None:
        """Say that there are no more answers."""
        self.node.local.finish_query(query)


class Statuses(StatusSink):
    """Keeps the changes of a matching status."""

    def __init__(self) -> None:
        """Nothing has changed yet."""
        self.changes: list[bool] = []
        self.ended: bool = False

    def push(self, matching: bool) -> None:
        """Keep a change."""
        self.changes.append(matching)

    def end(self) -> None:
        """Note that there will be no more."""
        self.ended = True

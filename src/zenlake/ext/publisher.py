"""Advanced publishers: they number what they publish, remember it, beat, and can be detected."""

from __future__ import annotations

import time
from asyncio import TimerHandle
from threading import Lock
from typing import Final

from zenlake.api.core import open_runtime
from zenlake.api.entity import entity_id, forgotten
from zenlake.api.options import (
    IntoEncoding,
    encoding_parts,
    locality,
    qos_byte,
    source_on_wire,
)
from zenlake.api.publish import AnyPublisher
from zenlake.api.session import Session
from zenlake.clock import Timestamp
from zenlake.engine.runtime import Runtime
from zenlake.errors import ZError
from zenlake.ext.config import CacheConfig, MissDetectionConfig
from zenlake.keys import IntoKeyExpr, KeyExpr
from zenlake.node.advanced_cache import Cache
from zenlake.node.advanced_keys import SERIALS, publisher_key
from zenlake.node.entities import IncomingQuery, LocalQueryable, Publication, QuerySink, Token
from zenlake.node.programs.local import Local
from zenlake.values import (
    CongestionControl,
    Encoding,
    IntoZBytes,
    Locality,
    Priority,
    Reliability,
    SourceInfo,
    TimestampInstrumentation,
)
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Reply

__all__ = ["AdvancedPublisher", "declare_advanced_publisher"]

#: How long a put waits for another one that is under way, so that both leave in order.
PATIENCE: Final = 1.0
#: No heart beats faster.
SHORTEST: Final = 0.001


class Past(QuerySink):
    """What a publisher published, in reply to queries."""

    def __init__(self, runtime: Runtime, key: str, max_samples: int) -> None:
        """Under the key that the samples had."""
        self._runtime = runtime
        self._key = key
        self._cache = Cache(max_samples)
        self._guard = Lock()

    def add(self, push: Push) -> None:
        """Remember a sample."""
        with self._guard:
            self._cache.add(push.body)

    def push(self, query: IncomingQuery) -> None:
        """Reply to a query; the node's lock is held."""
        with self._guard:
            bodies = self._cache.select(query.body.parameters, time.time_ns())
        replying = query.replying
        for body in bodies:
            replying.reply(query, self._key, Reply(body=body))
        replying.finish_query(query)


class Heart:
    """Says again and again which number was used last; lives on the loop thread."""

    def __init__(self, runtime: Runtime, publication: Publication, config: tuple[float, bool]):
        """`config`: the period in seconds, and whether it beats only if there is news."""
        self._runtime = runtime
        self._publication = publication
        self._period = max(SHORTEST, config[0])
        self._sporadic = config[1]
        self._said = -1
        self._timer: TimerHandle | None = None
        self._stopped = False
        #: The number that was used last.
        self.last = -1

    def start(self) -> None:
        """Begin to beat."""
        self._runtime.loop.soon(self._arm)

    def stop(self) -> None:
        """Beat no more; from any thread."""
        self._stopped = True
        self._runtime.loop.soon(self._cancel)

    def _arm(self) -> None:
        if not self._stopped and not self._runtime.closed:
            self._timer = self._runtime.loop.loop.call_later(self._period, self._beat)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        last = self.last
        try:
            if (
                last >= 0
                and not self._runtime.closed
                and (last != self._said or not self._sporadic)
            ):
                self._said = last
                self._publication.put(last.to_bytes(4, "little"))
        finally:
            self._arm()


class AdvancedPublisher(AnyPublisher):
    """A publisher that helps its subscribers to get everything, in order, even late."""

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    def __init__(
        self,
        session: Session,
        publication: Publication,
        encoding: Encoding,
        past: Past | None,
        heart: Heart | None,
        numbered: bool,
        declared: tuple[LocalQueryable | None, Token | None, Publication | None],
    ) -> None:
        """Made by `declare_advanced_publisher`."""
        super().__init__(session, publication, encoding)
        self._past = past
        self._heart = heart
        self._numbered = numbered
        self._next = 0
        self._declared = declared
        self._guard = Lock()
        self._order = Lock()

    def put(
        self,
        /,
        payload: IntoZBytes,
        *,
        encoding: IntoEncoding | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> None:
        """Publish a value.

        Parameters as of `zenlake.Publisher.put`.
        """
        self._check_open()
        self._publish(
            self.builder.put(
                self.publication,
                payload,
                encoding,
                attachment,
                timestamp,
                timestamp_instrumentation,
            )
        )

    def delete(
        self,
        /,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> None:
        """Publish that the value is removed.

        Parameters as of `zenlake.Publisher.put`.
        """
        self._check_open()
        self._publish(
            self.builder.delete(self.publication, attachment, timestamp, timestamp_instrumentation)
        )

    def _publish(self, push: Push) -> None:
        # What has the smaller number leaves first. The loop thread never waits for that: it may
        # be what the other thread waits for.
        patience = 0.0 if self._runtime.on_loop() else PATIENCE
        ordered = self._order.acquire(timeout=patience)
        try:
            with self._guard:
                if self._numbered:
                    source = entity_id(self._runtime.zid, self.publication.eid)
                    push.body.source_info = source_on_wire(SourceInfo(source, self._next))
                    if self._heart is not None:
                        self._heart.last = self._next
                    self._next = (self._next + 1) % SERIALS
                if self._past is not None:
                    self._past.add(push)
            self.publication.publish(push)
        finally:
            if ordered:
                self._order.release()

    def _withdraw(self, local: Local) -> None:
        queryable, token, beats = self._declared
        if self._heart is not None:
            self._heart.stop()
        if token is not None:
            local.liveliness.untoken(token)
        if queryable is not None:
            local.unqueryable(queryable)
        if beats is not None:
            local.unpublish(beats)
        super()._withdraw(local)


def declare_advanced_publisher(
    session: Session,
    key_expr: IntoKeyExpr,
    *,
    encoding: IntoEncoding | None = None,
    congestion_control: CongestionControl | None = None,
    priority: Priority | None = None,
    express: bool | None = None,
    reliability: Reliability | None = None,
    allowed_destination: Locality | None = None,
    cache: CacheConfig | None = None,
    sample_miss_detection: MissDetectionConfig | None = None,
    publisher_detection: bool | None = None,
) -> AdvancedPublisher:
    """Declare a publisher that remembers (`cache`), numbers and beats (`sample_miss_detection`).

    With `publisher_detection` subscribers learn of it as soon as it is there.

    Other parameters as of `zenlake.Session.declare_publisher`.

    Args:
        session: The session to declare it on.
    """
    key = str(KeyExpr.of(key_expr))
    id, schema = encoding_parts(encoding)
    qos = qos_byte(congestion_control, priority, express)
    reliable = reliability is not Reliability.BEST_EFFORT
    where = locality(allowed_destination)
    runtime = open_runtime(session)
    numbered = sample_miss_detection is not None
    if cache is not None and not numbered and not session.builder.stamped:
        raise ZError(
            f"the advanced publisher of '{key}' neither numbers nor stamps its samples, so that "
            "its cache would not know their order: give sample_miss_detection, or set "
            "timestamping/enabled to true in the session's configuration"
        )
    with runtime.locked() as node:
        local = node.local
        publication = local.publisher(key, qos, reliable, id, schema, where)
        name = publisher_key(key, runtime.zid, publication.eid if numbered else None)
        past: Past | None = None
        heart: Heart | None = None
        queryable: LocalQueryable | None = None
        beats: Publication | None = None
        if cache is not None:
            past = Past(runtime, key, cache.max_samples)
            queryable = local.queryable(name, past, False, where)
        if sample_miss_detection is not None and sample_miss_detection.period is not None:
            sporadic = sample_miss_detection.sporadic
            beat_qos = qos_byte(CongestionControl.BLOCK if sporadic else None, priority, None)
            beats = local.publisher(name, beat_qos, True, 0, b"", where)
            heart = Heart(runtime, beats, (sample_miss_detection.period, sporadic))
            heart.start()
        token = local.liveliness.token(name) if publisher_detection else None
        return AdvancedPublisher(
            session,
            publication,
            Encoding.of(encoding),
            past,
            heart,
            numbered,
            (queryable, token, beats),
        )

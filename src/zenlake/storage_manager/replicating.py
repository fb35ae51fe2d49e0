"""The replication of one storage over the network.

    every interval      the digest of its log is published on @-digest/<zid>/<fingerprint>
    a digest that differs from the log     what is missing is asked for, on one thread
    queries to @zid/<zid>/<fingerprint>/aligner    are answered, askers in turn
    at the start        a storage that is empty asks the first replica that answers for everything

Decisions are those of `zenlake.replication`; what is lost on the way is found by a later digest.
"""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from zenlake.api.cancellation import CancellationToken
from zenlake.clock import NTP64
from zenlake.clock.backoff import Backoff
from zenlake.clock.hlc import MAX_AHEAD_NS
from zenlake.errors import DecodeError, ZError
from zenlake.ext.query_service import QueryService
from zenlake.newest import Contents, Entry, Value
from zenlake.replication import Action, Eras, Event, Replica
from zenlake.replication.messages import (
    MOST_BYTES,
    AlignmentQuery,
    AlignmentReply,
    Discovery,
    DiscoveryReply,
    EventsMetadata,
    Retrieval,
    decode_digest,
    decode_query,
    decode_reply,
    encode_digest,
    encode_query,
    encode_reply,
    fits,
)
from zenlake.values import ConsolidationMode, Encoding, Locality

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.api.session import Session
    from zenlake.config.model_storages import StorageSettings
    from zenlake.node.sample import Sample

__all__ = ["Replicating", "eras_of"]

log = logging.getLogger("zenlake.storage_manager")

#: How long one query of an alignment may take, in seconds; the next digest finds the rest.
ALIGN_TIME: Final = 60.0
#: How long an empty storage waits for a replica to answer, in seconds.
DISCOVERY_TIME: Final = 10.0
DISCOVERY_RETRY: Final = Backoff(0.2, DISCOVERY_TIME)
#: Replicas that are known by their digests; those of more are not looked at.
MOST_REPLICAS: Final = 256
#: Queries of one alignment.
MOST_QUERIES: Final = 10_000
#: Queries of others that may wait to be answered; more are answered with an error.
MOST_ASKED: Final = 32
#: Events that are applied or answered for in one go while the storage waits.
PIECE: Final = 500


@dataclass(slots=True)
class ReplicationCounts:
    """What went over the network."""

    digests_sent: int = 0
    digests_heard: int = 0
    differences: int = 0
    """Digests that had something which this storage had not."""
    queries_sent: int = 0
    queries_heard: int = 0
    replies_sent: int = 0
    replies_heard: int = 0
    malformed: int = 0
    """Digests, queries and replies that could not be read."""
    unexpected: int = 0
    """Replies that do not answer what was asked."""
    refused: int = 0
    """Digests and own queries beyond what is handled at a time."""
    failures: int = 0
    """Alignments that ended early, because the network or the volume failed."""


@dataclass(slots=True)
class _Known:
    """Another replica, by its digests."""

    heard: float
    digest: bytes | None
    differs: bool = False
    unanswered: int = 0
    """Alignments in a row in which it has not answered a question."""


def eras_of(settings: StorageSettings) -> Eras:
    """What the replicas of a storage agree on."""
    replication = settings.replication
    assert replication is not None
    return Eras(
        str(settings.key_expr),
        None if settings.strip_prefix is None else str(settings.strip_prefix),
        round(replication.interval * 1e9) // 1_000_000,
        replication.sub_intervals,
        replication.hot,
        replication.warm,
        replication.propagation_delay,
    )


class Replicating:
    """Publishes digests, aligns the contents of a storage with others, and answers them."""

    def __init__(
        self,
        session: Session,
        name: str,
        settings: StorageSettings,
        contents: Contents,
        lock: threading.Condition,
    ) -> None:
        """Follow the contents; `start` begins to speak. The lock is the storage's own."""
        self.name = name
        self.counts = ReplicationCounts()
        self._session = session
        self._contents = contents
        self._lock = lock
        self._eras = eras_of(settings)
        self._zid = str(session.zid())
        self.replica = Replica(self._eras, contents, self._zid)
        self._digest_key = f"@-digest/{self._zid}/{self._eras.fingerprint}"
        self._digests = f"@-digest/*/{self._eras.fingerprint}"
        self._replicas: dict[str, _Known] = {}
        self._turn = threading.Condition()
        self._closed = False
        self._token = CancellationToken()
        self._service = QueryService(f"aligner {name}", 1, most=MOST_ASKED)
        self._tell: Callable[[], None] = lambda: None
        self._read: Callable[[Sequence[str]], Iterable[Entry]] = lambda _keys: ()

    def aligner(self, zid: str) -> str:
        """The key on which a replica is asked."""
        return f"@zid/{zid}/{self._eras.fingerprint}/aligner"

    def start(
        self,
        read: Callable[[Sequence[str]], Iterable[Entry]],
        tell: Callable[[], None],
        *,
        takes: bool = True,
        delay: float = 0.5,
    ) -> None:
        """Begin to publish, to answer, and unless the storage is read-only to ask.

        Args:
            read: Reads entries with their payloads.
            tell: Called with the lock held when the contents have changed.
            takes: Whether the storage takes up what it lacks.
            delay: Seconds until other nodes may have been found, for a storage that is empty.
        """
        self._read, self._tell = read, tell
        session = self._session
        empty = not len(self.replica.log)
        self._queryable = session.declare_queryable(
            self.aligner(self._zid), self._asked, allowed_origin=Locality.REMOTE
        )
        self._subscriber = (
            session.declare_subscriber(
                self._digests, self._heard_digest, allowed_origin=Locality.REMOTE
            )
            if takes
            else None
        )
        work: list[Callable[[], None]] = [self._publish_on]
        if takes:
            work.append(lambda: self._align_on(delay if empty else None))
        self._threads = [
            threading.Thread(target=run, name=f"zenlake replication {self.name}", daemon=True)
            for run in work
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Publish, ask and answer no more."""
        with self._turn:
            self._closed = self._service.closed = True
            self._turn.notify_all()
        if not self._session.is_closed():
            self._queryable.undeclare()
            if self._subscriber is not None:
                self._subscriber.undeclare()
        self._token.cancel()
        self._service.close()
        for thread in self._threads:
            thread.join()

    def status(self) -> dict[str, object]:
        """What an operator sees of it; the storage's lock is held."""
        now = time.monotonic()
        counts, learned = self.counts, self.replica.counts
        with self._turn:
            # One that died while it differed would differ for ever.
            known = {
                zid: {"heard_ago": round(now - one.heard, 3), "differs": one.differs}
                for zid, one in self._replicas.items()
                if not self._is_silent(one)
            }
        return {
            "fingerprint": str(self._eras.fingerprint),
            "replicas": known,
            "events": len(self.replica.log),
            "deletions": self.replica.log.deletions,
            "digests_sent": counts.digests_sent,
            "digests_heard": counts.digests_heard,
            "differences": counts.differences,
            "queries_sent": counts.queries_sent,
            "queries_heard": counts.queries_heard,
            "replies_sent": counts.replies_sent,
            "replies_heard": counts.replies_heard,
            "puts": learned.puts,
            "deletes": learned.deletes,
            "outside": learned.outside,
            "future": learned.future,
            "expired": learned.expired,
            "forgotten": learned.forgotten,
            "malformed": counts.malformed,
            "unexpected": counts.unexpected,
            "refused": counts.refused + self._service.refused["busy"],
            "failures": counts.failures,
        }

    # ------------------------------------------------------------------------------- publishing

    def _publish_on(self) -> None:
        """Publish a digest in every interval, at a moment of it that others do not share."""
        interval, delay = self._eras.interval, self._eras.propagation_delay
        while True:
            # What was published in the last interval has arrived by then.
            begin = (_now() // interval + 1) * interval + delay
            if not self._sleep_until(begin):
                return
            with self._lock:
                digest = self.replica.digest(_now())
            payload = encode_digest(digest)
            if not self._sleep_until(begin + random.uniform(0, interval / 3)):
                return
            try:
                self._session.put(self._digest_key, payload)
                self.counts.digests_sent += 1
            except ZError as error:
                if self._session.is_closed():
                    return
                log.warning("storage '%s': its digest was not published: %s", self.name, error)

    def _sleep_until(self, moment: float) -> bool:
        """Wait for a moment in milliseconds since 1970; tells whether to go on."""
        with self._turn:
            while not self._closed:
                left = (moment - time.time() * 1000) / 1000
                if left <= 0:
                    return True
                # The clock may be set meanwhile.
                self._turn.wait(min(left, 1.0))
        return False

    # ---------------------------------------------------------------------------------- asking

    def _heard_digest(self, sample: Sample) -> None:
        zid = str(sample.key_expr).split("/")[1]
        if zid == self._zid:
            return
        payload = sample.payload.to_bytes()
        with self._turn:
            self.counts.digests_heard += 1
            known = self._replicas.get(zid)
            if known is None:
                if len(self._replicas) >= MOST_REPLICAS and not self._forget_silent():
                    self.counts.refused += 1
                    return
                known = self._replicas[zid] = _Known(0.0, None)
            known.heard = time.monotonic()
            known.digest = payload if len(payload) <= MOST_BYTES else b""
            self._turn.notify_all()

    def _forget_silent(self) -> bool:
        """Forget replicas that were not heard for ten intervals; tells whether there were any."""
        silent = [zid for zid, known in self._replicas.items() if self._is_silent(known)]
        for zid in silent:
            del self._replicas[zid]
        return bool(silent)

    def _is_silent(self, known: _Known) -> bool:
        return known.heard < time.monotonic() - self._eras.interval / 100

    def _align_on(self, delay: float | None) -> None:
        """Align with everyone whose digest differs, one after the other."""
        if delay is not None:
            self._begin(delay)
        while True:
            with self._turn:
                while not self._closed:
                    waiting = [z for z, k in self._replicas.items() if k.digest is not None]
                    if waiting:
                        break
                    self._turn.wait()
                if self._closed:
                    return
                zid = _next_of(waiting, self._replicas)
                known = self._replicas.pop(zid)
                self._replicas[zid] = known
                payload, known.digest = known.digest, None
            assert payload is not None
            try:
                digest = decode_digest(payload, self._eras)
            except DecodeError as error:
                self._malformed(f"a digest of {zid}", error)
                continue
            with self._lock:
                diff = self.replica.heard_digest(digest, _now())
            known.differs = diff is not None
            if diff is not None:
                self.counts.differences += 1
                heard = self.counts.replies_heard
                self._align(zid, diff, ALIGN_TIME)
                answered = self.counts.replies_heard > heard
                known.unanswered = 0 if answered else known.unanswered + 1

    def _begin(self, delay: float) -> None:
        """Take everything from the first replica that answers, if one does.

        A link may take its time to come up. After an interval the digests of others say as much.
        """
        end = time.monotonic() + max(self._eras.interval / 1000, 4 * delay)
        while self._sleep_until((time.time() + delay) * 1000):
            heard = self.counts.replies_heard
            self._align("*", Discovery(), DISCOVERY_TIME)
            if self.counts.replies_heard > heard or time.monotonic() >= end:
                return
            delay = DISCOVERY_RETRY.after(max(delay, 0.1))

    def _align(self, zid: str, first: AlignmentQuery, timeout: float) -> None:
        """Ask a replica, and go on until there is nothing left to ask."""
        waiting: deque[tuple[str, AlignmentQuery]] = deque([(zid, first)])
        try:
            for _ in range(MOST_QUERIES):
                if not waiting or self._closed:
                    return
                waiting.extend(self._ask(*waiting.popleft(), timeout))
            self.counts.refused += 1
        except (ZError, OSError) as error:
            if not self._closed and not self._session.is_closed():
                self.counts.failures += 1
                log.warning("storage '%s': an alignment ended early: %s", self.name, error)

    def _ask(
        self, zid: str, query: AlignmentQuery, timeout: float
    ) -> Iterator[tuple[str, AlignmentQuery]]:
        """Send one query; gives the next one, and the replica that it is for."""
        self.counts.queries_sent += 1
        replies = self._session.get(
            self.aligner(zid),
            attachment=encode_query(query),
            consolidation=ConsolidationMode.NONE,
            timeout=timeout,
            allowed_destination=Locality.REMOTE,
            cancellation_token=self._token,
        )
        for answer in replies:
            if self._closed:
                return
            sample = answer.ok
            if sample is None or sample.attachment is None:
                continue
            self.counts.replies_heard += 1
            try:
                reply = decode_reply(sample.attachment.to_bytes())
            except DecodeError as error:
                self._malformed(f"a reply of {zid}", error)
                continue
            if not fits(query, reply):
                self.counts.unexpected += 1
                continue
            whom = reply.zid if isinstance(reply, DiscoveryReply) else zid
            for piece, value in _pieces(reply, sample):
                latest = int(NTP64.from_nanos(time.time_ns() + MAX_AHEAD_NS))
                with self._lock:
                    more = self.replica.heard_reply(piece, value, latest)
                    self._tell()
                yield from ((whom, one) for one in more)
            if isinstance(query, Discovery):
                # One replica is enough: the others have the same, or their digests will say.
                return

    def _malformed(self, what: str, error: DecodeError) -> None:
        self.counts.malformed += 1
        log.warning("storage '%s': %s cannot be read: %s", self.name, what, error)

    # ------------------------------------------------------------------------------- answering

    def _asked(self, query: Query) -> None:
        self.counts.queries_heard += 1
        self._service.later(query, self._answer)

    def _answer(self, query: Query) -> None:
        try:
            self._send_replies(query)
        except DecodeError as error:
            self._malformed("an alignment query", error)
            raise
        except (ZError, OSError) as error:
            if not self._closed:
                self.counts.failures += 1
                log.warning("storage '%s': a replica was not answered: %s", self.name, error)
            raise

    def _send_replies(self, query: Query) -> None:
        if query.attachment is None:
            raise DecodeError("an alignment query has no attachment")
        replies = self.replica.answer(decode_query(query.attachment.to_bytes()), _now())
        while not self._service.is_over(query):
            with self._lock:
                piece = list(itertools.islice(replies, PIECE))
                many = self._values_of_many(piece)
            if not piece:
                return
            values = many | self._values(piece)
            for reply in piece:
                self._reply(query, reply, values)

    def _values_of_many(self, replies: list[AlignmentReply]) -> dict[Event, Value]:
        """The values of puts with wildcards; the lock is held."""
        values: dict[Event, Value] = {}
        for reply in replies:
            if isinstance(reply, Retrieval) and reply.event.action is Action.PUT_MANY:
                update = self._contents.update_of_many(reply.event.name or "")
                if update is None or (update.put_time, update.put_id) != reply.event.stamp:
                    continue
                if update.value is not None:
                    values[reply.event] = update.value
        return values

    def _values(self, replies: list[AlignmentReply]) -> dict[Event, Value]:
        """The values of puts of keys, as the volume has them."""
        wanted: dict[str, Event] = {}
        for reply in replies:
            if isinstance(reply, Retrieval) and reply.event.action is Action.PUT:
                key = self.replica.key_of(reply.event)
                if key is not None:
                    wanted[key] = reply.event
        return {
            wanted[entry.key]: entry.value
            for entry in self._read(list(wanted))
            # Another value since: the next digest tells of it.
            if entry.value is not None and (entry.time, entry.id) == wanted[entry.key].stamp
        }

    def _reply(self, query: Query, reply: AlignmentReply, values: dict[Event, Value]) -> None:
        payload, encoding = b"", None
        if isinstance(reply, Retrieval) and reply.event.action in (Action.PUT, Action.PUT_MANY):
            value = values.get(reply.event)
            if value is None:
                return
            payload = value.payload or b""
            encoding = Encoding.from_wire(value.encoding_id, value.schema or None)
            reply = Retrieval(reply.event, value.attachment)
        query.reply(
            self.aligner(self._zid), payload, encoding=encoding, attachment=encode_reply(reply)
        )
        self.counts.replies_sent += 1


def _next_of(waiting: Sequence[str], replicas: Mapping[str, _Known]) -> str:
    """Whose turn it is of replicas that wait, in the order in which they were heard.

    Those go first that answered the last time: anybody can publish digests of replicas that are
    not there, and each question that nobody answers takes its time.
    """
    return min(waiting, key=lambda zid: replicas[zid].unanswered)


def _pieces(reply: AlignmentReply, sample: Sample) -> Iterator[tuple[AlignmentReply, Value | None]]:
    """A reply with its value, in pieces that hold the storage up only shortly."""
    if isinstance(reply, EventsMetadata):
        for first in range(0, len(reply.events), PIECE):
            yield EventsMetadata(reply.events[first : first + PIECE]), None
    elif isinstance(reply, Retrieval):
        encoding = sample.encoding
        yield (
            reply,
            Value(sample.payload.to_bytes(), encoding.id, encoding.schema or b"", reply.attachment),
        )
    else:
        yield reply, None


def _now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000

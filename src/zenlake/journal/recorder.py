"""The recorder: hears keys, writes them to a journal, keeps the ledger, replies for them.

    session ─► columns ─► writer ─► durable watermark ─► told on the bus
       │          ├─────► ledger ─► gaps ─► healer ─► writer
       │          └─────► latest values ─► replies
       └─► heartbeats ─► ledger, and writer if they tell something new

One thread for each key expression takes what came and hands it on; nothing here touches a sample.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from zenlake.errors import JournalError, LocalError, ZError
from zenlake.journal.disk.files import JournalFiles, LocalFiles
from zenlake.journal.disk.layout import partition_of
from zenlake.journal.disk.watermark import Watermark
from zenlake.journal.ingest.columns import ColumnSink, ColumnSubscriber, declare
from zenlake.journal.ingest.future import FutureTimes
from zenlake.journal.ingest.ring import Ring
from zenlake.journal.ingest.rows import batches_of, timestamp_of
from zenlake.journal.ledger import checkpoint, heartbeats
from zenlake.journal.ledger.account import Gap
from zenlake.journal.ledger.heal import Healer, Patient
from zenlake.journal.ledger.inbox import Inbox
from zenlake.journal.options import Options, checked_name, distinct
from zenlake.journal.reading.reader import Journal
from zenlake.journal.schema import HEALED, HLC_BIAS
from zenlake.journal.serving.acknowledge import Expected, Place
from zenlake.journal.serving.documents import Documents
from zenlake.journal.serving.remember import RememberedValues
from zenlake.journal.serving.serve import JournalReplies
from zenlake.journal.writing.writer import JournalWriter
from zenlake.keys import intersects
from zenlake.node.advanced_keys import publishers_of

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.api.subscribe import Subscriber
    from zenlake.clock import Timestamp
    from zenlake.journal.ledger.heartbeats import Heartbeat
    from zenlake.journal.ledger.ledger import Ledger, Opened
    from zenlake.node.sample import Sample

__all__ = ["Recorder"]

log = logging.getLogger("zenlake.journal")

TELL_EVERY: Final = 0.05
"""Seconds between two watermarks told on the bus, at least."""

GRACE: Final = 0.1
"""How long a sample may come after a heartbeat that tells of it, in seconds."""

PUT_ASIDE_EVERY: Final = 5.0
"""Seconds between two ledgers put aside."""

CLOSE_SECONDS: Final = 5.0
"""How long closing waits for a disk that takes nothing."""

WITHDRAW_AFTER: Final = 1.0
"""How long the disk may take nothing before others are asked for the keys, in seconds."""

ACK_TIME: Final = 5.0
"""How long an acknowledged put waits to be heard, and again for the disk, in seconds."""

SETTLE_TIME: Final = 1.0
"""How long a query about the past waits for the disk, in seconds."""


class Recorder:
    """Records until it is closed."""

    def __init__(
        self, session: Session, options: Options, files: JournalFiles | None = None
    ) -> None:
        """Open the journal, go on where it ended, and begin to hear.

        Args:
            session: What is recorded is heard through it.
            options: What to record, where, and how.
            files: The disk operations to use; without them those of this machine.
        """
        self._session = session
        self._files = files or LocalFiles(options.path)
        self._exprs = distinct(options.key_exprs)
        name = checked_name(options)
        self._writer = JournalWriter.open(
            options.path,
            name=name,
            partitions=options.partitions,
            fsync=options.fsync,
            segment_bytes=options.segment_bytes,
            segment_age=options.segment_age,
            retain_bytes=options.retain_bytes,
            retain_age=options.retain_age,
            hold_bytes=options.hold_bytes,
            on_full=options.on_full,
            files=self._files,
        )
        try:
            self._set_up(options)
        except BaseException:
            self._writer.close()
            raise
        try:
            self._begin(options)
        except BaseException:
            self.close()
            raise

    def _set_up(self, options: Options) -> None:
        """Find everything as the last run left it; nothing is heard yet."""
        if options.name not in (None, self._writer.name):
            raise LocalError(
                f"the journal in {options.path} is called '{self._writer.name}', and keeps its "
                f"name: leave '{options.name}' out, or record into another folder"
            )
        self._closed = False
        self.journal = Journal.open(options.path)
        #: Held while rows are handed on, so that writer and ledger see them in one order.
        self._order = threading.Lock()
        #: Held while the ledger is looked at; never while the disk is waited for.
        self._lock = threading.Lock()
        self._ledger = self._caught_up()
        self._drops_before = dict(self._ledger.drops)
        self._dropped_seen = 0
        self._put_aside_offsets: dict[int, int] = {}
        self._end = threading.Event()
        self._memory = RememberedValues(
            self.journal, self._files, self._writer, self._entered, self._end
        )
        #: Acknowledged puts that wait for their rows.
        self._expected = Expected()
        self._news = threading.Event()
        self.rows = 0
        self.bytes = 0
        self._failure: ZError | None = None
        self._future = FutureTimes(self._session._runtime)
        #: What was heard lately, if only what lies around events is to be written.
        self.ring: Ring | None = None
        if options.around is not None:
            self.ring = Ring(
                round(options.around.before * 1e6),
                round(options.around.after * 1e6),
                options.around.most_bytes,
            )
        self._sinks = [ColumnSink(self._writer.partitions) for _ in self._exprs]
        #: Held while a sink's rows are taken and handed on.
        self._taking = [threading.Lock() for _ in self._exprs]
        self._subscribers: list[ColumnSubscriber] = []
        self._healer: Healer | None = None
        self._answers: JournalReplies | None = None
        #: What publishers say of their numbers, and who hears it.
        self._beats = Inbox()
        self._beating: list[Subscriber[None]] = []
        self._hearing: list[threading.Thread] = []
        self._others: list[threading.Thread] = []

    def _begin(self, options: Options) -> None:
        around = options.around
        # What was let go on purpose is not asked for again.
        if options.heal and around is None:
            self._healer = Healer(self._session, self._gaps_of, self._heal)
            self._healer.opened(self._ledger.open_gaps())
        self._writer.on_durable(lambda _: self._news.set())
        for number, (expr, sink) in enumerate(zip(self._exprs, self._sinks, strict=True)):
            self._subscribers.append(declare(self._session, expr, sink))
            self._hearing.append(
                self._thread("recorder", lambda s=sink, n=number: self._hear(s, n))  # type: ignore[misc]
            )
        for expr in self._exprs if around is None else ():
            # `@adv` is verbatim: the expressions themselves never mean these keys.
            self._beating.append(
                self._session.declare_subscriber(publishers_of(expr), self._beats.push)
            )
        if around is not None:
            self._beating.append(
                self._session.declare_subscriber(around.key_expr, lambda _: self._happened())
            )
        self._hearing.append(self._thread("heartbeats", self._hear_beats))
        self._others.append(self._thread("watermark", self._tell))
        self._others.append(self._thread("memory", self._memory.run))
        self._answers = JournalReplies(
            self._session,
            self.journal,
            Documents(self.watermark, self.report, self.stats),
            # Values that were let go make the latest of those that were kept a wrong answer.
            self._matching if options.answer and around is None else None,
            self._settle,
            self._exprs,
            acknowledge=self._acknowledge,
            time=options.answer and options.answer_time and around is None,
            complete=options.complete,
        )

    def _thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name=f"zenlake {name}", daemon=True)
        thread.start()
        return thread

    # ---------------------------------------------------------------------------------- facts

    @property
    def name(self) -> str:
        """What the journal is called."""
        return self._writer.name

    @property
    def failure(self) -> ZError | None:
        """Why it records no more, if it does not."""
        return self._failure

    def watermark(self) -> Watermark:
        """How far the journal is durable."""
        return self._writer.watermark

    def report(self) -> dict[str, object]:
        """What the ledger says."""
        with self._lock:
            self._count_drops()
            return self._ledger.report()

    def totals(self) -> dict[str, int]:
        """What the ledger says, added up."""
        with self._lock:
            self._count_drops()
            return self._ledger.totals()

    @property
    def dropped(self) -> int:
        """How many samples could not be kept since it began."""
        return self._writer.stats.dropped_rows + sum([sink.dropped for sink in self._sinks])

    def stats(self) -> dict[str, object]:
        """How it goes."""
        writer = self._writer.stats
        return {
            "key_exprs": list(self._exprs),
            "rows": self.rows,
            "bytes": self.bytes,
            "durable": list(self._writer.watermark.offsets),
            "queued_bytes": writer.queued_bytes,
            "dropped": self.dropped,
            "disk_full": writer.full,
            "stuck": writer.stuck,
            "retries": writer.retries,
            "future": {"replaced": self._future.replaced, "dropped": self._future.dropped},
            "heartbeats": {"heard": self._beats.heard, "refused": self._beats.refused},
            "latest": self._memory.counts,
            "around": None if self.ring is None else self.ring.counts,
            "healing": {} if self._healer is None else self._healer.counts,
        }

    # -------------------------------------------------------------------------------- hearing

    def _hear(self, sink: ColumnSink, number: int) -> None:
        try:
            while sink.wait():
                self._take(sink, number)
            self._take(sink, number)
        except Exception as error:
            self._ended("recording", error)

    def _ended(self, what: str, error: Exception) -> None:
        """A thread of the recorder cannot go on: the recorder must be opened again."""
        if self._closed and isinstance(error, ZError):
            return
        log.error("%s into %s ended: %s", what, self.journal.path, error)
        self._failure = (
            error if isinstance(error, ZError) else JournalError(f"{what} failed: {error!r}")
        )

    def _take(self, sink: ColumnSink, number: int) -> None:
        with self._taking[number]:
            for partition, heard in sink.take():
                batch = self._own(heard, number)
                if batch.num_rows:
                    self._hand_on(partition, batch)

    def _own(self, batch: Any, number: int) -> Any:
        """The rows that no expression before this one has heard too."""
        before = [expr for expr in self._exprs[:number] if intersects(expr, self._exprs[number])]
        if not before:
            return batch
        key = batch.column("key")
        other = np.array(
            [any(intersects(e, name) for e in before) for name in key.dictionary.to_pylist()]
        )
        if not other.any():
            return batch
        return batch.filter(pa.array(~other[key.indices.to_numpy(zero_copy_only=False)]))

    def _hand_on(self, partition: int, batch: Any) -> None:
        batch = self._future.believed(batch)
        if not batch.num_rows:
            return
        with self._order:
            parts = [(partition, batch)]
            if self.ring is not None:
                parts = self.ring.enter(partition, batch)
            for number, rows in parts:
                self._write(number, rows)

    def _happened(self) -> None:
        """An event: what was heard before it is written."""
        try:
            with self._order:
                assert self.ring is not None
                for partition, batch in self.ring.event(time.time_ns() // 1000):
                    self._write(partition, batch)
        except Exception as error:
            self._ended("recording around an event", error)

    def _write(self, partition: int, batch: Any) -> None:
        """Write rows and enter them everywhere; `_order` is held."""
        # Waits while the disk is slower than the network; links are held up meanwhile.
        self._writer.append(partition, batch)
        with self._lock:
            first = self._ledger.offsets.get(partition, 0)
            opened = self._ledger.enter(partition, batch)
        self.rows += batch.num_rows
        self.bytes += _payload_bytes(batch)
        self._memory.enter(batch, partition, first)
        self._expected.entered(batch, partition, first)
        if opened and self._healer is not None:
            self._healer.opened(opened)

    def _hear_beats(self) -> None:
        try:
            while beats := self._beats.take():
                # A number whose sample came before the heartbeat is not missing, nor is one that
                # it overtook on the way: a publisher may beat while it publishes.
                self._take_all()
                if beats := self._news_in(beats):
                    self._beats.rest(GRACE)
                    self._take_all()
                    self._heed(beats)
        except Exception as error:
            self._ended("hearing heartbeats", error)

    def _news_in(self, beats: list[Heartbeat]) -> list[Heartbeat]:
        """The heartbeats that tell something which the rows do not."""
        count = self._writer.partitions
        with self._lock:
            return [
                beat for beat in beats if self._ledger.is_news(partition_of(beat.key, count), beat)
            ]

    def _heed(self, beats: list[Heartbeat]) -> None:
        """Write down what heartbeats tell that the rows do not."""
        partitions = self._writer.partitions
        opened: list[Opened] = []
        with self._order:
            news = self._news_in(beats)
            if not news:
                return
            now = time.time_ns() // 1000
            stamp = self._session.new_timestamp()
            for partition, batch in heartbeats.batches_of(news, partitions, now, stamp):
                self._writer.append(partition, batch)
                with self._lock:
                    opened += self._ledger.enter(partition, batch)
        if opened and self._healer is not None:
            self._healer.opened(opened)

    def _entered(self) -> dict[int, int]:
        """The offset after the last row that was handed on, of each partition."""
        with self._order:
            return dict(self._ledger.offsets)

    # -------------------------------------------------------------------------------- healing

    def _gaps_of(self, partition: int, source: str) -> tuple[list[Gap], Gap | None]:
        with self._lock:
            account = self._ledger.account(partition, source)
            return ([], None) if account is None else (list(account.gaps), account.announced_gap)

    def _heal(self, patient: Patient, samples: list[Sample]) -> None:
        """Write what was asked for, if it did not come by itself meanwhile."""
        parts = batches_of(
            samples,
            self._writer.partitions,
            HEALED,
            time.time_ns() // 1000,
            lambda sample: self._sent(patient, sample),
        )
        for partition, batch in parts:
            if partition != patient.partition:
                continue
            with self._order:
                kept = self._lacking(partition, patient.source, batch)
                if not kept.num_rows:
                    continue
                self._writer.append(partition, kept)
                with self._lock:
                    first = self._ledger.offsets.get(partition, 0)
                    self._ledger.enter(partition, kept)
                self.rows += kept.num_rows
                self._memory.enter(kept, partition, first)

    def _sent(self, patient: Patient, sample: Sample) -> Timestamp:
        """A time for a healed sample without one: before what followed it, not that of now."""
        now = self._session.new_timestamp()
        if sample.source_info is None:
            return now
        with self._lock:
            account = self._ledger.account(patient.partition, patient.source)
            number = sample.source_info.source_sn
            hlc = None if account is None else account.sent_before(number)
        return now if hlc is None else timestamp_of(hlc, now.id_bytes)

    def _lacking(self, partition: int, source: str, batch: Any) -> Any:
        """The rows whose numbers are missing still, each once."""
        wanted: dict[int, int] = {}
        with self._lock:
            account = self._ledger.account(partition, source)
            for row, number in enumerate(batch.column("source_sn").to_pylist()):
                if account is not None and account.lacks(number):
                    wanted.setdefault(number, row)
        return batch.take(pa.array(wanted.values(), pa.int64()))

    # ------------------------------------------------------------------------------ answering

    def _matching(self, expr: str) -> list[tuple[str, int, bytes, Any]]:
        """The latest values; a query that comes early waits until they are remembered."""
        if not self._memory.wait():
            return []
        self._take_all()
        return self._memory.matching(expr)

    def _take_all(self) -> None:
        """Hand on what came up to now: who puts and then asks finds what was put."""
        if self._failure is None and not self._end.is_set():
            for number, sink in enumerate(self._sinks):
                self._take(sink, number)

    def _settle(self) -> None:
        """Make durable what came up to now, for who asks for the past; but not at any price."""
        self._take_all()
        with contextlib.suppress(ZError):
            self._writer.flush(SETTLE_TIME)

    def _acknowledge(self, key: str, stamp: Timestamp, publish: Callable[[], None]) -> Place:
        """Publish a put, and tell where its row lies when that is durable."""
        hlc = (stamp.seconds << 32 | stamp.fraction) - HLC_BIAS
        with self._expected.expect(key, hlc, stamp.id_bytes) as put:
            publish()
            self._take_all()
            partition, offset = self._expected.wait(put, ACK_TIME)
        self._writer.flush(ACK_TIME)
        if self._writer.watermark.offsets[partition] <= offset:
            raise LocalError(f"the journal '{self.name}' could not keep '{key}': is the disk full?")
        return partition, offset

    # -------------------------------------------------------------------------------- telling

    def _tell(self) -> None:
        """Tell the watermark after it moved, and put the ledger aside now and then."""
        due = time.monotonic() + PUT_ASIDE_EVERY
        while not self._end.is_set():
            if self._news.wait(max(0.0, min(due - time.monotonic(), WITHDRAW_AFTER))):
                self._news.clear()
                self._tell_watermark()
            if time.monotonic() >= due:
                due = time.monotonic() + PUT_ASIDE_EVERY
                try:
                    self._put_aside()
                except (OSError, ZError) as error:
                    log.warning("the ledger of %s stays as it was: %s", self.journal.path, error)
            self._mind_answers()
            self._end.wait(TELL_EVERY)

    def _mind_answers(self) -> None:
        """Reply for keys only while what is heard is kept: a value that stands still is none."""
        answers, stats = self._answers, self._writer.stats
        if answers is None or self._session.is_closed():
            return
        stuck = stats.stuck and time.monotonic() - stats.stuck_since >= WITHDRAW_AFTER
        if self._failure is not None or stuck:
            if answers.answers_keys:
                log.warning("journal '%s' answers for no keys while it is not written", self.name)
                answers.withdraw_keys()
        elif not stats.stuck:
            answers.answer_keys()

    def _tell_watermark(self) -> None:
        if self._answers is not None and not self._session.is_closed():
            self._answers.tell_watermark()

    def _put_aside(self) -> None:
        """Write the ledger down, for rows that are durable."""
        if self._writer.stats.dropped_rows != self._dropped_seen:
            self._catch_up_anew()
        with self._lock:
            self._count_drops()
            if self._ledger.offsets == self._put_aside_offsets:
                return
            offsets = dict(self._ledger.offsets)
            text = json.dumps(self._ledger.state())
        while not self._durable(offsets):
            if self._end.wait(TELL_EVERY):
                return
        checkpoint.write(self.journal.path, text)
        self._put_aside_offsets = offsets

    def _durable(self, offsets: dict[int, int]) -> bool:
        durable = self._writer.watermark.offsets
        return all(durable[partition] >= offset for partition, offset in offsets.items())

    def _caught_up(self) -> Ledger:
        """The ledger of what is durable; damage of the past does not stop the present."""
        where = self.journal.path
        return checkpoint.caught_up(
            self.journal,
            checkpoint.stored(where),
            lambda error: log.error("the ledger lacks what %s lost: %s", where, error),
        )

    def _catch_up_anew(self) -> None:
        """The disk refused rows that the ledger had entered already: read again what is there."""
        with self._order:
            self._dropped_seen = self._writer.stats.dropped_rows
            self._writer.flush(CLOSE_SECONDS)
            ledger = self._caught_up()
            with self._lock:
                ledger.drops = self._ledger.drops
                self._ledger = ledger

    def _count_drops(self) -> None:
        counted = {
            "disk full": self._writer.stats.dropped_rows,
            "not taken in time": sum([sink.dropped for sink in self._sinks]),
            "around no event": 0 if self.ring is None else self.ring.passed,
            "too much before an event": 0 if self.ring is None else self.ring.overflowed,
        }
        for reason, count in counted.items():
            total = self._drops_before.get(reason, 0) + count
            if total:
                self._ledger.drops[reason] = total

    # -------------------------------------------------------------------------------- closing

    def close(self) -> None:
        """Hear no more, write what was heard, and put the ledger aside.

        A disk that takes nothing is given a few seconds; then what is not on it is told, and
        raised as an error.
        """
        if self._closed:
            return
        until = time.monotonic() + CLOSE_SECONDS
        failed = self._failure
        self._closed = True
        for subscriber in self._subscribers:
            subscriber.undeclare()
        if not self._session.is_closed():
            for beating in self._beating:
                beating.undeclare()
        self._beats.close()
        for sink in self._sinks:
            sink.close()
        self._end.set()
        self._news.set()
        for thread in self._hearing:
            thread.join(max(0.0, until - time.monotonic()))
        if self.ring is not None:
            self.ring.close()
        try:
            if self._failure is None:
                self._writer.flush(max(0.1, until - time.monotonic()))
        except ZError as error:
            self._failure = self._not_on_disk(error)
        finally:
            # With the writer gone nothing waits for the disk any more.
            if self._failure is not None:
                with contextlib.suppress(ZError, OSError):
                    self._writer.close(0.1)
            for thread in (*self._hearing, *self._others):
                thread.join()
            if self._healer is not None:
                self._healer.close()
            try:
                if self._failure is None:
                    self._finish()
            finally:
                if self._answers is not None:
                    self._answers.close()
                with contextlib.suppress(ZError):
                    self._writer.close(CLOSE_SECONDS)
                self.journal.close()
        if failed is None and self._failure is not None:
            raise self._failure

    def _not_on_disk(self, error: ZError) -> ZError:
        """What is lost when the recorder ends before the disk took it."""
        waiting = sum(batch.num_rows for sink in self._sinks for _, batch in sink.take())
        rows = self._writer.unwritten + waiting
        words = (
            f"{rows:,} rows that were heard are not on disk ({self._writer.stats.queued_bytes:,} "
            f"bytes): {error}"
        )
        log.error("journal '%s': %s", self.name, words)
        return JournalError(words)

    def _finish(self) -> None:
        """All is durable: the ledger of all of it is put aside."""
        if self._ledger.offsets != dict(enumerate(self._writer.watermark.offsets)):
            self._catch_up_anew()
        with self._lock:
            self._count_drops()
            text = json.dumps(self._ledger.state())
        checkpoint.write(self.journal.path, text)
        self._tell_watermark()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _payload_bytes(batch: Any) -> int:
    """How many bytes the values of a batch have, from where they end."""
    value = batch.column("value")
    ends = np.frombuffer(value.buffers()[1], np.int32)
    return int(ends[value.offset + len(value)]) - int(ends[value.offset])

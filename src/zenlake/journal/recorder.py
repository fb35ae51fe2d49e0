"""The recorder: hears keys, writes them to a journal, keeps the ledger, replies for them.

    session ─► columns ─► writer ─► durable watermark ─► told on the bus
       │          ├─────► ledger ─► gaps ─► healer ─► writer
       │          └─────► latest values ─► replies
       └─► heartbeats ─► ledger, and writer if they tell something new

One thread for each key expression takes what came and hands it on; nothing here touches a sample.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from zenlake.errors import JournalError, LocalError, ZError
from zenlake.journal.disk.files import JournalFiles, LocalFiles
from zenlake.journal.disk.watermark import Watermark
from zenlake.journal.ingest.future import FutureTimes
from zenlake.journal.ingest.hearing import HeardColumns
from zenlake.journal.ingest.ring import Ring
from zenlake.journal.ingest.rows import hlc_of
from zenlake.journal.intake import RowIntake
from zenlake.journal.ledger.heal import Healer
from zenlake.journal.ledger.inbox import Inbox
from zenlake.journal.ledger.outages import add_outage, known_outages
from zenlake.journal.ledger.past import PastAsker, unrecorded
from zenlake.journal.ledger.running import RunningLedger
from zenlake.journal.options import Options, checked_name, distinct
from zenlake.journal.reading.reader import Journal
from zenlake.journal.serving.acknowledge import Expected, Place
from zenlake.journal.serving.documents import Documents
from zenlake.journal.serving.remember import RememberedValues
from zenlake.journal.serving.serve import JournalReplies
from zenlake.journal.writing.writer import JournalWriter
from zenlake.node.advanced_keys import publishers_of

if TYPE_CHECKING:
    from datetime import datetime

    from zenlake.api.session import Session
    from zenlake.api.subscribe import Subscriber
    from zenlake.clock import Timestamp
    from zenlake.node.narrowed_write import NarrowedWrite
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
            retain=options.retain,
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
        self._outages = known_outages(options.path)
        self._ledger = RunningLedger(self.journal, self._writer.partitions, self._drops)
        self._dropped_seen = 0
        self._end = threading.Event()
        self._memory = RememberedValues(
            self.journal, self._files, self._writer, self._ledger.offsets, self._end
        )
        #: Acknowledged puts that wait for their rows.
        self._expected = Expected()
        self._news = threading.Event()
        self._failure: ZError | None = None
        self._future = FutureTimes(self._session.runtime)
        self._intake = RowIntake(
            self._writer,
            self._ledger,
            self._memory,
            self._expected,
            self._future,
            self._session.new_timestamp,
        )
        if options.around is not None:
            self._intake.ring = Ring(
                round(options.around.before * 1e6),
                round(options.around.after * 1e6),
                options.around.most_bytes,
            )
        self._heard = HeardColumns(self._exprs, self._writer.partitions, self._intake.heard)
        self._healer: Healer | None = None
        self._past: PastAsker | None = None
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
            self._healer = Healer(self._session, self._ledger.gaps_of, self._intake.healed)
            self._healer.opened(self._ledger.open_gaps())
            self._intake.healer = self._healer
        self._writer.on_durable(lambda _: self._news.set())
        for number in range(len(self._exprs)):
            self._heard.declare(self._session, number)
            self._hearing.append(
                self._thread("recorder", lambda n=number: self._hear(n))  # type: ignore[misc]
            )
        for expr in self._exprs if around is None else ():
            # `@adv` is verbatim: the expressions themselves never mean these keys.
            self._beating.append(
                self._session.declare_subscriber(publishers_of(expr), self._beats.push)
            )
        if options.heal and around is None:
            self._past = PastAsker(self._session, self._exprs, self._enter_past)
        if around is not None:
            self._beating.append(
                self._session.declare_subscriber(around.key_expr, lambda _: self._happened())
            )
        self._hearing.append(self._thread("heartbeats", self._hear_beats))
        self._session.runtime.narrowed_writes.add_store(self._narrowed)
        self._others.append(self._thread("watermark", self._tell))
        self._others.append(self._thread("memory", self._memory.run))
        self._answers = JournalReplies(
            self._session,
            self.journal,
            Documents(self.watermark, self._ledger_document, self.stats),
            # Values that were let go make the latest of those that were kept a wrong answer.
            self._matching if options.answer and around is None else None,
            self._settle,
            self._exprs,
            is_ready=self._memory.remembered.is_set,
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

    @property
    def rows(self) -> int:
        """How many rows it has written."""
        return self._intake.rows

    @property
    def payload_bytes(self) -> int:
        """How many bytes the values had that it heard and wrote."""
        return self._intake.bytes

    @property
    def ring(self) -> Ring | None:
        """What was heard lately, if only what lies around events is to be written."""
        return self._intake.ring

    def watermark(self) -> Watermark:
        """How far the journal is durable."""
        return self._writer.watermark

    def report(self) -> dict[str, object]:
        """What the ledger says."""
        return self._ledger.report()

    def _ledger_document(self) -> dict[str, object]:
        return self._ledger.report() | {"outages": self._outages}

    def was_away(self, began: datetime, ended: datetime) -> None:
        """Note that nothing was recorded for a time, though the router ran."""
        add_outage(self.journal.path, began, ended)
        self._outages = known_outages(self.journal.path)

    def totals(self) -> dict[str, int]:
        """What the ledger says, added up."""
        return self._ledger.totals()

    @property
    def dropped(self) -> int:
        """How many samples could not be kept since it began."""
        return self._writer.stats.dropped_rows + self._heard.dropped

    def stats(self) -> dict[str, object]:
        """How it goes."""
        writer = self._writer.stats
        return {
            "key_exprs": list(self._exprs),
            "rows": self.rows,
            "bytes": self._intake.bytes,
            "durable": list(self._writer.watermark.offsets),
            "queued_bytes": writer.queued_bytes,
            "dropped": self.dropped,
            "retired": {
                "rows": writer.retired_rows,
                "bytes": writer.retired_bytes,
                "failures": writer.retire_failures,
            },
            "clock_ahead": writer.held_seconds,
            "disk_full": writer.full,
            "stuck": writer.stuck,
            "outages": self._outages,
            "retries": writer.retries,
            "future": {"replaced": self._future.replaced, "dropped": self._future.dropped},
            "heartbeats": {"heard": self._beats.heard, "refused": self._beats.refused},
            "latest": self._memory.counts,
            "around": None if self.ring is None else self.ring.counts,
            "healing": {} if self._healer is None else self._healer.counts,
            "past": {} if self._past is None else self._past.counts,
        }

    # -------------------------------------------------------------------------------- hearing

    def _hear(self, number: int) -> None:
        try:
            self._heard.run(number)
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

    def _narrowed(self, write: NarrowedWrite) -> bool:
        """Record a write of many keys as one of each key that its sender may write.

        False: these are too many.
        """
        samples = write.samples([key for key, *_ in self._matching(write.expr)])
        try:
            self._intake.narrowed(samples or [])
        except Exception as error:
            self._ended("recording", error)
        return samples is not None

    def _happened(self) -> None:
        """An event: what was heard before it is written."""
        try:
            self._intake.event()
        except Exception as error:
            self._ended("recording around an event", error)

    def _hear_beats(self) -> None:
        try:
            while beats := self._beats.take():
                # A number whose sample came before the heartbeat is not missing, nor is one that
                # it overtook on the way: a publisher may beat while it publishes.
                self._take_all()
                if beats := self._ledger.news_in(beats):
                    self._beats.rest(GRACE)
                    self._take_all()
                    self._intake.heartbeats(beats)
        except Exception as error:
            self._ended("hearing heartbeats", error)

    # -------------------------------------------------------------------------------- healing

    def _enter_past(self, samples: list[Sample]) -> int:
        """Write what publishers said before, without what the journal has; gives how many."""

        def unrecorded_of(batch: Any, partition: int) -> Any:
            # What the publisher says now may be under way, beside the copy that it kept.
            self._end.wait(GRACE)
            self._take_all()
            self._writer.flush(SETTLE_TIME)
            return unrecorded(batch, self.journal, partition, self._ledger.has)

        return self._intake.past(samples, unrecorded_of)

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
            self._heard.take_all()

    def _settle(self) -> None:
        """Make durable what came up to now, for a query for the past; but not at any price."""
        self._take_all()
        with contextlib.suppress(ZError):
            self._writer.flush(SETTLE_TIME)

    def _acknowledge(self, key: str, stamp: Timestamp, publish: Callable[[], None]) -> Place:
        """Publish a put, and tell where its row lies when that is durable."""
        with self._expected.expect(key, hlc_of(stamp), stamp.id_bytes) as put:
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
        self._ledger.put_aside(self._wait_durable)

    def _wait_durable(self, offsets: Mapping[int, int]) -> bool:
        while not self._durable(offsets):
            if self._end.wait(TELL_EVERY):
                return False
        return True

    def _durable(self, offsets: Mapping[int, int]) -> bool:
        durable = self._writer.watermark.offsets
        return all(durable[partition] >= offset for partition, offset in offsets.items())

    def _catch_up_anew(self) -> None:
        """The disk refused rows that the ledger had entered already: read again what is there."""
        with self._ledger.order:
            self._dropped_seen = self._writer.stats.dropped_rows
            self._writer.flush(CLOSE_SECONDS)
            self._ledger.catch_up_anew()

    def _drops(self) -> dict[str, int]:
        """How many samples were not kept since it began, by reason."""
        return {**self._intake.lost(), "not taken in time": self._heard.dropped}

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
        self._session.runtime.narrowed_writes.remove_store(self._narrowed)
        self._heard.close()
        if not self._session.is_closed():
            for beating in self._beating:
                beating.undeclare()
        self._beats.close()
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
            if self._past is not None:
                self._past.close()
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
        rows = self._writer.unwritten + self._heard.abandon()
        words = (
            f"{rows:,} rows that were heard are not on disk ({self._writer.stats.queued_bytes:,} "
            f"bytes): {error}"
        )
        log.error("journal '%s': %s", self.name, words)
        return JournalError(words)

    def _finish(self) -> None:
        """All is durable: the ledger of all of it is put aside."""
        if self._ledger.offsets() != dict(enumerate(self._writer.watermark.offsets)):
            self._catch_up_anew()
        self._ledger.finish()
        self._tell_watermark()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

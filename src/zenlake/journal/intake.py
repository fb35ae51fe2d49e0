"""Rows on their way into a journal: to the writer, the ledger, and what is remembered of values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from zenlake.journal.ingest.rows import batches_of, timestamp_of
from zenlake.journal.ledger import heartbeats
from zenlake.journal.schema import HEALED, HEARD

if TYPE_CHECKING:
    from zenlake.clock import Timestamp
    from zenlake.journal.ingest.future import FutureTimes
    from zenlake.journal.ingest.ring import Ring
    from zenlake.journal.ledger.heal import GapQuery, Healer
    from zenlake.journal.ledger.heartbeats import Heartbeat
    from zenlake.journal.ledger.ledger import Opened
    from zenlake.journal.ledger.running import RunningLedger
    from zenlake.journal.serving.acknowledge import Expected
    from zenlake.journal.serving.remember import RememberedValues
    from zenlake.journal.writing.writer import JournalWriter
    from zenlake.node.sample import Sample


class RowIntake:
    """Writes rows and enters them wherever they count, in one order (`RunningLedger.order`)."""

    def __init__(
        self,
        writer: JournalWriter,
        ledger: RunningLedger,
        memory: RememberedValues,
        expected: Expected,
        future: FutureTimes,
        new_timestamp: Callable[[], Timestamp],
    ) -> None:
        """`expected`: acknowledged puts that wait for their rows."""
        self._writer = writer
        self._ledger = ledger
        self._memory = memory
        self._expected = expected
        self._future = future
        self._new_timestamp = new_timestamp
        #: What was heard lately, if only what lies around events is to be written.
        self.ring: Ring | None = None
        #: Asks for samples that are missing, if they are to be asked for.
        self.healer: Healer | None = None
        self.rows = 0
        self.bytes = 0

    # ------------------------------------------------------------------------------ as heard

    def heard(self, partition: int, batch: Any) -> None:
        """Take rows as they were heard."""
        batch = self._future.believed(batch)
        if not batch.num_rows:
            return
        with self._ledger.order:
            parts = [(partition, batch)]
            if self.ring is not None:
                parts = self.ring.enter(partition, batch)
            for number, rows in parts:
                self._write(number, rows)

    def event(self) -> None:
        """Write what was heard before an event of now."""
        with self._ledger.order:
            assert self.ring is not None
            for partition, batch in self.ring.event(time.time_ns() // 1000):
                self._write(partition, batch)

    def _write(self, partition: int, batch: Any) -> None:
        """Write rows and enter them everywhere; `order` is held."""
        opened = self._enter(partition, batch)
        self.bytes += _payload_bytes(batch)
        self._tell_healer(opened)

    def _enter(self, partition: int, batch: Any) -> list[Opened]:
        # Waits while the disk is slower than the network; links are held up meanwhile.
        self._writer.append(partition, batch)
        first, opened = self._ledger.enter(partition, batch)
        self.rows += batch.num_rows
        self._memory.enter(batch, partition, first)
        self._expected.entered(batch, partition, first)
        return opened

    def _tell_healer(self, opened: list[Opened]) -> None:
        if opened and self.healer is not None:
            self.healer.opened(opened)

    def heartbeats(self, beats: list[Heartbeat]) -> None:
        """Write down what heartbeats tell that the rows do not."""
        opened: list[Opened] = []
        with self._ledger.order:
            news = self._ledger.news_in(beats)
            if not news:
                return
            now = time.time_ns() // 1000
            stamp = self._new_timestamp()
            for partition, batch in heartbeats.batches_of(
                news, self._writer.partitions, now, stamp
            ):
                self._writer.append(partition, batch)
                opened += self._ledger.enter(partition, batch)[1]
        self._tell_healer(opened)

    def narrowed(self, samples: list[Sample]) -> None:
        """Take what was written to many keys, a row for each key that its sender may write."""
        for partition, batch in self._batches(samples, HEARD):
            self.heard(partition, batch)

    # -------------------------------------------------------------------------- asked for again

    def healed(self, query: GapQuery, samples: list[Sample]) -> None:
        """Write what was asked for, if it did not come by itself meanwhile."""
        for partition, batch in self._batches(samples, HEALED, lambda one: self._sent(query, one)):
            if partition != query.partition:
                continue
            with self._ledger.order:
                kept = self._ledger.lacking(partition, query.source, batch)
                if kept.num_rows:
                    self._enter(partition, kept)

    def _sent(self, query: GapQuery, sample: Sample) -> Timestamp:
        """A time for a healed sample without one: before what followed it, not that of now."""
        now = self._new_timestamp()
        if sample.source_info is None:
            return now
        number = sample.source_info.source_sn
        hlc = self._ledger.sent_before(query.partition, query.source, number)
        return now if hlc is None else timestamp_of(hlc, now.id_bytes)

    def past(self, samples: list[Sample], unrecorded: Callable[[Any, int], Any]) -> int:
        """Write what publishers said before; gives how many rows.

        `unrecorded`: the rows of a batch that its partition does not have.
        """
        written = 0
        for partition, batch in self._batches(samples, HEALED):
            kept = unrecorded(batch, partition)
            with self._ledger.order:
                # That took its time: a gap may have been healed by the same samples meanwhile.
                kept = self._ledger.not_entered(partition, kept)
                if kept.num_rows:
                    self._enter(partition, kept)
            written += kept.num_rows
        return written

    def _batches(
        self,
        samples: list[Sample],
        origin: int,
        stamp: Callable[[Sample], Timestamp] | None = None,
    ) -> list[tuple[int, Any]]:
        """Return samples as rows, by partition; `stamp` gives a time to those without one."""
        now = time.time_ns() // 1000
        stamp = stamp or (lambda _: self._new_timestamp())
        return batches_of(samples, self._writer.partitions, origin, now, stamp)

    # ------------------------------------------------------------------------------- counters

    def lost(self) -> Mapping[str, int]:
        """Rows that were heard and let go, by reason."""
        ring = self.ring
        return {
            "disk full": self._writer.stats.dropped_rows,
            "around no event": 0 if ring is None else ring.passed,
            "too much before an event": 0 if ring is None else ring.overflowed,
        }


def _payload_bytes(batch: Any) -> int:
    """How many bytes the values of a batch have, from where they end."""
    value = batch.column("value")
    ends = np.frombuffer(value.buffers()[1], np.int32)
    return int(ends[value.offset + len(value)]) - int(ends[value.offset])

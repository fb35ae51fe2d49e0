"""A journal as a stream: what Spark asks between two micro-batches.

One of these lives in a process of its own beside the driver for as long as the query runs; copies
of it do the reading. The offsets it gives are in the checkpoint before the rows between them are
read, and the rows between two offsets of a journal never change: that is what makes a query
exactly-once if its sink is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from zenlake.spark.network import open_journal
from zenlake.spark.offsets import (
    DataLoss,
    Offsets,
    Range,
    behind,
    cut,
    from_json,
    limit_bytes,
    limit_rows,
    to_json,
)
from zenlake.spark.options import OptionError, SourceOptions
from zenlake.spark.position import begin, kept
from zenlake.spark.pushdown import EVERYTHING
from zenlake.spark.scan import rows

__all__ = ["JournalStream"]

TRIGGER_DELAY = 15 * 60.0


class JournalStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a journal as it grows."""

    def __init__(self, options: SourceOptions, names: Sequence[str]) -> None:
        """`names`: of the columns."""
        self.options = options
        self.names = list(names)
        self.subscribed = options.keys()
        self.rows = options.count("maxRecordsPerTrigger") or options.count("maxOffsetsPerTrigger")
        self.bytes = options.size("maxBytesPerTrigger")
        self.least = options.count("minOffsetsPerTrigger")
        self.patience = options.seconds("maxTriggerDelay", TRIGGER_DELAY)
        if self.least and self.rows and self.least > self.rows:
            raise OptionError(
                f"minOffsetsPerTrigger={self.least} is above maxRecordsPerTrigger={self.rows}: "
                "no batch can have as many"
            )
        self._until: Offsets | None = None
        self._last = time.monotonic()
        self._journal: Any = None
        self._open_things: ExitStack | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What is open stays here.
        return {**self.__dict__, "_journal": None, "_open_things": None}

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        journal = self._open()
        return to_json(journal.id, begin(self.options, journal, "latest"))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next micro-batch ends, so that it is no larger than the limit."""
        journal = self._open()
        first = self._resume(start)
        end = self._latest()
        if self._until is not None:
            # The watermark never falls, except when an older copy of the journal was restored.
            end = tuple(min(there, asked) for there, asked in zip(end, self._until, strict=True))
        elif self._too_little(first, end):
            return start
        end = tuple(max(begin, stop) for begin, stop in zip(first, end, strict=True))
        if not isinstance(limit, ReadAllAvailable):
            most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self.bytes
            if most:
                segments = [journal.segments(number) for number in range(journal.partitions)]
                end = limit_bytes(first, end, segments, most)
            if isinstance(limit, ReadMaxRows):
                end = limit_rows(first, end, limit.max_rows)
        return to_json(journal.id, end)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit that the options set."""
        if self.rows:
            return ReadMaxRows(self.rows)
        return ReadMaxBytes(self.bytes) if self.bytes else ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any]:
        """How far the journal is, whatever the limit: progress events show the lag by it."""
        return to_json(self._open().id, self._latest())

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on there is nothing new."""
        self._until = self._latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        journal = self._open()
        last = from_json(end, journal.id, journal.partitions)
        first = self._resume(start)
        self._last = time.monotonic()
        ranges = [
            Range(number, begin, stop)
            for number, (begin, stop) in enumerate(zip(first, last, strict=True))
            if begin < stop
        ]
        pieces = self.options.count("minPartitions") or os.cpu_count() or 1
        return [InputPartition(piece) for piece in cut(ranges, pieces)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""
        if partition.value is None:
            return iter(())
        return rows(self.options, self.names, partition.value, EVERYTHING, self.subscribed)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: a journal has other readers, and lets rows go by its own rules."""

    def stop(self) -> None:
        """Let go of the journal."""
        if self._open_things is not None:
            self._open_things.close()
        self._journal = self._open_things = None

    def _open(self) -> Any:
        if self._journal is None:
            self._open_things = ExitStack()
            self._journal = self._open_things.enter_context(open_journal(self.options))
        return self._journal

    def _latest(self) -> Offsets:
        offsets: Offsets = self._open().watermark().offsets
        return offsets

    def _resume(self, start: dict[str, Any]) -> Offsets:
        """The offsets to go on from, if their rows are still there."""
        journal = self._open()
        try:
            first = from_json(start, journal.id, journal.partitions)
        except DataLoss:
            if self.options.flag("failOnDataLoss", True):
                raise
            first = tuple(journal.earliest())
        return kept(self.options, journal, first, self._latest())

    def _too_little(self, start: Offsets, end: Offsets) -> bool:
        """Whether to wait for more rows before a micro-batch is worth it."""
        if self.least is None or behind(start, end) >= self.least:
            return False
        return time.monotonic() - self._last < self.patience

"""What a recorder remembers: the latest values, found again at the start, put aside as it goes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from zenlake.errors import JournalCorrupt, ZError
from zenlake.journal.serving import recall
from zenlake.journal.serving.latest import COLUMNS, Latest, LatestValue
from zenlake.recorded.time_bounds import HLC_BIAS

if TYPE_CHECKING:
    from zenlake.journal.disk.files import JournalFiles
    from zenlake.journal.reading.reader import Journal
    from zenlake.journal.writing.writer import JournalWriter

__all__ = ["RememberedValues"]

log = logging.getLogger("zenlake.journal")

LOOK_EVERY: Final = 1.0
"""Seconds between two looks at whether a segment was sealed."""

COLLECT_EVERY: Final = 30.0
LIFESPAN: Final = 86_400
"""How long deletions are remembered, in seconds."""

WORTH: Final = 4
"""How many bytes of rows must be new before one byte of values is put aside again."""

KEY_BYTES: Final = 100
"""About what is put aside with a value."""

MOST_SOUGHT: Final = 100
"""More keys than this are not looked for one by one: all rows are read."""

DURABLE_WAIT: Final = 0.05


class RememberedValues:
    """The latest values of a journal that is being written.

    They are read from the journal beside what is heard: the order of rows does not matter. What was
    put aside stands for all rows before it. It is put aside anew when a segment was sealed, if that
    costs little beside what was written since the last time; so a start reads about as much as the
    values have, and what came since.
    """

    def __init__(
        self,
        journal: Journal,
        files: JournalFiles,
        writer: JournalWriter,
        entered: Callable[[], Mapping[int, int]],
        end: threading.Event,
    ) -> None:
        """`entered`: for each partition the offset after the last row that `enter` was told of."""
        self._journal = journal
        self._files = files
        self._writer = writer
        self._entered = entered
        self._end = end
        self._latest = Latest()
        self.remembered = threading.Event()
        #: Whether all rows of the journal, and no others, were entered.
        self._complete = False
        #: How many blocks or segments could not be read.
        self._damaged = 0
        #: How many rows were read to remember.
        self.read = 0
        self._sealed = 0
        self._bytes = 0

    @property
    def counts(self) -> dict[str, int]:
        """How much is held, and what did not fit."""
        return self._latest.counts

    def enter(self, batch: Any, partition: int, first: int) -> None:
        """Hear of rows that were handed to the writer, of which the first has this offset."""
        self._latest.enter(batch, partition, first)

    def matching(self, expr: str) -> list[tuple[str, int, bytes, LatestValue]]:
        """Key, time, id of the clock and value, for each key that `expr` stands for."""
        return self._latest.matching(expr)

    def wait(self) -> bool:
        """Wait until they are remembered; False when the end comes first."""
        while not self.remembered.wait(0.1):
            if self._end.is_set():
                return False
        return True

    # ---------------------------------------------------------------------------------- thread

    def run(self) -> None:
        """Remember, and then see to what is put aside and forgotten, until the end."""
        try:
            self._remember()
            self._complete = not (self._end.is_set() or self._damaged)
        except (OSError, ZError) as error:
            log.error("the values in %s cannot be remembered: %s", self._journal.path, error)
        finally:
            self.remembered.set()
        due = time.monotonic() + COLLECT_EVERY
        while not self._end.wait(LOOK_EVERY):
            if time.monotonic() >= due:
                due = time.monotonic() + COLLECT_EVERY
                self._latest.collect((int(time.time()) - LIFESPAN << 32) - HLC_BIAS)
            if self._is_worth():
                try:
                    self.put_aside()
                except (OSError, ZError) as error:
                    log.warning("%s stays as it was: %s", recall.LATEST, error)

    def _remember(self) -> None:
        """Enter what was put aside, and the rows of earlier runs that came after it."""
        offsets: dict[int, int] = {}
        try:
            recalled = recall.read(self._files, self._journal)
            if recalled is not None:
                for known in recalled.known():
                    self._latest.restore(known)
                if recalled.left_out:
                    self._remember_older(recalled)
                offsets = dict(enumerate(recalled.offsets))
        except (JournalCorrupt, OSError, ValueError, KeyError, TypeError) as error:
            log.warning("the latest values are read from the rows of the journal: %s", error)
        for partition in range(self._journal.partitions):
            start = offsets.get(partition, 0)
            for segment in self._journal.segments(partition):
                if segment.sealed and segment.end > start:
                    self._sealed -= 1
                    self._bytes -= segment.bytes
            self._remember_rows(partition, start)

    def _remember_rows(self, partition: int, start: int) -> None:
        """Enter the rows from `start` on that are kept and can be read."""
        end = self._journal.watermark().offsets[partition]
        for batch in self._journal.salvage(partition, start, end, COLUMNS, self._leave_out):
            if self._end.is_set():
                return
            self._latest.enter(batch, partition)
            self.read += batch.num_rows

    def _remember_older(self, recalled: recall.Recalled) -> None:
        """Enter older rows of keys whose newest ones are no longer kept."""
        keys = sorted(recalled.left_out) if len(recalled.left_out) <= MOST_SOUGHT else None
        for partition, (first, end) in enumerate(
            zip(recalled.earliest, recalled.offsets, strict=True)
        ):
            for batch in self._journal.salvage(
                partition, first, end, COLUMNS, self._leave_out, keys=keys
            ):
                if self._end.is_set():
                    return
                self._latest.enter(batch, partition)
                self.read += batch.num_rows

    def _leave_out(self, error: Exception) -> None:
        """What is not known is not put aside: a copy of the segment may still bring it back."""
        self._damaged += 1
        log.error("the latest values lack what %s lost: %s", self._journal.path, error)

    def _is_worth(self) -> bool:
        stats = self._writer.stats
        if stats.sealed == self._sealed:
            return False
        counts = self._latest.counts
        known = counts["bytes"] + KEY_BYTES * (counts["keys"] + counts["tombstones"])
        return stats.bytes - self._bytes >= WORTH * known

    def put_aside(self) -> bool:
        """Write down what is known, unless that is more or less than the journal has."""
        writer = self._writer
        if not self._complete or writer.stats.dropped_rows or not writer.watermark.synced:
            return False
        self._sealed, size = writer.stats.sealed, writer.stats.bytes
        offsets = self._entered()
        places = [offsets.get(partition, 0) for partition in range(self._journal.partitions)]
        done = recall.write(self._files, self._journal.id, places, self._latest, self._durable)
        if done:
            self._bytes = size
        return done

    def _durable(self) -> bool:
        """Whether what is known by now is durable, after waiting for it."""
        offsets = self._entered()
        while not self._writer.stats.dropped_rows:
            durable = self._writer.watermark.offsets
            if all(durable[partition] >= offset for partition, offset in offsets.items()):
                return True
            if self._end.wait(DURABLE_WAIT):
                break
        return False

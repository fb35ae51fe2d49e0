"""Rules that keep some keys for a shorter time than the journal: `camera/**` for two hours.

Whole segments go by age and size (`writing/retention`). A rule takes the values of its keys out of
segments that stay for others. The row stays, *retired*: its key, its time, who sent it and as which
number, so that offsets have no holes and the ledger knows that it came. Readers pass over it.

    segment sealed ─ age of the rule ─► written anew, a piece a turn ─► listed, old one removed

Deletions are not retired: without them, values from before would be the latest again.
`writing/rules` decides.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import JournalCorrupt
from zenlake.journal.disk.files import JournalFiles
from zenlake.journal.disk.layout import JournalInfo
from zenlake.journal.disk.segment import Segment
from zenlake.journal.reading.blocks import SealedFile
from zenlake.journal.reading.filter import KeyChoice, RowFilter
from zenlake.journal.schema import HEARTBEAT, PUT, RETIRED, ROS_SIZE
from zenlake.journal.writing.partition import Partition
from zenlake.journal.writing.readers import read_by_all
from zenlake.journal.writing.rewrite import SegmentRewrite, columns_of
from zenlake.journal.writing.rules import DueSegment, RetainRules

__all__ = ["Retired", "Retiring"]

STEP_BYTES: Final = 8 << 20
"""How much of a segment is taken over before the writer looks at its queue again."""

LOOK: Final = 60.0
"""At least so often, in seconds, it is looked for segments that are due."""

_log = logging.getLogger("zenlake.journal")


@dataclass(slots=True)
class Retired:
    """What rules have taken since the journal was opened."""

    rows: int = 0
    bytes: int = 0
    segments: int = 0
    #: Segments that could not be written anew: damaged, or without room for both files.
    failures: int = 0


class Retiring:
    """Applies rules to the segments of a journal, a bounded piece of work at a time."""

    def __init__(self, files: JournalFiles, info: JournalInfo, rules: RetainRules) -> None:
        """For the one thread that writes the journal."""
        self._files = files
        self._info = info
        self._rules = rules
        #: Up to which age the rows of a segment were looked at, by partition and first offset.
        self._seen: dict[tuple[int, int], float] = {}
        self._look_at = -math.inf
        self._work: SegmentRewrite | None = None
        self._due: DueSegment | None = None
        self.counts: Final = Retired()

    def step(self, partitions: Sequence[Partition], now: float) -> float:
        """Do a piece of work if there is one; gives seconds until the next."""
        if not self._rules:
            return math.inf
        if self._work is None:
            # A look that is further away was planned before the date was set back.
            if now < self._look_at <= now + LOOK:
                return self._look_at - now
            self._begin(partitions, now)
        if self._work is not None:
            self._go_on(self._work, partitions, now)
        return max(0.0, self._look_at - now)

    def close(self) -> None:
        """Leave a segment that is not finished as it was."""
        if self._work is not None:
            self._work.abandon()
            self._work = None

    def _begin(self, partitions: Sequence[Partition], now: float) -> None:
        """Find the next segment, and whether there is anything in it that goes."""
        listed = {
            (partition.number, segment.first)
            for partition in partitions
            for segment in partition.manifest.segments
        }
        self._seen = {place: age for place, age in self._seen.items() if place in listed}
        due = self._rules.next(
            [partition.manifest for partition in partitions],
            now,
            read_by_all(self._files, self._info),
            lambda number, segment: self._seen.get((number, segment.first), 0.0),
        )
        if due is None:
            self._look_at = now + min(LOOK, self._rules.least / 2)
            return
        self._due = due
        gone = self._rules.gone(due.age)
        try:
            if _any_to_go(self._files, due.segment, gone):
                self._work = SegmentRewrite(
                    self._files,
                    self._info.id,
                    due.partition,
                    due.segment,
                    lambda batch: _retired(batch, gone),
                )
            else:
                self._seen[due.partition, due.segment.first] = due.age
        except (JournalCorrupt, OSError) as error:
            self._failed(due, now, error)

    def _go_on(self, work: SegmentRewrite, partitions: Sequence[Partition], now: float) -> None:
        due = self._due
        assert due is not None
        try:
            if not work.step(STEP_BYTES):
                return
            gone = self._rules.gone(due.age)
            before = due.segment
            made = work.seal(key for key in before.keys or () if gone(key))
            self._work = None  # from here on it may be listed, whatever fails
            if partitions[due.partition].exchange(before, made):
                self.counts.segments += 1
                self.counts.rows += made.retired - before.retired
                self.counts.bytes += before.bytes - made.bytes
            else:
                work.abandon()  # it was let go meanwhile
            self._seen[due.partition, before.first] = due.age
        except (JournalCorrupt, OSError) as error:
            self._failed(due, now, error)

    def _failed(self, due: DueSegment, now: float, error: Exception) -> None:
        """Leave the segment as it is: for good if it is damaged, else for a while."""
        self.close()
        self.counts.failures += 1
        if isinstance(error, JournalCorrupt):
            self._seen[due.partition, due.segment.first] = math.inf
        else:
            self._look_at = now + LOOK
        _log.warning("rows of %s could not be retired: %s", due.segment.path, error)


def _any_to_go(files: JournalFiles, segment: Segment, gone: Callable[[str], bool]) -> bool:
    """Whether a segment has rows that are to go; values are not read for it."""
    narrow = RowFilter(columns=("key", "kind", "origin"), check=False)
    rows: Iterator[Any] = SealedFile(files, segment.path).read(
        segment.first, segment.end, narrow, KeyChoice(()), False
    )
    return any(_to_go(batch, gone).any() for batch in rows)


def _to_go(
    batch: pa.RecordBatch, gone: Callable[[str], bool]
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows of a batch are values that are to go."""
    keys = batch.column("key")
    meant = np.fromiter((gone(key) for key in keys.dictionary.to_pylist()), np.bool_)
    mask: np.ndarray[Any, np.dtype[np.bool_]] = meant[np.asarray(keys.indices)]
    mask &= np.asarray(batch.column("origin")) < HEARTBEAT
    mask &= np.asarray(batch.column("kind")) == PUT
    return mask


def _retired(batch: pa.RecordBatch, gone: Callable[[str], bool]) -> pa.RecordBatch:
    """The rows, those that go without what they said; what numbers them stays."""
    mask = _to_go(batch, gone)
    if not mask.any():
        return columns_of(batch, {})
    chosen = pa.array(mask)
    attached = batch.column("attachment")
    # The number of a sample of ROS 2 is in its attachment, which has one size.
    other = pc.fill_null(pc.not_equal(pc.binary_length(attached), ROS_SIZE), False)
    origin = np.where(mask, np.int8(RETIRED), np.asarray(batch.column("origin")))
    no_text = pa.scalar(None, pa.string())
    return columns_of(
        batch,
        {
            "value": pc.if_else(chosen, pa.scalar(b"", pa.binary()), batch.column("value")),
            "encoding_schema": pc.if_else(chosen, no_text, batch.column("encoding_schema")),
            "attachment": pc.if_else(
                pc.and_(chosen, other), pa.scalar(None, pa.binary()), attached
            ),
            "origin": pa.array(origin, pa.int8()),
        },
    )

"""The last sequence number of each source: what a publisher may forget.

The ledger knows these numbers too, and more, but not at the same moment: it counts rows after they
were written, may be behind or be counted anew, and unrolls numbers that went round. The watermark
says what is durable, so its numbers are those of the rows that it speaks of and no others.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.clock.zid import id_text
from zenlake.journal.uniform import only_value
from zenlake.recorded.words import source_text

__all__ = ["MOST_SOURCES", "SourceNumbers"]

#: Strangers name their sources themselves; beyond this many the one silent longest is forgotten.
MOST_SOURCES: Final = 1024
_HALF: Final = 1 << 31
_RANGE: Final = 1 << 32


class SourceNumbers:
    """Per `zid:eid` the greatest sequence number, which goes round after 2³² samples."""

    def __init__(self, known: dict[str, int] | None = None, most: int = MOST_SOURCES) -> None:
        #: Ordered, for the oldest gives way: a dict would look for it among all that were deleted.
        self._last: OrderedDict[str, int] = OrderedDict(known or {})
        self._most = most
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._last)

    def snapshot(self) -> dict[str, int]:
        """A copy of all numbers."""
        return dict(self._last)

    def take(self, batch: pa.RecordBatch) -> None:
        """Learn from rows, in the order they have."""
        sns = batch.column("source_sn")
        if sns.null_count == len(sns):
            return
        zids = batch.column("source_zid")
        eids = batch.column("source_eid")
        if sns.null_count or zids.null_count or eids.null_count:
            complete = pc.and_(pc.and_(zids.is_valid(), eids.is_valid()), sns.is_valid())
            zids, eids, sns = zids.filter(complete), eids.filter(complete), sns.filter(complete)
        if not len(sns):
            return
        eid, numbers = np.asarray(eids), np.asarray(sns)
        alone = only_value(zids)
        if alone is not None and (eid == eid[0]).all():
            self._learn(source_text(alone, eid[0]), numbers)
            return
        encoded = zids.dictionary_encode()
        names = [id_text(zid) for zid in encoded.dictionary.to_pylist()]
        together = np.asarray(encoded.indices).astype(np.int64) << 32 | (eid & (_RANGE - 1))
        # One sort puts the rows of each source together, in the order they have.
        order = np.argsort(together, kind="stable")
        sources, starts = np.unique(together[order], return_index=True)
        groups = np.split(numbers[order], starts[1:])
        for source, group in zip(sources.tolist(), groups, strict=True):
            self._learn(f"{names[source >> 32]}:{source & (_RANGE - 1)}", group)

    def _learn(self, source: str, numbers: Any) -> None:
        base = self._last.pop(source, None)
        if base is None:
            base = int(numbers[0])
        least, greatest = int(numbers.min()), int(numbers.max())
        if greatest - least < _HALF and abs(greatest - base) < _HALF:
            last = max(base, greatest)
        else:
            # The numbers went round: take what is furthest ahead, the short way.
            ahead = (numbers - base + _HALF) % _RANGE - _HALF
            last = (base + max(0, int(ahead.max()))) % _RANGE
        self._last[source] = last
        if len(self._last) > self._most:
            self._last.popitem(last=False)
            self.forgotten += 1

"""The last sequence number of each source: what a publisher may forget."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.clock.zid import id_text

__all__ = ["MOST_SOURCES", "SourceNumbers"]

#: Strangers name their sources themselves; beyond this many the one silent longest is forgotten.
MOST_SOURCES: Final = 1024
_HALF: Final = 1 << 31
_RANGE: Final = 1 << 32


class SourceNumbers:
    """Per `zid:eid` the greatest sequence number, which goes round after 2³² samples."""

    def __init__(self, known: dict[str, int] | None = None, most: int = MOST_SOURCES) -> None:
        self._last: dict[str, int] = dict(known or {})
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
            whole = pc.and_(pc.and_(zids.is_valid(), eids.is_valid()), sns.is_valid())
            zids, eids, sns = zids.filter(whole), eids.filter(whole), sns.filter(whole)
        encoded = zids.dictionary_encode()
        names = [id_text(zid) for zid in encoded.dictionary.to_pylist()]
        codes = np.asarray(encoded.indices).astype(np.int64)
        eid = np.asarray(eids)
        # Runs of one source are long: look at each distinct (zid, eid), not at each row.
        together = codes << 32 | (eid & (_RANGE - 1))
        numbers = np.asarray(sns)
        if together.size == 0:
            return
        if (together == together[0]).all():
            self._learn(f"{names[codes[0]]}:{eid[0]}", numbers)
            return
        for source in np.unique(together).tolist():
            rows = together == source
            name = f"{names[source >> 32]}:{source & (_RANGE - 1)}"
            self._learn(name, numbers[rows])

    def _learn(self, source: str, numbers: Any) -> None:
        base = self._last.pop(source, None)
        if base is None:
            base = int(numbers[0])
        # How far ahead of what is known, the short way round.
        ahead = (numbers - base + _HALF) % _RANGE - _HALF
        self._last[source] = (base + max(0, int(ahead.max()))) % _RANGE
        if len(self._last) > self._most:
            del self._last[next(iter(self._last))]
            self.forgotten += 1

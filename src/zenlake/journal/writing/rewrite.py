"""A sealed segment that is written anew, some blocks at a time.

Offsets have no holes, so every row stays in its place, whatever is taken out of it. The new file
has a name of its own: it is written and synced, then listed, and then the old one is removed.
Readers find one or the other, whole, and so does who comes after a crash.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from zenlake.errors import JournalCorrupt
from zenlake.journal.disk.files import JournalFiles
from zenlake.journal.disk.layout import TEMPORARY, folder, rewritten_path
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.writeahead import PACKED_BYTES, PACKED_ROWS, WriteAhead
from zenlake.journal.reading.blocks import SealedFile
from zenlake.journal.reading.filter import KeyChoice, RowFilter
from zenlake.journal.schema import RETIRED, UNNUMBERED

__all__ = ["SegmentRewrite", "columns_of"]


class SegmentRewrite:
    """One segment on its way from its old file into its new one."""

    def __init__(
        self,
        files: JournalFiles,
        journal: str,
        partition: int,
        segment: Segment,
        change: Callable[[pa.RecordBatch], pa.RecordBatch],
    ) -> None:
        """`change`: gives rows as they shall be, as many as it was given, without offsets."""
        self.segment: Final = segment
        self.partition: Final = partition
        self._files = files
        self._path = rewritten_path(segment.path)
        self._change = change
        source = SealedFile(files, segment.path)
        everything = RowFilter(check=True)
        self._rest = source.read(segment.first, segment.end, everything, KeyChoice(()), False)
        self._made = WriteAhead(files, journal, partition, segment.first, self._path + TEMPORARY)
        self._retired = 0

    def step(self, most: int | None = None) -> bool:
        """Take over rows of about so many bytes, or all; whether that was the rest.

        Raises `JournalCorrupt` where the old file is damaged, and `OSError` where there is no room.
        """
        run: list[pa.RecordBatch] = []
        rows = size = taken = 0
        done = True
        for batch in self._rest:
            changed = self._change(batch)
            self._retired += int(np.count_nonzero(np.asarray(changed.column("origin")) == RETIRED))
            if run and (rows + len(changed) > PACKED_ROWS or size + changed.nbytes > PACKED_BYTES):
                self._made.append(pa.concat_batches(run))
                run, rows, size = [], 0, 0
            run.append(changed)
            rows += len(changed)
            size += changed.nbytes
            taken += batch.nbytes
            if most is not None and taken >= most:
                done = False
                break
        if run:
            self._made.append(pa.concat_batches(run))
        self._made.fsync()
        return done

    def seal(self, retired_keys: Iterable[str] = ()) -> Segment:
        """The new segment, under its own name and not listed yet.

        `retired_keys`: keys of which all rows are retired now.
        """
        if self._made.next != self.segment.end:
            raise JournalCorrupt(
                f"{self.segment.path} has offsets up to {self._made.next}, not to "
                f"{self.segment.end}; restore it from a copy of the journal"
            )
        made = self._made.seal(self.segment.closed, self._path)
        named = frozenset(retired_keys) if self._retired and made.keys is not None else frozenset()
        return dataclasses.replace(made, retired=self._retired, retired_keys=named)

    def abandon(self) -> None:
        """Remove what was written; the old segment stays. Not once the new one may be listed."""
        self._made.close()
        home = folder(self.partition)
        lying = {f"{home}/{name}" for name in self._files.list(home)}
        for path in lying & {self._path + TEMPORARY, self._path}:
            with contextlib.suppress(OSError):
                self._files.remove(path)


def columns_of(batch: pa.RecordBatch, changed: dict[str, pa.Array]) -> pa.RecordBatch:
    """Rows without their offsets, and with these columns in the place of those that they had."""
    columns = [changed.get(field.name, batch.column(field.name)) for field in UNNUMBERED]
    return pa.RecordBatch.from_arrays(columns, schema=UNNUMBERED)

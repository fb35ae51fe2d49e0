"""Samples in the order of time, from pieces that are nearly so, in bounded memory.

    for rows in in_order(pieces): ...

A piece comes with a bound: nothing in it, or in those after it, is earlier. What is earlier than
the bound of the next piece is given away; what must wait for longer than memory lasts is put aside
in sorted runs, in a file without a name, and merged from there. Samples with the same timestamp
come in the order in which they were recorded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from zenlake.replay.rows import ROWS

__all__ = ["HELD", "Piece", "in_order"]

Piece: TypeAlias = "tuple[int, pa.Table]"
"""The least `hlc` of this piece and all after it, and rows in any order."""

HELD: Final = 192 << 20
"""How many bytes of rows wait in memory before they are put aside."""

RUN_ROWS: Final = 8192
GIVEN: Final = 65_536
_END: Final = (1 << 63) - 1


def in_order(pieces: Iterable[Piece], held: int = HELD) -> Iterator[pa.Table]:
    """The rows of all pieces in the order of (`hlc`, `partition`, `offset`)."""
    waiting: list[pa.Table] = []
    size = 0
    runs: list[_Run] = []
    bound = -_END - 1
    try:
        for least, rows in pieces:
            if least > bound:
                bound = least
                if waiting or runs:
                    if waiting:
                        runs.append(_Run(_sorted(waiting)))
                        waiting, size = [], 0
                    yield from _merged(runs, bound)
            waiting.append(rows)
            size += rows.nbytes
            if size > held:
                runs.append(_Run.aside(_sorted(waiting)))
                waiting, size = [], 0
        if waiting:
            runs.append(_Run(_sorted(waiting)))
        yield from _merged(runs, None)
    finally:
        for run in runs:
            run.close()


def _sorted(tables: list[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(tables).combine_chunks() if len(tables) > 1 else tables[0]
    if rows.num_rows < 2:
        return rows
    hlc = rows["hlc"].to_numpy()
    if (hlc[1:] > hlc[:-1]).all():
        return rows
    order = np.lexsort((rows["offset"].to_numpy(), rows["partition"].to_numpy(), hlc))
    return rows.take(pa.array(order))


def _merged(runs: list[_Run], bound: int | None) -> Iterator[pa.Table]:
    """What is earlier than the bound, out of all runs; those that are empty go."""
    while runs:
        # Of a run that has more than is loaded, only what is before its last loaded row is known.
        known = [run.last for run in runs if run.more]
        limit = min(known) if known else None
        if bound is not None and (limit is None or limit >= bound):
            limit = bound
        parts = [part for run in runs if (part := run.before(limit)) is not None]
        for run in [run for run in runs if run.empty]:
            run.close()
            runs.remove(run)
        if parts:
            merged = _sorted(parts)
            for start in range(0, merged.num_rows, GIVEN):
                yield merged.slice(start, GIVEN)
        elif limit is not None and limit != bound:
            for run in runs:
                if run.more and run.last == limit:
                    run.load()
        elif limit == bound:
            return


@final
class _Run:
    """Sorted rows, of which the first are in memory."""

    def __init__(self, head: pa.Table, file: IO[bytes] | None = None) -> None:
        self._head = head
        self._file = file
        self._next = 0
        self._batches = None if file is None else pa.ipc.open_file(file)
        if self._batches is not None:
            self.load()

    @classmethod
    def aside(cls, rows: pa.Table) -> _Run:
        """Rows that are put into a file without a name."""
        # The run closes it.
        file = tempfile.TemporaryFile(prefix="zenlake-replay-")  # noqa: SIM115
        with pa.ipc.new_file(file, ROWS) as writer:
            writer.write_table(rows, max_chunksize=RUN_ROWS)
        file.seek(0)
        return cls(ROWS.empty_table(), file)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def more(self) -> bool:
        return self._batches is not None and self._next < self._batches.num_record_batches

    @property
    def empty(self) -> bool:
        return not self._head.num_rows and not self.more

    @property
    def last(self) -> int:
        """The time of the last row that is loaded."""
        return int(self._head["hlc"][-1].as_py()) if self._head.num_rows else -_END - 1

    def load(self) -> None:
        assert self._batches is not None
        loaded = pa.Table.from_batches([self._batches.get_batch(self._next)])
        self._next += 1
        self._head = pa.concat_tables([self._head, loaded]).combine_chunks()

    def before(self, limit: int | None) -> pa.Table | None:
        """Take the loaded rows that are earlier than a limit; None if there are none."""
        head = self._head
        count = head.num_rows
        if limit is not None:
            count = int(np.searchsorted(head["hlc"].to_numpy(), limit, "left"))
        if not count:
            return None
        self._head = head.slice(count)
        return head.slice(0, count)

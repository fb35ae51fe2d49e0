"""Where recorded samples come from: a journal, a lake with its journal, or an answer in SQL.

    source = find("robot/**", range, lake="zenlake-data/lake")
    for rows in source.rows(): ...           # in the order of time

A source is fixed when it is found: what is recorded later is not in it, so that a replay that is
itself recorded never hears its own echo. Keys and times are read by pyarrow; no Spark is started.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.journal.ingest.rows import hlc_nanos
from zenlake.keys import KeyExpr, ResolvedRange, intersects
from zenlake.recorded.time_bounds import TimeBounds
from zenlake.replay.order import Piece, in_order
from zenlake.replay.rows import JOURNAL_COLUMNS, ROWS, from_answer, from_journal, from_lake

if TYPE_CHECKING:
    from zenlake.lake.history.samples import History, LakeSnapshot

__all__ = ["AnswerSource", "RecordedSource", "SampleSource", "find"]

LAKE: Final = "zenlake-data/lake"
JOURNAL: Final = "zenlake-data/journal"
EVERYTHING: Final = ResolvedRange()


class SampleSource(Protocol):
    """Recorded samples that can be read again and again."""

    def span(self) -> tuple[int, int] | None:
        """The first and the last moment (ns) that it may have samples of; None: it has none."""

    def rows(self, start: int | None = None) -> Iterator[pa.Table]:
        """The samples from a moment (ns) on, in the order of time."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A file or a segment: the least and the greatest `hlc`, and how it is read."""

    least: int
    greatest: int
    read: Callable[[ResolvedRange], Iterator[pa.Table]]


class RecordedSource:
    """The samples of key expressions in a range of time, as a journal or a lake has them now."""

    def __init__(
        self,
        keys: Sequence[str],
        range: ResolvedRange = EVERYTHING,
        *,
        journal: Journal | None = None,
        lake: str | os.PathLike[str] | None = None,
    ) -> None:
        """From a journal, from the tables of a lake, or from both, each sample once."""
        self.keys = [str(KeyExpr.of(key)) for key in keys]
        self.range = range
        self._parts: list[_Part] = []
        starts: Sequence[int] | None = None
        if lake is not None:
            starts = self._look(Path(os.fspath(lake)), journal)
        if journal is not None:
            self._journal_parts(journal, starts)
        self._parts.sort(key=lambda part: part.least)

    def _look(self, lake: Path, journal: Journal | None) -> Sequence[int]:
        """The files of the tables; gives where the journal goes on."""
        from zenlake.lake.history.samples import History
        from zenlake.lake.query.catalog import Catalog
        from zenlake.lake.table.location import LakeLocation

        if journal is None:
            raise LocalError("a lake is read together with its journal; name that, too")
        history = History(Catalog(LakeLocation(lake)), [journal])
        looked = history.look()
        files = looked.files
        lows, highs = ("min.hlc", "max.hlc")
        known = {lows, highs} <= set(files.column_names)
        bounds = {
            path: (low, high)
            for path, low, high in zip(
                files["path"].to_pylist(),
                files[lows].to_pylist() if known else [None] * files.num_rows,
                files[highs].to_pylist() if known else [None] * files.num_rows,
                strict=True,
            )
        }
        needed = dict.fromkeys(
            path for key in self.keys for path in history.needed(looked, key, self.range)
        )
        for path in needed:
            low, high = bounds[path]
            self._parts.append(
                _Part(
                    -(1 << 63) if low is None else int(low),
                    (1 << 63) - 1 if high is None else int(high),
                    lambda range, path=path: self._of_file(history, looked, path, range),  # type: ignore[misc]
                )
            )
        return looked.tails[0].committed

    def _of_file(
        self, history: History, looked: LakeSnapshot, path: str, range: ResolvedRange
    ) -> Iterator[pa.Table]:
        for number, key in enumerate(self.keys):
            if path not in history.needed(looked, key, range):
                continue
            for rows in history.file(path, key, range):
                mine = _without(rows, self.keys[:number])
                if mine.num_rows:
                    yield from_lake(mine)

    def _journal_parts(self, journal: Journal, starts: Sequence[int] | None) -> None:
        ends = journal.watermark().offsets
        for partition, end in enumerate(ends):
            first = 0 if starts is None else starts[partition]
            for segment in journal.segments(partition):
                begin, stop = max(first, segment.first), min(end, segment.end)
                if begin >= stop or not self._meets(segment.min_hlc, segment.max_hlc):
                    continue
                self._parts.append(
                    _Part(
                        segment.min_hlc,
                        segment.max_hlc,
                        lambda range, p=partition, b=begin, s=stop: self._of_journal(  # type: ignore[misc]
                            journal, p, b, s, range
                        ),
                    )
                )

    def _of_journal(
        self, journal: Journal, partition: int, start: int, end: int, range: ResolvedRange
    ) -> Iterator[pa.Table]:
        for batch in journal.scan(
            {partition: start},
            {partition: end},
            partition=partition,
            keys=self.keys,
            time=TimeBounds.of(range),
            columns=JOURNAL_COLUMNS,
        ):
            yield from_journal(batch, partition)

    def _meets(self, least: int, greatest: int) -> bool:
        first, last = TimeBounds.of(self.range).hlc
        return greatest >= first and least <= last

    def span(self) -> tuple[int, int] | None:
        """Where samples lie, as far as that is known without reading them."""
        if not self._parts:
            return None
        ends = [min(part.least for part in self._parts), max(part.greatest for part in self._parts)]
        low, high = (int(one) for one in hlc_nanos(np.array(ends, np.int64)))
        start, end = self.range.start_ns, self.range.end_ns
        return (
            low if start is None else max(low, start),
            high if end is None else min(high, end),
        )

    def rows(self, start: int | None = None) -> Iterator[pa.Table]:
        """The samples in the order of time."""
        range = self.range
        if start is not None and (range.start_ns is None or start > range.start_ns):
            range = ResolvedRange(start, range.end_ns, True, range.end_inclusive)
        return in_order(self._pieces(range))

    def _pieces(self, range: ResolvedRange) -> Iterator[Piece]:
        for part in self._parts:
            for rows in part.read(range):
                yield part.least, rows


class AnswerSource:
    """The rows of an answer in SQL, which lies in memory."""

    def __init__(self, answer: pa.Table) -> None:
        """It must have the columns `key`, `value`, and `time` or `hlc`."""
        ordered = list(in_order([(-(1 << 63), from_answer(answer))]))
        self._rows = pa.concat_tables(ordered) if ordered else ROWS.empty_table()

    def span(self) -> tuple[int, int] | None:
        """The times of its first and its last row."""
        if not self._rows.num_rows:
            return None
        hlc = self._rows["hlc"]
        ends = hlc_nanos(np.array([hlc[0].as_py(), hlc[-1].as_py()], np.int64))
        return int(ends[0]), int(ends[1])

    def rows(self, start: int | None = None) -> Iterator[pa.Table]:
        """The rows in the order of time."""
        first, _ = TimeBounds.of(ResolvedRange(start)).hlc
        # They lie in the order of time.
        earlier = int(np.searchsorted(self._rows["hlc"].to_numpy(), first))
        for part in self._rows.slice(earlier).to_batches(max_chunksize=65_536):
            yield pa.Table.from_batches([part])


def find(
    keys: str | Sequence[str],
    range: ResolvedRange = EVERYTHING,
    *,
    journal: str | os.PathLike[str] | None = None,
    lake: str | os.PathLike[str] | None = None,
) -> RecordedSource:
    """Samples of key expressions, from what is there.

    With a lake, its tables and the journal beside it (`journal`, if another is not named); with a
    journal alone, or where no lake lies, that journal.
    """
    exprs = [keys] if isinstance(keys, str) else list(keys)
    if lake is None and journal is not None:
        return RecordedSource(exprs, range, journal=Journal.open(journal))
    where = Path(os.fspath(LAKE if lake is None else lake)).expanduser()
    beside = where.parent / "journal" if journal is None else journal
    tables = where if (where / "samples" / "_delta_log").is_dir() else None
    if tables is None and lake is not None and journal is None and not Path(beside).is_dir():
        raise LocalError(
            f"{where} has no tables yet, and there is no journal beside it; name the journal: "
            "--journal DIR"
        )
    return RecordedSource(exprs, range, journal=Journal.open(beside), lake=tables)


def _without(rows: pa.Table, exprs: Sequence[str]) -> pa.Table:
    """The rows that none of these expressions means: each sample is given once."""
    if not exprs:
        return rows
    keys: Any = rows["key"]
    out = [
        key for key in pc.unique(keys).to_pylist() if any(intersects(expr, key) for expr in exprs)
    ]
    return rows.filter(pc.invert(pc.is_in(keys, pa.array(out, pa.string())))) if out else rows

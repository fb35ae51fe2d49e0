"""The rows that a commit put into a table which were not there before.

A commit that only adds files has added all their rows. One that also removes files has written most
rows again: what counts is how often a row is in the files that came, less how often it was in those
that went. Compaction (`dataChange` is false) changes no row.

A large commit is compared in parts, each with the rows of some keys, so that memory has a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import unquote
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.spark_source.tasks import FilePart, TableColumns, TableFile
from zenlake.spark.offsets import DataLoss

__all__ = ["Commit", "commit_of", "part_rows"]

PART_BYTES: Final = 32 << 20
"""Bytes of files whose rows are compared at once."""
_SIGN: Final = "\x00sign"
_PLACE: Final = "\x00place"


@final
@dataclass(frozen=True, slots=True)
class Commit:
    """The files of a commit that changed rows."""

    added: tuple[TableFile, ...]
    removed: tuple[TableFile, ...]

    @property
    def parts(self) -> int:
        """In how many parts its rows come: a file each, or some of the keys each."""
        if not self.added:
            return 0
        if not self.removed:
            return len(self.added)
        return 1 + sum(file.size for file in (*self.added, *self.removed)) // PART_BYTES


def commit_of(actions: Sequence[dict[str, Any]]) -> Commit:
    """Return the files of a commit, of its entry in the log."""
    added, removed = (
        tuple(
            TableFile(
                # The log has paths as they stand in addresses.
                unquote(one[kind]["path"]),
                one[kind].get("size") or 0,
                None,
                one[kind].get("partitionValues") or {},
            )
            for one in actions
            if kind in one and one[kind].get("dataChange", True)
        )
        for kind in ("add", "remove")
    )
    return Commit(added, removed)


def part_rows(
    place: str, columns: TableColumns, commit: Commit, part: int, spread_by: str | None
) -> Iterator[pa.Table]:
    """Give the rows of one part of a commit that were not there before.

    `place`: the folder of the table; `spread_by`: a column by whose values a large commit is cut.
    Raises `DataLoss` if a file that the commit added is gone; those that it removed may be.
    """
    if not commit.removed:
        yield from _rows(place, columns, commit.added[part])
        return
    count = commit.parts if spread_by is not None else 1
    if part >= count:
        return
    came = _part_of(place, columns, commit.added, part, count, spread_by)
    try:
        went = _part_of(place, columns, commit.removed, part, count, spread_by)
    except DataLoss:
        # Nobody can tell which rows are new: all of them may be.
        yield came
        return
    yield _less(came, went)


def _rows(place: str, columns: TableColumns, file: TableFile) -> Iterator[pa.Table]:
    # To the end of the file, however long the log says that it is.
    for batch in columns.rows(place, [FilePart(file, 0, file.size)]):
        yield pa.Table.from_batches([batch])


def _part_of(
    place: str,
    columns: TableColumns,
    files: Sequence[TableFile],
    part: int,
    count: int,
    spread_by: str | None,
) -> pa.Table:
    found = [columns.schema.empty_table()]
    for file in files:
        for rows in _rows(place, columns, file):
            if count > 1 and spread_by is not None:
                rows = rows.filter(_is_of_part(rows[spread_by], part, count))
            found.append(rows)
    return pa.concat_tables(found)


def _is_of_part(values: pa.ChunkedArray, part: int, count: int) -> pa.Array:
    coded = values.combine_chunks().dictionary_encode()
    mine = [crc32(repr(one).encode()) % count == part for one in coded.dictionary.to_pylist()]
    return pc.fill_null(pa.array(mine, pa.bool_()).take(coded.indices), part == 0)


def _less(came: pa.Table, went: pa.Table) -> pa.Table:
    """Return the rows that are in one table more often than in another."""
    names = came.column_names
    signed = [
        _compared(rows)
        .append_column(_SIGN, pa.array([sign] * rows.num_rows, pa.int64()))
        .append_column(_PLACE, pa.array(range(rows.num_rows), pa.int64()))
        for rows, sign in ((came, 1), (went, -1))
    ]
    # Where a row of the second table has a larger place, its own is not taken.
    signed[1] = signed[1].set_column(len(names) + 1, _PLACE, pa.nulls(went.num_rows, pa.int64()))
    groups = pa.concat_tables(signed).group_by(names, use_threads=False)
    counted = groups.aggregate([(_SIGN, "sum"), (_PLACE, "max")])
    more = counted.filter(pc.greater(counted[f"{_SIGN}_sum"], 0))
    places = sorted(
        place
        for place, times in zip(
            more[f"{_PLACE}_max"].to_pylist(), more[f"{_SIGN}_sum"].to_pylist(), strict=True
        )
        for _ in range(times)
    )
    return came.take(pa.array(places, pa.int64()))


def _compared(rows: pa.Table) -> pa.Table:
    """Return rows as Arrow can group them: lists, maps and structs as text."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            texts = pa.array(map(repr, rows[field.name].to_pylist()), pa.string())
            rows = rows.set_column(number, field.name, texts)
    return rows

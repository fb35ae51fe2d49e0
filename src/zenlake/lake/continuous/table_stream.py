"""The tables of a lake as streams of Spark: files with the rows that came, each file once.

    feed = Feed(folder, table, start)
    feed.more({"journal": 4})                 # writes the next file, if the table has more
    session.readStream.schema(…).parquet(str(feed.folder))

A position is, for each journal, the offset after the last row of each partition. The rows between
two positions are the same however often they are read and however often files were merged in
between, as long as retention leaves them there. Which file has which rows is noted before it is
written; after a death it is written again, the same, under the same name, and Spark knows by the
name whether it has seen it. What views and alerts publish is left out: it would be their own input
again.

`latest` is no stream. It is what streams are joined with: the newest value of each key, looked at
anew for every micro-batch.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from zenlake.expr.tree import Comparison, Field, Literal
from zenlake.journal import Journal
from zenlake.lake.continuous.generation import (
    INPUT,
    Position,
    SchemaMoved,
    changed_column,
    kinds_of,
)
from zenlake.lake.history.samples import History
from zenlake.lake.model.sample_rows import DAY
from zenlake.lake.query.catalog import Catalog
from zenlake.lake.table.data_files import open_file
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation
from zenlake.lake.table.pruning import matching

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = [
    "OWN",
    "OffsetRange",
    "TableRowsSource",
    "TableStream",
    "at",
    "pieces",
    "rows_between",
    "stream_folder",
]

OWN: Final = ("view/", "alert/")
"""What keys begin with that views and alerts publish."""

MOST_ROWS: Final = 500_000
"""Offsets that one file takes at most of a partition."""

UNBOUNDED: Final = 1 << 62
"""As many as there are."""

MOST_ROWS_AT_ONCE: Final = 64 * 1024
"""Rows of a file that are looked through at once."""

REMEMBERED: Final = 256
"""Files of which it is known up to where they go."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Rows of one partition of a journal."""

    journal: str
    partition: int
    start: int
    end: int


def at(table: Table, before: Mapping[str, Sequence[int]]) -> Position:
    """How far a table is for journals that are known with so many partitions."""
    return {
        journal: [table.committed(f"{journal}/{p}") or 0 for p in range(len(partitions))]
        for journal, partitions in before.items()
    }


def pieces(
    start: Mapping[str, Sequence[int]], end: Mapping[str, Sequence[int]], most: int = MOST_ROWS
) -> tuple[list[OffsetRange], Position]:
    """The ranges from one position to another, and where they end: none is larger than `most`."""
    ranges: list[OffsetRange] = []
    reached: Position = {}
    for journal, stops in end.items():
        begins = start.get(journal, ())
        reached[journal] = []
        for partition, stop in enumerate(stops):
            begin = begins[partition] if partition < len(begins) else 0
            stop = max(begin, min(stop, begin + most))
            reached[journal].append(stop)
            if begin < stop:
                ranges.append(OffsetRange(journal, partition, begin, stop))
    return ranges, reached


def rows_between(
    table: Table, names: Sequence[str], piece: OffsetRange
) -> Iterator[pa.RecordBatch]:
    """The rows of a range, with these columns."""
    conditions = [
        Comparison(Field(name), operator, Literal(value))
        for name, operator, value in (
            ("journal", "=", piece.journal),
            ("partition", "=", piece.partition),
            ("offset", ">=", piece.start),
            ("offset", "<", piece.end),
        )
    ]
    paths = matching(table.actions(), conditions)
    if not paths:
        return
    table_schema, inside = table.schema, table.file_schema
    where = (
        (pc.field("journal") == piece.journal)
        & (pc.field("partition") == piece.partition)
        & (pc.field("offset") >= piece.start)
        & (pc.field("offset") < piece.end)
    )
    for prefix in OWN:
        where &= ~pc.starts_with(pc.field("key"), prefix)
    schema = pa.schema([table_schema.field(name) for name in names])
    needed = {*names, "received", "journal", "partition", "offset", "key"} - {DAY}
    for path in paths:
        with open_file(table.place, path, inside) as file:
            for rows in file.batches(MOST_ROWS_AT_ONCE, sorted(needed)):
                rows = rows.filter(where)
                columns = {
                    name: rows["received"].cast(pa.date32()) if name == DAY else rows[name]
                    for name in names
                }
                if rows.num_rows:
                    yield from pa.table(columns, schema=schema).to_batches()


def stream_folder(aside: Path, name: str) -> Path:
    """Return the folder that files of a table are put into; it is made if it is not there."""
    folder = aside / INPUT / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@final
class TableStream:
    """One table as a stream: a folder that files are put into, and what is noted of them."""

    def __init__(
        self,
        aside: Path,
        table: Table,
        start: Position,
        schema: pa.Schema,
        *,
        every: bool = False,
        whole: bool = False,
        read: Sequence[Position] = (),
    ) -> None:
        """Go on after the last file that was noted; a new one begins at `start`.

        `schema`: the columns that are read. Files that are there with columns of other kinds are
        written anew. `every`: columns that the table gets later are wanted too; `whole`: the first
        file has all that there is, however much that is; `read`: where the first files end.
        """
        self.folder = stream_folder(aside, table.name)
        self._page = aside / f"{INPUT}.{table.name}.json"
        self._table = table
        self._schema = schema
        self._kinds = kinds_of({table.name: schema})[table.name]
        self._every = every
        self._whole = whole
        self._ends: dict[int, Position] = {}
        self._number = -1
        self._at = start
        self._seen = -1
        if self._page.exists():
            page = json.loads(self._page.read_text("utf-8"))
            self._number, self._at = page["number"], page["end"]
            self._ends = {int(number): end for number, end in page["ends"].items()}
            # Whether it was written before the end is not known.
            self._demand_columns()
            self._write(self._number, page["start"], page["end"])
            for path in self.folder.glob("[0-9]*.parquet"):
                try:
                    self._recast(path)
                except pa.ArrowInvalid:  # not even wider: the table was made again
                    self._write_again(path, start)
        for number in range(self._number + 1, len(read)):
            self._demand_columns()
            self._add(self._at | read[number])
            # Spark reads the older one first, and tells milliseconds apart.
            moment = time.time() - (len(read) - number)
            os.utime(self._path(number), (moment, moment))

    def more(self, journals: Mapping[str, int]) -> bool:
        """Write the next file if the table has rows that no file has: `{journal: partitions}`.

        Raises `SchemaMoved` if the table has other columns than those that are read.
        """
        self._table.refresh()
        if self._table.version == self._seen:
            return False
        self._demand_columns()
        known: Position = {name: [0] * count for name, count in journals.items()}
        known |= {name: [0] * max(len(at), journals.get(name, 0)) for name, at in self._at.items()}
        start = self._at
        most = UNBOUNDED if self._whole and self._number < 0 else MOST_ROWS
        ranges, end = pieces(start, at(self._table, known), most)
        if not ranges:
            self._seen = self._table.version
            return False
        self._add(end)
        return True

    def _add(self, end: Position) -> None:
        """Note the next file, and write it: up to `end`."""
        start, number = self._at, self._number + 1
        self._ends[number] = end
        self._ends.pop(number - REMEMBERED, None)
        fresh = self._page.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as page:
            noted = {"number": number, "start": start, "end": end, "ends": self._ends}
            page.write(json.dumps(noted))
            page.flush()
            os.fsync(page.fileno())
        fresh.replace(self._page)
        self._number, self._at = number, end
        self._write(number, start, end)

    def reached(self, number: int) -> Position | None:
        """Up to where the file of this number goes; None: it is not known any more."""
        return self._ends.get(number)

    def _demand_columns(self) -> None:
        now = self._table.schema
        why = changed_column(self._table.name, self._kinds, now)
        more = [name for name in now.names if name not in self._kinds] if self._every else []
        if not why and more:
            why = f"the table '{self._table.name}' has the column '{more[0]}' now"
        if why:
            raise SchemaMoved(why)

    def _recast(self, path: Path) -> None:
        """Write a file anew that was written with columns of other kinds; its rows stay."""
        fresh = path.with_name(f".{path.stem}")
        with suppress(FileNotFoundError):  # Spark deletes those that it has read
            with pq.ParquetFile(path) as file:
                had = {one.name: one.type for one in file.schema_arrow}
                if had == {one.name: one.type for one in self._schema}:
                    return
                with pq.ParquetWriter(fresh, self._schema, compression="zstd") as writer:
                    for batch in file.iter_batches():
                        columns = [
                            batch[one.name].cast(one.type)
                            if one.name in had
                            else pa.nulls(batch.num_rows, one.type)
                            for one in self._schema
                        ]
                        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
            fresh.replace(path)

    def _write_again(self, path: Path, start: Position) -> None:
        """Read the rows of a file from the table again; raises if nobody knows which they are."""
        number = int(path.stem)
        begin = self._ends[number - 1] if number else start
        end = self._ends[number]
        path.unlink()
        self._write(number, begin, end)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:012}.parquet"

    def _write(self, number: int, start: Position, end: Position) -> None:
        path = self._path(number)
        if path.exists():
            return
        fresh = self.folder / f".{number:012}"
        with pq.ParquetWriter(fresh, self._schema, compression="zstd") as writer:
            for piece in pieces(start, end, UNBOUNDED)[0]:
                for batch in rows_between(self._table, self._schema.names, piece):
                    writer.write_batch(batch.cast(self._schema))
        fresh.replace(path)


class TableRowsSource(DataSource):
    """`format("zenlake-newest")`: the newest value of each key, when a batch is planned."""

    @classmethod
    def name(cls) -> str:
        """What Spark knows it by."""
        return "zenlake-newest"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Its rows."""
        return TableRowsReader(dict(self.options), schema.fieldNames())


class TableRowsReader(DataSourceReader):
    """Reads the newest value of each key."""

    def __init__(self, options: dict[str, str], names: Sequence[str]) -> None:
        """`names`: of the columns."""
        self.lake = options["lake"]
        self.journals: list[str] = json.loads(options["journals"])
        self.names = list(names)

    def partitions(self) -> Sequence[InputPartition]:
        """One task: it is found out from all of them together."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows."""
        journals = [Journal.open(one) for one in self.journals]
        _, rows = History(Catalog(LakeLocation(self.lake)), journals).newest("**")
        keep = pc.invert(pc.starts_with(rows["key"], OWN[0]))
        for prefix in OWN[1:]:
            keep = pc.and_(keep, pc.invert(pc.starts_with(rows["key"], prefix)))
        rows = rows.filter(keep)
        for name in self.names:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.int32()))
        yield from rows.select(self.names).to_batches()

"""The tables of a lake as streams of Spark: rows by the offsets that they had in the journal.

    options = {"lake": "zenlake-data/lake", "table": "samples", "journal": "zenlake-data/journal"}
    session.dataSource.register(LakeRows)
    session.readStream.format("zenlake").schema(...).options(**options).load()

A position is, for each journal, the offset after the last row of each partition. The rows between
two positions are the same however often they are read and however often files were merged in
between, as long as retention leaves them there; this is what makes a query exactly-once whose sink
is. What views and alerts publish is left out: it would be their own input again.

`latest` is no stream. It is what streams are joined with: the newest value of each key, looked at
anew for every micro-batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.lake.delta import Table
from zenlake.lake.history import History
from zenlake.lake.place import Place
from zenlake.lake.rows import DAY
from zenlake.lake.views import Condition, matching

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["OWN", "LakeRows", "Position", "Range", "at", "pieces", "rows_between"]

OWN: Final = ("view/", "alert/")
"""What keys begin with that views and alerts publish."""

Position = dict[str, list[int]]
"""For each journal, by id: of each partition the offset after the last row."""

MOST_ROWS: Final = 500_000
"""Offsets that one micro-batch takes at most of a partition."""


@dataclass(frozen=True, slots=True)
class Range:
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
) -> tuple[list[Range], Position]:
    """The ranges from one position to another, and where they end: none is larger than `most`."""
    found: list[Range] = []
    reached: Position = {}
    for journal, stops in end.items():
        begins = start.get(journal, ())
        reached[journal] = []
        for partition, stop in enumerate(stops):
            begin = begins[partition] if partition < len(begins) else 0
            stop = max(begin, min(stop, begin + most))
            reached[journal].append(stop)
            if begin < stop:
                found.append(Range(journal, partition, begin, stop))
    return found, reached


def rows_between(table: Table, names: Sequence[str], piece: Range) -> Iterator[pa.RecordBatch]:
    """The rows of a range, with these columns."""
    conditions: list[Condition] = [
        ("journal", "=", piece.journal),
        ("partition", "=", piece.partition),
        ("offset", ">=", piece.start),
        ("offset", "<", piece.end),
    ]
    paths = matching(table.actions(), conditions)
    if not paths:
        return
    whole = table.schema
    inside = pa.schema([field for field in whole if field.name != DAY])
    dataset = ds.dataset(
        [table.place.path(path) for path in paths],
        schema=inside,
        format="parquet",
        filesystem=table.place.filesystem,
    )
    where = (
        (ds.field("journal") == piece.journal)
        & (ds.field("partition") == piece.partition)
        & (ds.field("offset") >= piece.start)
        & (ds.field("offset") < piece.end)
    )
    for prefix in OWN:
        where &= ~pc.starts_with(ds.field("key"), prefix)
    schema = pa.schema([whole.field(name) for name in names])
    needed = [name for name in {*names, "received"} if name != DAY]
    for batch in dataset.scanner(columns=needed, filter=where).to_batches():
        columns = {
            name: batch["received"].cast(pa.date32()) if name == DAY else batch[name]
            for name in names
        }
        if batch.num_rows:
            yield pa.RecordBatch.from_pydict(columns, schema=schema)


class LakeRows(DataSource):
    """`format("zenlake")`: a table of a lake, as a stream or as it is now."""

    @classmethod
    def name(cls) -> str:
        """What Spark knows it by."""
        return "zenlake"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Its rows as they come."""
        return TableStream(dict(self.options), schema.fieldNames())

    def reader(self, schema: StructType) -> DataSourceReader:
        """The newest value of each key, as it is when a batch is planned."""
        return NewestValues(dict(self.options), schema.fieldNames())


class TableStream(DataSourceStreamReader):
    """Reads a table as it grows."""

    def __init__(self, options: dict[str, str], names: Sequence[str]) -> None:
        """`names`: of the columns."""
        self.lake = options["lake"]
        self.table = options["table"]
        self.journal = options["journal"]
        self.partitions_of = int(options["partitions"])
        self.start: Position = json.loads(options["start"])
        self.names = list(names)
        self._table: Table | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}

    def _opened(self) -> Table:
        if self._table is None:
            self._table = Table.open(Place(self.lake), self.table)
            if self._table is None:
                raise LocalError(f"the lake has no table '{self.table}' any more")
        else:
            self._table.refresh()
        return self._table

    def initialOffset(self) -> dict[str, Any]:
        """Where the question begins."""
        return dict(self.start)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Where the next micro-batch ends."""
        known = {**start, self.journal: start.get(self.journal) or [0] * self.partitions_of}
        return pieces(start, at(self._opened(), known))[1]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        return [InputPartition(piece) for piece in pieces(start, end)[0]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""
        if partition.value is None:
            return iter(())
        return rows_between(self._opened(), self.names, partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the table has other readers."""

    def stop(self) -> None:
        """Nothing is open."""


class NewestValues(DataSourceReader):
    """Reads the newest value of each key."""

    def __init__(self, options: dict[str, str], names: Sequence[str]) -> None:
        """`names`: of the columns."""
        self.lake = options["lake"]
        self.journal = options["folder"]
        self.names = list(names)

    def partitions(self) -> Sequence[InputPartition]:
        """One task: it is found out from all of them together."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows."""
        _, rows = History(Place(self.lake), Journal.open(self.journal)).newest("**")
        keep = pc.invert(pc.starts_with(rows["key"], OWN[0]))
        for prefix in OWN[1:]:
            keep = pc.and_(keep, pc.invert(pc.starts_with(rows["key"], prefix)))
        rows = rows.filter(keep)
        for name in self.names:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.int32()))
        yield from rows.select(self.names).to_batches()

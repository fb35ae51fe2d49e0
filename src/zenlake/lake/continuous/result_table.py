"""The table of a view or an alert: what every micro-batch found, in it once.

A commit moves an application on whose id is the definition's and whose version is the number of
the batch. A batch that comes again, after a death between the commit here and Spark's own note of
it, finds itself in the table already.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from zenlake.clock.age_clock import AgeClock
from zenlake.errors import LocalError
from zenlake.journal.writing.steady import steady_time
from zenlake.lake.ingest.deletions import purge
from zenlake.lake.maintain.upkeep import vacuum
from zenlake.lake.model.continuous_query import ContinuousQuery
from zenlake.lake.model.sample_rows import DAY
from zenlake.lake.query.table_frames import spark_type
from zenlake.lake.table.data_files import DataFile, read_table, write_file
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["MOST_ROWS", "Moves", "ResultTable", "app_of", "columns_of", "flattened"]

MOST_ROWS: Final = 100_000
"""Rows that one batch may give, or that a view without windows may have."""

SMALL: Final = 8 << 20
MOST_SMALL: Final = 32
"""So many small files are merged into one."""

Moves = Mapping[str, tuple[int | None, int]]
"""For each application the number that it moved to last, and the one that it moves to."""

VACUUM: Final = 64
"""Commits after which files are looked for that nobody needs."""


def flattened(frame: DataFrame) -> DataFrame:
    """The rows with columns that a table can have: a window becomes its start and its end."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    chosen = []
    names: set[str] = set()
    for field in frame.schema.fields:
        column = f.col(f"`{field.name}`")
        parts = [(field.name, column)]
        if isinstance(field.dataType, StructType) and field.dataType.names == ["start", "end"]:
            parts = [(f"{field.name}_{end}", column[end]) for end in ("start", "end")]
        for name, part in parts:
            if not name.replace("_", "a").isalnum():
                raise LocalError(f"the column '{name}' needs a name: {name} AS …")
            if name.lower() in names or name.lower() == DAY:
                raise LocalError(f"there are two columns '{name}', or it is taken; say AS …")
            names.add(name.lower())
            chosen.append(part.alias(name))
    return frame.select(*chosen)


def columns_of(frame: DataFrame) -> pa.Schema:
    """The columns that a table of such rows has."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    fields: list[Any] = []
    for field in frame.schema.fields:
        try:
            kind = to_arrow_type(field.dataType, timezone="UTC")
            spark_type(kind)
        except (KeyError, TypeError, PySparkException) as error:
            raise LocalError(
                f"the column '{field.name}' is {field.dataType.simpleString()}, which a table "
                "cannot keep; choose parts of it, or to_json(…)"
            ) from error
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


@final
class ResultTable:
    """The table that a view or an alert fills."""

    def __init__(
        self,
        place: LakeLocation,
        definition: ContinuousQuery,
        columns: pa.Schema,
        age: float,
        keep: float | None = None,
    ) -> None:
        """Make the table if it is not there, and give it the columns that it lacks.

        `age`: of files that nobody needs, before they are deleted; `keep`: seconds that rows are
        kept, by whole days; for ever, if not said.
        """
        self.columns = columns
        self._age = age
        self._keep = keep
        self._commits = 0
        self._ended = False
        self.table = Table.create(
            place,
            definition.name,
            columns.append(pa.field(DAY, pa.date32())),
            DAY,
            described_as(definition),
        )
        if self.table.described != described_as(definition):
            raise LocalError(f"the table '{definition.name}' is of somebody else")
        purge(self.table)
        self._ages = AgeClock(file.modified / 1000 for file in self.table.files())
        self._adopt_columns(definition)

    def _adopt_columns(self, definition: ContinuousQuery) -> None:
        """Add the columns that the query has and the table has not, and widen those that it has.

        A column that the query has no more stays, and is null in rows that come from now on.
        """
        has = {one.name: one.type for one in self.table.schema}
        self.table.grow({one.name: one.type for one in self.columns if one.name not in has})
        wider = {
            one.name: one.type
            for one in self.columns
            if one.name in has and _is_otherwise(has[one.name], one.type)
        }
        if wider:
            schema = pa.schema(
                [one.with_type(wider.get(one.name, one.type)) for one in self.table.schema]
            )
            kept, version = self.table.file_schema, self.table.version
            try:
                files = [
                    write_file(
                        self.table.place,
                        _fitted(
                            read_table(self.table.place, file.path, kept), _without_day(schema)
                        ),
                        file.partition,
                        uuid.uuid4().hex,
                    )
                    for file in self.table.files()
                ]
            except pa.ArrowInvalid as error:
                raise LocalError(
                    f"its table has values that are no {', '.join(map(str, wider.values()))} "
                    f"({error}); drop it and create it again: "
                    f"zenlake lake {definition.kind} drop {definition.name}"
                ) from error
            self.table.replace(files, schema, {}, {"kind": "rewrite"}, version)
        self._kept = _without_day(self.table.schema)

    def reached(self, app: str) -> int | None:
        """The number that an application moved to last."""
        self.table.refresh()
        return self.table.committed(app)

    def end(self) -> None:
        """Take in no more: somebody else goes on, and who still writes here came to a halt."""
        self._ended = True

    def demand_open(self) -> None:
        """Raise `LocalError` after `end`."""
        if self._ended:
            raise LocalError(f"'{self.table.name}' was started again meanwhile")

    def append(self, rows: pa.Table, moved: Moves) -> None:
        """Add rows, and move applications on; all or nothing."""
        files = [self._write(rows)] if rows.num_rows else []
        self._commit(files, moved, [])

    def replace(self, rows: pa.Table, subject: Sequence[str], moved: Moves) -> None:
        """Put rows in the place of those about the same, and move applications on."""
        self.table.refresh()
        before = self.table.files()
        fresh = {tuple(row[name] for name in subject) for row in rows.to_pylist()}
        parts = [_fitted(rows, self._kept)]
        for file in before:
            old = _fitted(read_table(self.table.place, file.path, self._kept), self._kept)
            keep = [tuple(row[name] for name in subject) not in fresh for row in old.to_pylist()]
            parts.append(old.filter(pa.array(keep, pa.bool_())))
        merged = pa.concat_tables(parts)
        if merged.num_rows > MOST_ROWS:
            raise LocalError(
                f"there are more than {MOST_ROWS:,} groups, and all of them are kept; group by "
                "window(time, '1 minute') too, or by fewer values"
            )
        files = [self._write(merged)] if merged.num_rows else []
        self._commit(files, moved, before)

    def _commit(self, files: list[DataFile], moved: Moves, removed: list[DataFile]) -> None:
        self.demand_open()
        # From where the caller saw it: a table that went on since refuses.
        self.table.append(files, moved, {"kind": "append"}, removed)

    def _write(self, rows: pa.Table, day: str | None = None) -> DataFile:
        when = day or f"{datetime.fromtimestamp(time.time(), UTC):%Y-%m-%d}"
        rows = _fitted(rows, self._kept)
        return write_file(self.table.place, rows, {DAY: when}, uuid.uuid4().hex)

    def keep_in_shape(self, now: float | None = None) -> None:
        """Drop days that are over, merge small files, and delete those that nobody needs.

        For when a batch is in the table and published: that does not wait for it.
        """
        wall = time.time() if now is None else now
        judged = self._ages.time(wall, steady_time())
        if self._keep is not None:
            first = f"{datetime.fromtimestamp(judged - self._keep, UTC):%Y-%m-%d}"
            old = [file for file in self.table.files() if str(file.partition[DAY]) < first]
            if old:
                self.table.rewrite([], old, True)
        days: dict[str, list[DataFile]] = {}
        for file in self.table.files():
            if file.size < SMALL:
                days.setdefault(str(file.partition[DAY]), []).append(file)
        for day, files in days.items():
            if len(files) > MOST_SMALL:
                parts = [
                    _fitted(read_table(self.table.place, file.path, self._kept), self._kept)
                    for file in files
                ]
                self.table.rewrite([self._write(pa.concat_tables(parts), day)], files, False)
        self._commits += 1
        if self._commits % VACUUM == 0:
            vacuum(self.table, self._age + wall - judged)


def _without_day(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(one.name, one.type) for one in schema if one.name != DAY])


def _is_otherwise(has: pa.DataType, wants: pa.DataType) -> bool:
    """Return True if a column has to change its kind to hold what a query finds."""
    if pa.types.is_floating(has) and pa.types.is_integer(wants):
        return False
    return spark_type(has) != spark_type(wants)


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with exactly these columns: null where they have none."""
    return pa.table(
        [
            rows[one.name].cast(one.type)
            if one.name in rows.column_names
            else pa.nulls(rows.num_rows, one.type)
            for one in schema
        ],
        schema=schema,
    )


def app_of(definition: ContinuousQuery) -> str:
    """Return what the batches of a definition are called in the log of its table."""
    return f"{definition.kind}/{definition.id}"


def described_as(definition: ContinuousQuery) -> str:
    """What the table of a definition says of itself."""
    return f"{definition.kind} {definition.id}"

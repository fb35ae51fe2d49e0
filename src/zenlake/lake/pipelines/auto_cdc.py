"""A flow of changes at work: each micro-batch of events changes the rows of its table.

The events that count are kept in a table of their own, beside Spark's checkpoint: nothing else
knows of a delete, or of an update that changed no row, when an event comes late. A batch is two
commits, first of the events and then of the rows, and each moves the application of the flow on to
the number of the batch. A batch that comes again after a death finds what it did, and does the
rest: rows follow from events (`changes`). Only files that may have a key of the batch are written
anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import DoubleType, FloatType

from zenlake.errors import LocalError
from zenlake.lake.maintain.upkeep import vacuum
from zenlake.lake.pipelines.changes import SEQUENCE, ChangeRules
from zenlake.lake.pipelines.table_merge import (
    TableFilesSource,
    rows_of,
    small_files,
    touched,
    written,
)
from zenlake.lake.spark_source.columns import table_columns
from zenlake.lake.spark_source.tasks import table_schema
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from zenlake.lake.table.data_files import DataFile

__all__ = ["ChangeWriter", "write_changes"]

EVENTS: Final = "events"
"""The table in the folder of the checkpoint that has the events which count."""
MOST_KEYS: Final = 10_000
"""Values of keys by which files are passed over; with more in a batch none is."""
MOST_TRIES: Final = 8
"""Times that rows are computed again because the table was changed meanwhile."""
PART_BYTES: Final = 32 << 20
PART_EVENTS: Final = 500_000
"""Bytes of files that one task writes anew, and events that one task adds to them."""
VACUUM_COMMITS: Final = 64
"""Commits after which files of events are looked for that nobody needs."""
VACUUM_AGE_SECONDS: Final = 3600.0


def write_changes(
    frame: DataFrame, changes: ChangeRules, *, path: str, application: str, checkpoint: Path
) -> tuple[DataStreamWriter, ChangeWriter]:
    """Return how a stream of events is written into a table, and what writes its batches.

    `path`: the folder of the table; `application`: what the batches are called in its log.
    """
    writer = ChangeWriter(changes, path, application, checkpoint)
    return frame.writeStream.foreachBatch(writer.write), writer


@final
@dataclass
class _Batch:
    """The events of a micro-batch, and what can be said of their keys."""

    events: DataFrame
    number: int
    count: int
    #: The values of the first key, sorted; None: there are too many.
    values: list[Any] | None
    #: The least and the greatest sequence.
    span: tuple[Any, Any]


@final
class ChangeWriter:
    """Applies batches of events to a table."""

    def __init__(self, changes: ChangeRules, path: str, application: str, checkpoint: Path) -> None:
        """Open nothing yet."""
        self.changes = changes
        self.failure: BaseException | None = None
        """What the batch failed with that was tried last."""
        lake, _, self._name = path.rstrip("/").rpartition("/")
        self._lake = LakeLocation(lake)
        self._application = application
        self._beside = LakeLocation(str(checkpoint))
        self._commits = 0
        self._session: SparkSession | None = None

    def write(self, rows: DataFrame, number: int) -> None:
        """Apply a micro-batch, or what of it is not applied yet."""
        self.failure = None
        try:
            self._write(rows, number)
        except BaseException as error:
            self.failure = error
            raise

    def _write(self, rows: DataFrame, number: int) -> None:
        table = Table.open(self._lake, self._name)
        if table is None:
            raise LocalError(f"there is no table '{self._name}' any more")
        events = self._events()
        self._demand_known(table, events)
        if table.committed(self._application) == number:
            return
        if self._session is not rows.sparkSession:
            self._session = rows.sparkSession
            self._session.dataSource.register(TableFilesSource)
        held = self.changes.events(rows).persist()
        try:
            batch = self._looked_at(held, number)
            if batch is None:
                return
            if events.committed(self._application) != number:
                self._merge_events(events, batch)
            self._merge_rows(table, events, batch)
        finally:
            held.unpersist()
        self._commits += 1
        if self._commits % VACUUM_COMMITS == 0:
            vacuum(events, VACUUM_AGE_SECONDS)

    def _events(self) -> Table:
        """Open the table of events, with all columns that events have now."""
        columns = table_columns(self.changes.schema)
        told = f"events by {', '.join(self.changes.identity)}"
        table = Table.create(self._beside, EVENTS, columns, (), told, by_programs=True)
        if table.described != told:
            raise LocalError(
                f"the keys of the flow into '{self._name}', or its SCD type, have changed "
                f"(it had {table.described}, and has {told}). Compute the table again: "
                f"zenlake pipeline run --full-refresh {self._name}"
            )
        table.grow({one.name: one.type for one in columns})
        return table

    def _demand_known(self, table: Table, events: Table) -> None:
        """Raise `LocalError` if the table has batches that the events beside it have not."""
        there, known = (one.committed(self._application) for one in (table, events))
        if there is not None and (known is None or known < there):
            raise LocalError(
                f"table '{self._name}' has batch {there} of this flow, and the events beside the "
                f"checkpoint ({self._beside.uri}) end at {known}: they were lost. Compute the "
                f"table again: zenlake pipeline run --full-refresh {self._name}"
            )

    def _looked_at(self, held: DataFrame, number: int) -> _Batch | None:
        """Count what an event must have; None if the batch has no events."""
        keys = [f.col(f"`{name}`") for name in self.changes.keys]
        counts = held.agg(
            f.count(f.lit(1)),
            f.count_if(f.col(SEQUENCE).isNull()),
            f.min(SEQUENCE),
            f.max(SEQUENCE),
            *(f.count_if(key.isNull()) for key in keys),
        ).toArrow()
        # Of Arrow, as the log's: pyspark's rows have times in the zone of this machine.
        count, without, least, most, *nulls = [one[0].as_py() for one in counts.columns]
        if not count:
            return None
        for name, missing in zip(self.changes.keys, nulls, strict=True):
            if missing:
                raise LocalError(
                    f"{missing} of {count} events have no '{name}', which is a key; leave them "
                    "out in a view that the flow reads"
                )
        if without:
            raise LocalError(
                f"{without} of {count} events have no sequence (sequence_by is null), so that "
                "nothing says when they were; leave them out in a view that the flow reads"
            )
        return _Batch(held, number, count, self._values(held), (least, most))

    def _values(self, held: DataFrame) -> list[Any] | None:
        first = self.changes.keys[0]
        if isinstance(self.changes.schema[first].dataType, FloatType | DoubleType):
            return None  # NaN has no place in an order
        found = held.select(f"`{first}`").distinct().limit(MOST_KEYS + 1).toArrow()
        values = found.column(0).to_pylist()
        try:
            return sorted(values) if len(values) <= MOST_KEYS else None
        except TypeError:
            return None

    # --- the events -------------------------------------------------------------------------------

    def _merge_events(self, events: Table, batch: _Batch) -> None:
        schema = self.changes.schema

        def merged(removed: set[str]) -> DataFrame:
            before = rows_of(batch.events.sparkSession, events, removed, schema)
            return self.changes.counting(before.unionByName(batch.events))

        def chosen() -> set[str]:
            actions = events.actions()
            found = self._with_keys(actions, batch)
            if self.changes.is_history:
                # An event of another sequence stands beside those that are there.
                found &= _overlapping(actions, batch.span)
            return found | small_files(actions)

        self._replace(events, batch, chosen, merged)

    # --- the rows ---------------------------------------------------------------------------------

    def _merge_rows(self, table: Table, events: Table, batch: _Batch) -> None:
        keys = list(self.changes.keys)
        spark = batch.events.sparkSession
        changed = batch.events.select(*(f"`{name}`" for name in keys)).distinct()
        events.refresh()
        known = rows_of(
            spark, events, self._with_keys(events.actions(), batch), self.changes.schema
        )
        fresh = self.changes.rows(known.join(changed, keys, "left_semi"))

        def merged(removed: set[str]) -> DataFrame:
            before = rows_of(spark, table, removed, table_schema(table, ()))
            kept = before.join(changed, keys, "left_anti")
            return kept.unionByName(fresh, allowMissingColumns=True)

        def chosen() -> set[str]:
            actions = table.actions()
            return self._with_keys(actions, batch) | small_files(actions)

        self._replace(table, batch, chosen, merged)

    def _with_keys(self, actions: pa.Table, batch: _Batch) -> set[str]:
        if batch.values is None:
            return set(actions["path"].to_pylist())
        return touched(actions, self.changes.keys[0], batch.values)

    def _replace(
        self,
        table: Table,
        batch: _Batch,
        chosen: Callable[[], set[str]],
        merged: Callable[[set[str]], DataFrame],
    ) -> None:
        """Put rows in the place of those of some files, and note the number of the batch."""
        for left in reversed(range(MOST_TRIES)):
            table.refresh()
            paths = chosen()
            removed = [one for one in table.files() if one.path in paths]
            order = [f"`{name}`" for name in self.changes.keys]
            # Keys beside each other lie in few files, so that later batches pass over the others.
            frame = _in_parts(merged(paths), batch.count, removed, order)
            files = written(frame, table.place)
            moved = {self._application: (table.committed(self._application), batch.number)}
            try:
                table.append(files, moved, {"kind": "append", "batch": batch.number}, removed)
            except CommitConflict:
                for file in files:
                    table.place.remove(file.path)
                if not left:
                    raise
            else:
                return


def _in_parts(
    frame: DataFrame, events: int, removed: Sequence[DataFile], order: list[str]
) -> DataFrame:
    count = 1 + sum(file.size for file in removed) // PART_BYTES + events // PART_EVENTS
    parted = frame.coalesce(1) if count == 1 else frame.repartitionByRange(count, *order)
    return parted.sortWithinPartitions(*order)


def _overlapping(actions: pa.Table, span: tuple[Any, Any]) -> set[str]:
    """Return the files that may have an event whose sequence lies between two."""
    paths = actions["path"].to_pylist()
    low, high = f"min.{SEQUENCE}", f"max.{SEQUENCE}"
    if not {low, high} <= set(actions.column_names):
        return set(paths)
    found = set()
    bounds = zip(paths, actions[low].to_pylist(), actions[high].to_pylist(), strict=True)
    for path, least, most in bounds:
        try:
            is_apart = (
                least is not None and most is not None and (most < span[0] or least > span[1])
            )
        except TypeError:
            is_apart = False
        if not is_apart:
            found.add(path)
    return found

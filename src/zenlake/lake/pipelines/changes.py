"""What a flow of changes means: which events count, and which rows a table has after them.

    changes = changes_of(flow, frame)            # raises PipelineError
    events = changes.events(frame)               # the columns that are kept, and their order
    counting = changes.counting(all_events)      # of each key the newest, or one for each sequence
    rows = changes.rows(counting)                # what the table has

The rows follow from the events alone, in whatever order and in however many batches these came. So
an event that comes late, or twice, changes nothing that it should not change. As in Spark: at the
same sequence a delete counts and not the update; of two updates one counts, the same one whichever
came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    MapType,
    StructField,
    StructType,
)

from zenlake.config.nearest import nearest
from zenlake.lake.pipelines.definitions import PipelineError
from zenlake.lake.query.executor import one_line
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.pipelines.flow import AutoCdcFlow
    from pyspark.sql import Column, DataFrame

__all__ = ["DELETED", "END_AT", "SEQUENCE", "START_AT", "ChangeRules", "changes_of"]

START_AT: Final = "__START_AT"
END_AT: Final = "__END_AT"
"""The columns of a history, as Spark calls them: from the sequence at `START_AT` to that before
`END_AT`."""
RESERVED: Final = "__spark_autocdc_"
"""How columns begin that Spark keeps for itself in such flows."""
SEQUENCE: Final = f"{RESERVED}sequence"
DELETED: Final = f"{RESERVED}deleted"
_IS_HEAD: Final = f"{RESERVED}is_head"
_RANK: Final = f"{RESERVED}rank"


@final
@dataclass(frozen=True)
class ChangeRules:
    """What a flow of changes does with its events."""

    #: Columns that say what an event is about.
    keys: tuple[str, ...]
    #: Columns that the table has of an event, those of `keys` among them.
    columns: tuple[str, ...]
    #: Columns of which another value begins another row of a history.
    tracked: tuple[str, ...]
    #: Orders the events of a key.
    sequence: Column
    #: True of events that delete; None: no event does.
    deletes: Column | None
    #: Whether the table has the rows that were (type 2), or only those that are (type 1).
    is_history: bool
    #: What `events` gives.
    schema: StructType

    @property
    def table_schema(self) -> StructType:
        """The columns of the table."""
        fields = [one for one in self.schema.fields if one.name in self.columns]
        if self.is_history:
            kind = self.schema[SEQUENCE].dataType
            fields += [StructField(name, kind) for name in (START_AT, END_AT)]
        return StructType(fields)

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns by which no two events that count are equal."""
        return (*self.keys, SEQUENCE) if self.is_history else self.keys

    def events(self, frame: DataFrame) -> DataFrame:
        """Return the events of a frame: columns that are kept, sequence, whether they delete."""
        return frame.select(*_event_columns(self.columns, self.sequence, self.deletes))

    def counting(self, events: DataFrame) -> DataFrame:
        """Return the events that count: the newest of a key, or one for each sequence of it."""
        kinds = {one.name: one.dataType for one in self.schema.fields}
        # Any order does that is the same whichever event came first.
        any_order = f.xxhash64(*[_comparable(name, kinds[name]) for name in self.columns])
        newest = [f.col(SEQUENCE).desc(), f.col(DELETED).desc(), any_order.desc()]
        window = Window.partitionBy(*map(_quoted, self.identity)).orderBy(*newest)
        ranked = events.withColumn(_RANK, f.row_number().over(window))
        return ranked.where(f.col(_RANK) == 1).drop(_RANK)

    def rows(self, counting: DataFrame) -> DataFrame:
        """Return the rows of the table, of all the events that count of some keys."""
        kept = [_quoted(name) for name in self.columns]
        if not self.is_history:
            return counting.where(~f.col(DELETED)).select(*kept)
        in_order = Window.partitionBy(*map(_quoted, self.keys)).orderBy(SEQUENCE)
        kinds = {one.name: one.dataType for one in self.schema.fields}
        follows = f.lag(DELETED).over(in_order) == f.lit(False)
        for name in self.tracked:
            value = _comparable(name, kinds[name])
            follows &= value.eqNullSafe(f.lag(value).over(in_order))
        # An update with the same values goes on with the row that is there.
        is_head = ~f.col(DELETED) & ~f.coalesce(follows, f.lit(False))
        marked = counting.withColumn(_IS_HEAD, is_head)
        so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        start = f.last(f.when(f.col(_IS_HEAD), f.col(SEQUENCE)), ignorenulls=True).over(so_far)
        ends = f.lead(f.col(_IS_HEAD) | f.col(DELETED)).over(in_order)
        spans = marked.select(
            *kept,
            f.col(DELETED),
            start.alias(START_AT),
            f.lead(SEQUENCE).over(in_order).alias(END_AT),
            # The last event of a row has the newest values of columns that are not tracked.
            f.coalesce(ends, f.lit(True)).alias(_IS_HEAD),
        )
        visible = spans.where(f.col(_IS_HEAD) & ~f.col(DELETED))
        return visible.select(*kept, START_AT, END_AT)


def changes_of(flow: AutoCdcFlow, frame: DataFrame) -> ChangeRules:
    """Return what a flow does with the rows of a frame; raises `PipelineError` if it cannot."""
    at = flow.source_code_location
    there = frame.columns
    for name in there:
        if name.lower().startswith(RESERVED) or name in (START_AT, END_AT):
            raise PipelineError(
                f"the column '{name}' of '{flow.source}' has a name that flows of changes need for "
                "themselves; give it another one in a view",
                at,
            )
    keys = _names(flow, "keys", flow.keys, there)
    if not keys:
        raise PipelineError("keys: name the columns that say what a row is about", at)
    chosen = _chosen(flow, "column_list", flow.column_list, flow.except_column_list, there)
    for name in keys:
        if name not in chosen:
            raise PipelineError(
                f"the key '{name}' is not among the columns of '{flow.target}'; add it to "
                "column_list, or take it out of except_column_list",
                at,
            )
    rest = [name for name in chosen if name not in keys]
    is_history = str(flow.stored_as_scd_type or 1) == "2"
    tracked = _chosen(
        flow,
        "track_history_column_list",
        flow.track_history_column_list,
        flow.track_history_except_column_list,
        rest,
    )
    deletes = None if flow.apply_as_deletes is None else jvm.classic_column(flow.apply_as_deletes)
    sequence = jvm.classic_column(flow.sequence_by)
    try:
        schema = frame.select(*_event_columns(chosen, sequence, deletes)).schema
        condition = schema if deletes is None else frame.select(deletes.alias(DELETED)).schema
    except PySparkException as error:
        raise PipelineError(one_line(str(error)), at) from error
    _demand_order(flow, schema[SEQUENCE].dataType)
    if condition[DELETED].dataType != BooleanType():
        raise PipelineError(
            f"apply_as_deletes is {condition[DELETED].dataType.simpleString()}; write a condition, "
            "such as \"operation = 'DELETE'\"",
            at,
        )
    fields = [StructField(one.name, _nullable(one.dataType), True) for one in schema.fields]
    return ChangeRules(keys, chosen, tracked, sequence, deletes, is_history, StructType(fields))


def _event_columns(
    columns: Sequence[str], sequence: Column, deletes: Column | None
) -> list[Column]:
    is_delete = f.lit(False) if deletes is None else f.coalesce(deletes, f.lit(False))
    kept = [f.col(_quoted(name)) for name in columns]
    return [*kept, sequence.alias(SEQUENCE), is_delete.alias(DELETED)]


def _names(
    flow: AutoCdcFlow, argument: str, columns: Sequence[Column], there: Sequence[str]
) -> tuple[str, ...]:
    """Return the names of columns as the source has them."""
    by_lower = {name.lower(): name for name in there}
    found = []
    for column in columns:
        told = jvm.column_name(column)
        if told is None:
            raise PipelineError(
                f"{argument}: {column} is no name of a column; compute it in a view, and name that",
                flow.source_code_location,
            )
        if told.lower() not in by_lower:
            meant = nearest(told, there)
            hint = f"; did you mean '{meant}'?" if meant else f"; it has {', '.join(there)}"
            raise PipelineError(
                f"{argument}: '{flow.source}' has no column '{told}'{hint}",
                flow.source_code_location,
            )
        found.append(by_lower[told.lower()])
    return tuple(dict.fromkeys(found))


def _chosen(
    flow: AutoCdcFlow,
    argument: str,
    include: Sequence[Column] | None,
    exclude: Sequence[Column] | None,
    there: Sequence[str],
) -> tuple[str, ...]:
    if include:
        wanted = _names(flow, argument, include, there)
        return tuple(name for name in there if name in wanted)
    left_out = _names(flow, f"the exceptions of {argument}", exclude or (), there)
    return tuple(name for name in there if name not in left_out)


def _demand_order(flow: AutoCdcFlow, kind: DataType) -> None:
    if _has_maps(kind):
        raise PipelineError(
            f"sequence_by is {kind.simpleString()}, of which none comes before another; use a "
            "number, a time or a struct of such",
            flow.source_code_location,
        )


def _nullable(kind: DataType) -> DataType:
    """Return a type with values that may be null, as those of tables may."""
    if isinstance(kind, StructType):
        return StructType(
            [StructField(one.name, _nullable(one.dataType), True) for one in kind.fields]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(_nullable(kind.keyType), _nullable(kind.valueType), True)
    return kind


def _has_maps(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_maps(one.dataType) for one in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_maps(kind.elementType)
    return isinstance(kind, MapType)


def _comparable(name: str, kind: DataType) -> Column:
    """Return a column as Spark can compare it: maps it cannot."""
    column = f.col(_quoted(name))
    return f.to_json(column) if _has_maps(kind) else column


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"

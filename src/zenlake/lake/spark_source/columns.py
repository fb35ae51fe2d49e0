"""The columns of a DataFrame as a table has them, and how columns of a table grow; pure.

Every column may be null: Spark's own tables of Delta are so too, and no reader has to be told. A
narrower value is stored in a wider column where no value changes (`int` in `bigint`, `float` in
`double`). All else is refused by the name of the column, with what to cast it to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from zenlake.config.nearest import nearest
from zenlake.lake.model.column_types import MOST_DEPTH
from zenlake.lake.model.value_types import name_key
from zenlake.lake.model.wider_kinds import as_wider, wider
from zenlake.spark.options import OptionError

__all__ = ["PARTITION_KINDS", "Growth", "column_named", "fitted", "growth", "table_columns"]

_KINDS: Final[dict[type[DataType], pa.DataType]] = {
    BooleanType: pa.bool_(),
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    BinaryType: pa.binary(),
    DateType: pa.date32(),
    TimestampType: pa.timestamp("us", "UTC"),
    TimestampNTZType: pa.timestamp("us"),
}
_INSTEAD: Final = {
    "void": "a column of nulls has no type: cast it, such as CAST(NULL AS string)",
    "variant": "write to_json({0}), or take values out with variant_get({0}, '$.x', 'double')",
    "interval": "cast it to string, or to a number of seconds",
    "time": "cast it to string",
}
PARTITION_KINDS: Final = (
    pa.string(),
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.date32(),
)
"""Types of columns that files may be partitioned by: their values are names of folders."""

_UNNAMEABLE: Final = re.compile(r"[ ,;{}()\n\t=`]")
"""Characters that Delta refuses in names of columns, and the one that quotes them."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What a table lacks for rows with some columns."""

    added: dict[str, pa.DataType]
    """Columns that the table has not."""
    widened: dict[str, pa.DataType]
    """Columns of the table that have to become wider, with the type that holds both."""

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def table_columns(schema: StructType) -> pa.Schema:
    """Return the columns of a table for the rows of a DataFrame, with their comments.

    Raises `OptionError` for a name or a type that no table has.
    """
    if not schema.fields:
        raise OptionError("the DataFrame has no columns; select some")
    fields = []
    for field in schema.fields:
        comment = (field.metadata or {}).get("comment")
        kind = _arrow(field.dataType, field.name, field.name, 0)
        metadata = {"comment": str(comment)} if comment else None
        fields.append(pa.field(field.name, kind, metadata=metadata))
    _demand_names([field.name for field in schema.fields], "")
    return pa.schema(fields)


def _arrow(kind: DataType, column: str, where: str, depth: int) -> pa.DataType:
    """Return the type of a column, or of what lies in it; `where`: its place, for people."""
    if depth > MOST_DEPTH:
        raise OptionError(
            f"column '{column}' has values nested in more than {MOST_DEPTH} others; keep the inner "
            f"ones as text: to_json({column})"
        )
    if isinstance(kind, StringType):
        return pa.string()
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, ArrayType):
        return pa.list_(_arrow(kind.elementType, column, f"{where}[]", depth + 1))
    if isinstance(kind, MapType):
        return pa.map_(
            _arrow(kind.keyType, column, f"{where}.key", depth + 1),
            _arrow(kind.valueType, column, f"{where}.value", depth + 1),
        )
    if isinstance(kind, StructType):
        _demand_names([field.name for field in kind.fields], where)
        if not kind.fields:
            raise OptionError(f"column '{where}' is a struct without fields; leave it out")
        return pa.struct(
            [
                (one.name, _arrow(one.dataType, column, f"{where}.{one.name}", depth + 1))
                for one in kind.fields
            ]
        )
    known = _KINDS.get(type(kind))
    if known is None:
        said = kind.simpleString()
        word = next((word for word in _INSTEAD if said.startswith(word)), "")
        way = _INSTEAD.get(word, "cast it to string").format(where)
        raise OptionError(f"column '{where}' is {said}, which tables cannot keep; {way}")
    return known


def _demand_names(names: Sequence[str], where: str) -> None:
    seen: dict[str, str] = {}
    inside = f" in column '{where}'" if where else ""
    for name in names:
        if not name or _UNNAMEABLE.search(name):
            raise OptionError(
                f"the name '{name}'{inside} has a character that no column of Delta has "
                "(one of ` ,;{}()=` or a line end); give it another with alias(…) or "
                "withColumnRenamed(…)"
            )
        other = seen.setdefault(name_key(name), name)
        if other is not name:
            raise OptionError(f"the names '{other}' and '{name}'{inside} are one to Spark; rename")


def column_named(name: str, columns: pa.Schema) -> str:
    """Return a column by its name in any case. Raises `OptionError` if there is none."""
    found = [one for one in columns.names if name_key(one) == name_key(name)]
    if found:
        return str(found[0])
    meant = nearest(name, columns.names)
    hint = f"; did you mean '{meant}'?" if meant else ""
    raise OptionError(f"the DataFrame has no column '{name}'{hint}: {', '.join(columns.names)}")


def growth(table: str, has: pa.Schema, columns: pa.Schema, may_grow: bool) -> Growth:
    """Return what a table lacks for rows with these columns.

    `may_grow`: the option `mergeSchema`. Raises `OptionError` where a column is not to grow, or
    where its type and the table's have none that holds both.
    """
    there = {name_key(field.name): field for field in has}
    added: dict[str, pa.DataType] = {}
    widened: dict[str, pa.DataType] = {}
    for field in columns:
        mine = there.get(name_key(field.name))
        if mine is None:
            added[field.name] = field.type
            continue
        both = _holding(mine.type, field.type)
        if both is None:
            raise OptionError(
                f"column '{field.name}' is {field.type}, and table '{table}' has {mine.type}; "
                "cast it, or give it another name"
            )
        if both != mine.type:
            widened[mine.name] = both
    if added and not may_grow:
        named = ", ".join(added)
        meant = next((nearest(name, has.names) for name in added), "")
        hint = f" (did you mean '{meant}'?)" if meant else ""
        raise OptionError(
            f"table '{table}' has no column {named}{hint}; add it to the table with "
            "option('mergeSchema', 'true'), or leave it out"
        )
    if widened and not may_grow:
        name, kind = next(iter(widened.items()))
        raise OptionError(
            f"column '{name}' of table '{table}' is {has.field(name).type}, too narrow for "
            f"{kind}; cast it, or let the table's files be written anew with a wider column: "
            "option('mergeSchema', 'true')"
        )
    return Growth(added, widened)


def _holding(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of both; times with a zone and without are two."""
    if one == other:
        return one
    if str(one).count("tz=") != str(other).count("tz="):
        return None
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        scale = max(one.scale, other.scale)
        whole = max(one.precision - one.scale, other.precision - other.scale)
        return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else None
    if {one, other} <= {pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64()} and (
        pa.float64() in (one, other)
    ):
        return pa.float64()
    return wider(one, other)


def fitted(rows: Any, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of a schema that they have, in its types.

    Raises `pa.ArrowInvalid` where a value would change.
    """
    by_key = {name_key(name): name for name in rows.column_names}
    fields = [field for field in schema if name_key(field.name) in by_key]
    columns = [as_wider(_plain(rows[by_key[name_key(f.name)]]), f.type) for f in fields]
    return pa.table(columns, schema=pa.schema([pa.field(f.name, f.type) for f in fields]))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in UTC, whatever zone the session has."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return column.cast(pa.timestamp("us", "UTC"))
    return column

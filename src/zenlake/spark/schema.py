"""The columns of `format("zenoh")`, and how they are made of a journal's, batch by batch.

The usual ones are those that Spark's Kafka source has, as far as they mean something here. All
other columns of the journal can be asked for by name. Nothing is done row by row: what repeats
(keys, encodings, senders) is worked out once for each that is different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from zenlake.config.nearest import nearest
from zenlake.journal.schema import INSTANT
from zenlake.recorded.columns import encoding_words, id_words, kind_words, source_words
from zenlake.spark.options import OptionError, SourceOptions

__all__ = ["COLUMNS", "USUAL", "Column", "Maker", "documented_columns", "schema_of"]

Batch = Any
Array = Any


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type for Spark and for Arrow, what it is made of, and how."""

    name: str
    type: DataType
    arrow: Any
    of: tuple[str, ...]
    make: Callable[..., Array]
    text: str


def _as_it_is(array: Array) -> Array:
    return array


def _plain(array: Array) -> Array:
    return array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array


def _kind(kind: Array) -> Array:
    return kind_words(kind).cast(pa.string())


def _encoding(number: Array, schema: Array) -> Array:
    return encoding_words(number, schema).cast(pa.string())


def _source(zid: Array, eid: Array) -> Array:
    return source_words(zid, eid).cast(pa.string())


def _id(raw: Array) -> Array:
    return id_words(raw).cast(pa.string())


_TEXT, _BYTES, _LONG = StringType(), BinaryType(), LongType()
_TIME, _BYTE, _FLAG = TimestampType(), ByteType(), BooleanType()


def _own(name: str, type: DataType, arrow: Any, text: str) -> Column:
    return Column(name, type, arrow, (name,), _as_it_is, text)


COLUMNS: Final = {
    column.name: column
    for column in (
        Column("key", _TEXT, pa.string(), ("key",), _plain, "the key"),
        _own("value", _BYTES, pa.binary(), "the payload"),
        Column(
            "encoding",
            _TEXT,
            pa.string(),
            ("encoding_id", "encoding_schema"),
            _encoding,
            "what the payload is, such as `application/json`; `unknown(4000)`: an unnamed id",
        ),
        Column("kind", _TEXT, pa.string(), ("kind",), _kind, "`put` or `delete`"),
        _own("time", _TIME, INSTANT, "when it was made, by its own timestamp, in UTC"),
        _own(
            "hlc",
            _LONG,
            pa.int64(),
            "the same moment with all its 64 bits, less 2⁶³: orders as they do",
        ),
        Column(
            "source_id",
            _TEXT,
            pa.string(),
            ("source_zid", "source_eid"),
            _source,
            "who sent it, `zid:eid`; null when it does not say",
        ),
        Column("partition", IntegerType(), pa.int32(), (), _as_it_is, "of the journal"),
        _own("offset", _LONG, pa.int64(), "its number in the partition"),
        _own("attachment", _BYTES, pa.binary(), "the attachment, with `includeAttachment`"),
        _own("received", _TIME, INSTANT, "when it was recorded"),
        _own("stamped", _FLAG, pa.bool_(), "whether it came without a time and was given one"),
        Column("stamp_id", _TEXT, pa.string(), ("stamp_id",), _id, "whose clock `hlc` is of"),
        _own("encoding_id", IntegerType(), pa.int32(), "the number of the encoding"),
        _own("encoding_schema", _TEXT, pa.string(), "what follows `;` in the encoding"),
        Column("source_zid", _TEXT, pa.string(), ("source_zid",), _id, "the node that sent it"),
        _own("source_eid", _LONG, pa.int64(), "the entity of that node"),
        _own("source_sn", _LONG, pa.int64(), "the number that the sender gave it"),
        _own("priority", _BYTE, pa.int8(), "1 (real time) to 7 (background)"),
        _own("congestion", _BYTE, pa.int8(), "0 drop, 1 block, 2 block the first"),
        _own("express", _FLAG, pa.bool_(), "whether it was sent by itself"),
        _own("reliable", _FLAG, pa.bool_(), "whether it was sent reliably"),
        _own("origin", _BYTE, pa.int8(), "0 heard, 1 healed, 2 imported"),
        Column("timestamp", _TIME, INSTANT, ("time",), _as_it_is, "`time`, as 0.1 called it"),
    )
}

USUAL: Final = (
    "key",
    "value",
    "encoding",
    "kind",
    "time",
    "hlc",
    "source_id",
    "partition",
    "offset",
)


def chosen_columns(options: SourceOptions) -> list[str]:
    """The names of the columns that a read asks for."""
    names = options.names("columns") or list(USUAL)
    if options.flag("includeAttachment", False) and "attachment" not in names:
        names.append("attachment")
    for name in names:
        if name not in COLUMNS:
            raise OptionError(f"columns: {_no_column(name)}")
    if len(set(names)) != len(names):
        raise OptionError(f"columns={', '.join(names)}: a column is named twice")
    return names


def schema_of(names: Iterable[str]) -> StructType:
    """The columns as Spark has them."""
    return StructType([StructField(name, COLUMNS[name].type) for name in names])


def checked_names(schema: StructType) -> list[str]:
    """The columns of a schema that the caller gave: some of ours, with the types they have."""
    for field in schema.fields:
        ours = COLUMNS.get(field.name)
        if ours is None:
            raise OptionError(_no_column(field.name))
        if ours.type != field.dataType:
            raise OptionError(
                f"column '{field.name}' is {ours.type.simpleString()} here, not "
                f"{field.dataType.simpleString()}; cast it after the read"
            )
        if not field.nullable:
            raise OptionError(f"column '{field.name}' may be null here; leave out NOT NULL")
    return schema.fieldNames()


def _no_column(name: str) -> str:
    meant = nearest(name, COLUMNS)
    hint = f"; did you mean '{meant}'?" if meant else "."
    return f"format(\"zenoh\") has no column '{name}'{hint} It has {', '.join(COLUMNS)}"


class Maker:
    """Makes the asked-for columns of a journal's batches."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names`: of `COLUMNS`, in order."""
        self.columns = [COLUMNS[name] for name in names]
        needed = {name for column in self.columns for name in column.of}
        # Rows have to come even if nothing of them is asked for.
        self.needed = sorted(needed) or ["offset"]
        self.schema = pa.schema([(column.name, column.arrow) for column in self.columns])

    def batch(self, batch: Batch, partition: int | None) -> Batch:
        """The columns for one batch of a partition."""
        arrays = []
        for column in self.columns:
            if column.name == "partition":
                array = pa.repeat(pa.scalar(partition, pa.int32()), batch.num_rows)
            else:
                array = column.make(*(batch.column(name) for name in column.of))
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def documented_columns() -> str:
    """The table of all columns, in Markdown."""
    lines = ["| column | type | usual | meaning |", "| --- | --- | --- | --- |"]
    for column in COLUMNS.values():
        usual = "yes" if column.name in USUAL else ""
        lines.append(
            f"| `{column.name}` | {column.type.simpleString()} | {usual} | {column.text} |"
        )
    return "\n".join(lines) + "\n"

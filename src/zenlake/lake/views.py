"""Tables of the lake as Spark sees them: exactly the files of one version, and of those only
the ones that a question can find something in.

Spark reads Parquet, not the Delta log, so the driver hands it the list of files. It plans the
question once, looks which conditions Spark would push into the scan of each table, and compares
them with the statistics in the log; files that cannot match are left out of the second plan. So
what a pruned question costs does not grow with the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.delta import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["frame_of", "matching", "narrowed", "scans"]

Condition = tuple[str, str, Any]
"""Column, operator (`= < <= > >= in starts`), literal."""

_SPARK_TYPES: Final = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}
_OPERATORS: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_TURNED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def frame_of(spark: SparkSession, table: Table, paths: list[str]) -> DataFrame:
    """These files of a table, with all its columns."""
    schema = ", ".join(f"`{f.name}` {_spark_type(f.type)}" for f in table.schema)
    if not paths:
        return spark.createDataFrame([], schema)
    return (
        spark.read.schema(schema)
        .option("basePath", table.place.address(""))
        .parquet(*[table.place.address(path) for path in paths])
    )


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return "binary"
    if kind == pa.string_view():
        return "string"
    return _SPARK_TYPES[kind]


# --- which files a question needs ---------------------------------------------------------------


def matching(actions: pa.Table, conditions: list[Condition]) -> list[str]:
    """The files whose statistics do not rule out a row that meets all the conditions."""
    keep = pa.array([True] * actions.num_rows, pa.bool_())
    for column, operator, literal in conditions:
        low = high = None
        for names in ((f"min.{column}", f"max.{column}"), (f"partition.{column}",) * 2):
            if names[0] in actions.column_names and names[1] in actions.column_names:
                low, high = actions[names[0]], actions[names[1]]
        if low is None or high is None:
            continue
        try:
            may = _may(low, high, operator, literal)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            continue  # a literal of another type; Spark will sort that out
        keep = pc.and_(keep, pc.fill_null(may, True).combine_chunks())
    return list(actions["path"].filter(keep).to_pylist())


def _may(low: Any, high: Any, operator: str, literal: Any) -> Any:
    if operator == "in":
        may = pc.less(low, low)
        for one in literal:
            may = pc.or_kleene(may, _may(low, high, "=", one))
        return may
    if operator == "starts":
        # Greater than every text that starts so: nothing orders after the last character.
        end = pa.scalar(literal + "\U0010ffff" * 4)
        return pc.and_(pc.greater_equal(high, pa.scalar(literal)), pc.less_equal(low, end))
    value = pa.scalar(literal).cast(low.type)
    if operator == "=":
        return pc.and_(pc.less_equal(low, value), pc.greater_equal(high, value))
    if operator in ("<", "<="):
        return pc.less(low, value) if operator == "<" else pc.less_equal(low, value)
    return pc.greater(high, value) if operator == ">" else pc.greater_equal(high, value)


def narrowed(frame: DataFrame, tables: dict[str, Table]) -> dict[str, list[str]]:
    """For each table that a question reads, the files that it needs."""
    wanted: dict[str, set[str]] = {}
    for name, conditions in scans(frame, tables):
        found = matching(tables[name].actions(), conditions)
        wanted.setdefault(name, set()).update(found)
    return {name: sorted(paths) for name, paths in wanted.items()}


def scans(frame: DataFrame, tables: dict[str, Table]) -> Iterator[tuple[str, list[Condition]]]:
    """The scans of tables in Spark's plan of a question, each with its conditions."""
    roots = {table.place.address("").rstrip("/"): name for name, table in tables.items()}
    plan = frame._jdf.queryExecution().sparkPlan()
    for node in _walk(plan):
        if node.getClass().getSimpleName() != "FileSourceScanExec":
            continue
        first = node.relation().location().rootPaths().head().toString()
        for root, name in roots.items():
            if _bare(first).startswith(f"{_bare(root)}/"):
                filters = [*_items(node.dataFilters()), *_items(node.partitionFilters())]
                yield name, [c for each in filters for c in _conditions(each)]


def _bare(address: str) -> str:
    return re.sub(r"^file:/+", "/", address)


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(n) for n in range(sequence.size())]


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in _items(node.children()):
        yield from _walk(child)
    for child in _items(node.subqueries()):
        yield from _walk(child)


def _conditions(expression: Any) -> Iterator[Condition]:
    """What an expression of Spark demands of single columns; what is not understood is left."""
    kind = expression.getClass().getSimpleName()
    parts = _items(expression.children())
    if kind == "And":
        for part in parts:
            yield from _conditions(part)
    elif kind in _OPERATORS and len(parts) == 2:
        operator = _OPERATORS[kind]
        if _is(parts[1], "AttributeReference") and _is(parts[0], "Literal"):
            parts, operator = [parts[1], parts[0]], _TURNED[operator]
        if _is(parts[0], "AttributeReference") and _is(parts[1], "Literal"):
            literal = _literal(parts[1])
            if literal is not None:
                yield parts[0].name(), operator, literal
    elif kind in ("In", "InSet") and _is(parts[0], "AttributeReference"):
        if kind == "In" and all(_is(part, "Literal") for part in parts[1:]):
            literals = [_literal(part) for part in parts[1:]]
            if all(literal is not None for literal in literals):
                yield parts[0].name(), "in", literals
    elif kind == "StartsWith" and _is(parts[0], "AttributeReference") and _is(parts[1], "Literal"):
        literal = _literal(parts[1])
        if isinstance(literal, str):
            yield parts[0].name(), "starts", literal


def _is(expression: Any, kind: str) -> bool:
    return bool(expression.getClass().getSimpleName() == kind)


def _literal(expression: Any) -> Any:
    """A literal as Arrow understands it, or None."""
    value = expression.value()
    if value is None:
        return None
    kind = expression.dataType().simpleString()
    if kind == "string":
        return str(value.toString()) if hasattr(value, "toString") else str(value)
    if kind == "timestamp":
        return pa.scalar(int(value), pa.int64()).cast(pa.timestamp("us", tz="UTC")).as_py()
    if kind == "date":
        return pa.scalar(int(value), pa.int32()).cast(pa.date32()).as_py()
    if kind in ("tinyint", "smallint", "int", "bigint", "double", "float"):
        return value
    return None

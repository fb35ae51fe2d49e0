"""Answers as tables: CSV, JSON lines, Arrow and Parquet.

A reply that is a table itself (Arrow, or a JSON list of objects, as SQL answers are) gives its rows
and columns; all other replies are rows of key, value, encoding and timestamp.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from zenlake.errors import ZError
from zenlake.rest.asking import Form
from zenlake.rest.samples import JSON, Row, json_value

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KINDS", "table_bytes"]

KINDS: Final = {
    Form.CSV: "text/csv; charset=utf-8",
    Form.JSON_LINES: "application/jsonl",
    Form.ARROW: "application/vnd.apache.arrow.stream",
    Form.PARQUET: "application/vnd.apache.parquet",
}
ARROW: Final = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")


def table_bytes(rows: Sequence[Row], form: Form) -> bytes:
    """An answer in one of the forms of `KINDS`; raises `ZError` where a library is missing."""
    records = _records(rows)
    if form is Form.CSV:
        return _csv(records)
    if form is Form.JSON_LINES:
        return "".join(f"{json.dumps(one, default=str)}\n" for one in records).encode()
    pa = _pyarrow()
    table = _arrow(rows, records)
    sink = io.BytesIO()
    if form is Form.ARROW:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        import pyarrow.parquet as pq

        pq.write_table(table, sink)
    return sink.getvalue()


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ImportError as error:
        raise ZError(
            "tables need pyarrow: pip install 'zenlake[journal]', or ask for csv or jsonl"
        ) from error
    return pa


def _embedded(row: Row) -> list[dict[str, Any]] | None:
    """The rows of a reply that is a table itself."""
    kind = row.encoding.partition(";")[0]
    if kind in ARROW:
        records: list[dict[str, Any]] = _read_arrow(row.payload).to_pylist()
        return records
    if kind in JSON:
        value = json_value(row.payload, kind)
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            return value
    return None


def _read_arrow(payload: bytes) -> pa.Table:
    pa = _pyarrow()
    try:
        if payload.startswith(b"ARROW1"):
            return pa.ipc.open_file(payload).read_all()
        return pa.ipc.open_stream(payload).read_all()
    except pa.ArrowException as error:
        raise ZError(f"a reply says that it is Arrow and is not: {error}") from error


def _records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for row in rows:
        embedded = _embedded(row)
        if embedded is not None:
            records.extend(embedded)
            continue
        records.append(
            {
                "key": row.key,
                "value": json_value(row.payload, row.encoding),
                "encoding": row.encoding,
                "timestamp": row.timestamp,
            }
        )
    return records


def _csv(records: list[dict[str, Any]]) -> bytes:
    columns = list(dict.fromkeys(name for one in records for name in one))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns or ["key", "value", "encoding", "timestamp"])
    for one in records:
        writer.writerow([_cell(one.get(name)) for name in columns])
    return text.getvalue().encode()


def _cell(value: object) -> object:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _arrow(rows: Sequence[Row], records: list[dict[str, Any]]) -> pa.Table:
    pa = _pyarrow()
    if len(rows) == 1 and rows[0].encoding.partition(";")[0] in ARROW:
        return _read_arrow(rows[0].payload)
    if all(_embedded(row) is None for row in rows):
        # Values of keys are of all kinds: they are JSON texts, and one type of column.
        columns = {name: [one[name] for one in records] for name in ("key", "encoding")}
        return pa.table(
            {
                "key": pa.array(columns["key"], pa.string()),
                "value": pa.array([json.dumps(one["value"]) for one in records], pa.string()),
                "encoding": pa.array(columns["encoding"], pa.string()),
                "timestamp": pa.array([one["timestamp"] for one in records], pa.string()),
            }
        )
    try:
        return pa.Table.from_pylist(records)
    except (pa.ArrowException, TypeError) as error:
        raise ZError(f"the rows are of different kinds and make no table: {error}") from error

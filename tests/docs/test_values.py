"""The tables of docs/reference/values.md say what becomes of each value."""

from __future__ import annotations

import datetime
import io
import json
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import cbor2
import msgpack
import numpy as np
import pyarrow as pa
import pytest

from tests.lake.rowsof import Row, batch
from zenlake.lake.decode.arrow_rows import rows_for
from zenlake.lake.model.sample_rows import sample_rows
from zenlake.lake.model.typed_table import Columns, TypedTable
from zenlake.values.encoding import ENCODING_NAMES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "values.md"
STREAM = "application/vnd.apache.arrow.stream"
JSON, CBOR = "application/json", "application/cbor"
MSGPACK = "application/msgpack"
Tag = cbor2.CBORTag

IN_CBOR: dict[str, bytes] = {
    '{"x": 21}': cbor2.dumps({"x": 21}),
    "{\"x\": 2(h'010000000000000000')}": cbor2.dumps({"x": 1 << 64}),
    '{"x": 1.5_1}': bytes.fromhex("a16178f93e00"),
    '{"x": NaN}': bytes.fromhex("a16178f97e00"),
    '{"x": -Infinity}': cbor2.dumps({"x": -math.inf}),
    '{"x": -0.0}': cbor2.dumps({"x": -0.0}),
    "{\"x\": h'00ff'}": cbor2.dumps({"x": b"\x00\xff"}),
    '{"x": "…"}': bytes.fromhex("a1617861ff"),
    "{\"x\": [1, h'00ff']}": cbor2.dumps({"x": [1, b"\x00\xff"]}),
    '{"x": ["a", NaN]}': cbor2.dumps({"x": ["a", math.nan]}),
    '{"x": [1.5, NaN]}': cbor2.dumps({"x": [1.5, math.nan]}),
    '{"x": 0("1969-12-31T23:59:59.123456789Z")}': cbor2.dumps(
        {"x": Tag(0, "1969-12-31T23:59:59.123456789Z")}
    ),
    '{"x": 1(-0.5)}': cbor2.dumps({"x": Tag(1, -0.5)}),
    '{"x": 4([-30, 123])}': cbor2.dumps({"x": Tag(4, [-30, 123])}),
    '{"x": 5([-1, 3])}': cbor2.dumps({"x": Tag(5, [-1, 3])}),
    '{"x": 258([1, 1])}': cbor2.dumps({"x": Tag(258, [1, 1])}),
    '{"x": 99999(7)}': cbor2.dumps({"x": Tag(99999, 7)}),
    '{"x": undefined, "n": 1}': cbor2.dumps({"x": cbor2.undefined, "n": 1}),
    "{1: true}": cbor2.dumps({1: True}),
    '{1: 1, "1": 2}': cbor2.dumps({1: 1, "1": 2}),
    '{"x": 1, "x": 2}': bytes.fromhex("a2617801617802"),
    "1 2": b"\x01\x02",
}
IN_MESSAGEPACK: dict[str, bytes] = {
    '{"x": 21}': msgpack.packb({"x": 21}),
    '{"x": 18446744073709551615}': msgpack.packb({"x": (1 << 64) - 1}),
    '{"x": NaN}': msgpack.packb({"x": math.nan}),
    '{"x": -0.0}': msgpack.packb({"x": -0.0}),
    '{"x": bin 00ff}': msgpack.packb({"x": b"\x00\xff"}),
    '{"x": str ff}': b"\x81\xa1x\xa1\xff",
    '{"x": timestamp -1 s + 123456789 ns}': msgpack.packb({"x": msgpack.Timestamp(-1, 123456789)}),
    '{"x": ext 5, 00ff}': msgpack.packb({"x": msgpack.ExtType(5, b"\x00\xff")}),
    '{"x": 1, "x": 2}': b"\x82\xa1x\x01\xa1x\x02",
}


def stream(compression: str | None = None, **columns: pa.Array) -> bytes:
    rows = pa.table(columns)
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    return sink.getvalue()


IN_ARROW: dict[str, bytes] = {
    "uint8 7": stream(x=pa.array([7], pa.uint8())),
    "uint64 18446744073709551615": stream(x=pa.array([(1 << 64) - 1], pa.uint64())),
    "decimal128(5, 2) 1.50": stream(x=pa.array([Decimal("1.50")], pa.decimal128(5, 2))),
    "decimal256(50, 0) 1": stream(x=pa.array([Decimal(1)], pa.decimal256(50, 0))),
    "float16 -0.0": stream(x=pa.array(np.array([-0.0], np.float16))),
    "float64 NaN": stream(x=pa.array([math.nan])),
    "float64 null": stream(x=pa.array([None], pa.float64())),
    "timestamp[us] -1": stream(x=pa.array([-1], pa.timestamp("us"))),
    "timestamp[s, Europe/Berlin] 0": stream(x=pa.array([0], pa.timestamp("s", "Europe/Berlin"))),
    "timestamp[ns] 1000": stream(x=pa.array([1000], pa.timestamp("ns"))),
    "timestamp[ns] 1500": stream(x=pa.array([1500], pa.timestamp("ns"))),
    "list<timestamp[ns]> [1500]": stream(x=pa.array([[1500]], pa.list_(pa.timestamp("ns")))),
    "timestamp[us] 4611686018427387904": stream(x=pa.array([1 << 62], pa.timestamp("us"))),
    "date64 1969-12-31": stream(x=pa.array([datetime.date(1969, 12, 31)], pa.date64())),
    "duration[s] 1": stream(x=pa.array([1], pa.duration("s"))),
    'dictionary<string> "a"': stream(x=pa.array(["a"]).dictionary_encode()),
    "struct<a: int32> {a: 1}": stream(x=pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))),
    "struct<a: int32, A: int32> {a: 1, A: 1}": stream(
        x=pa.StructArray.from_arrays([pa.array([1], pa.int32())] * 2, ["a", "A"])
    ),
    "null": stream(x=pa.nulls(1), n=pa.array([1])),
    "int64 1 as x and X": stream(x=pa.array([1]), X=pa.array([1])),
    "int64 1, compressed": stream(compression="zstd", x=pa.array([1])),
}


def rows_of_section(name: str) -> list[list[str]]:
    """Return the cells of each row of the table in a section of the page."""
    section = PAGE.read_text().split(f"\n## {name}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def outcome(payload: bytes, encoding: str, known: Columns, batches: bool = False) -> str:
    """Return what becomes of a payload, in the words of the page."""
    table = TypedTable("t", "k", encoding=STREAM if batches else None)
    typed = rows_for(table, known)
    number = ENCODING_NAMES.index(encoding) if encoding in ENCODING_NAMES else 65535
    schema = None if encoding in ENCODING_NAMES else encoding
    typed.add(sample_rows(batch([Row("k", payload, encoding=number, schema=schema)]), "j", 0))
    rows, refused = typed.rows().to_pylist(), typed.quarantine().to_pylist()
    assert len(rows) + len(refused) == 1
    if refused:
        return f"quarantine: `{refused[0]['reason']}`"
    kinds = {**known.kinds, **typed.new}
    return ", ".join(f"`{name} {kind} {shown(rows[0][name])}`" for name, kind in kinds.items())


def shown(value: Any) -> str:
    if isinstance(value, bytes):
        return f"h'{value.hex()}'"
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, datetime.date | Decimal):
        return str(value)
    return json.dumps(value)


def cases() -> list[Any]:
    found = []
    for section, encoding, payloads in (
        ("JSON", JSON, None),
        ("CBOR", CBOR, IN_CBOR),
        ("MessagePack", MSGPACK, IN_MESSAGEPACK),
        ("Arrow", STREAM, IN_ARROW),
    ):
        for what, sent, want in rows_of_section(section):
            (code,) = codes(sent)
            payload = code.encode() if payloads is None else payloads[code]
            found.append(pytest.param(payload, encoding, Columns(), want, id=f"{section}: {what}"))
    for column, sent, want in rows_of_section("Into a column that is there"):
        (kind,), (code,) = codes(column), codes(sent)
        fixed = frozenset("x") if "declared" in column else frozenset()
        known = Columns({"x": kind}, fixed)
        found.append(pytest.param(code.encode(), JSON, known, want, id=f"{column}: {code}"))
    return found


@pytest.mark.parametrize(("payload", "encoding", "known", "want"), cases())
def test_each_value_becomes_what_the_page_says(
    payload: bytes, encoding: str, known: Columns, want: str
) -> None:
    assert outcome(payload, encoding, known, batches=encoding == STREAM) == want


@pytest.mark.parametrize(
    ("section", "payloads"),
    [("CBOR", IN_CBOR), ("MessagePack", IN_MESSAGEPACK), ("Arrow", IN_ARROW)],
)
def test_the_page_has_a_row_for_each_payload(section: str, payloads: dict[str, bytes]) -> None:
    assert [codes(sent)[0] for _, sent, _ in rows_of_section(section)] == list(payloads)

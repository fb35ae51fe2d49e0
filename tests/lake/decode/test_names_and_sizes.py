"""Names of fields as columns, and payloads as large as they come."""

from __future__ import annotations

import json

import cbor2
import pytest

from tests.lake.rowsof import Row, batch
from zenlake.lake.decode.typed_rows import TypedRows
from zenlake.lake.model.sample_rows import sample_rows
from zenlake.lake.model.typed_table import MOST_COLUMNS, Columns, TypedTable, settled
from zenlake.lake.model.value_types import MOST_NAME, column_name, name_key

POSE = TypedTable("pose", "robot/${id:*}/pose")
JSON, CBOR, NO_ENCODING = 5, 8, 0


def decoded(
    payloads: list[bytes], encoding: int = JSON, known: dict[str, str] | None = None
) -> TypedRows:
    typed = TypedRows(POSE, Columns(known or {}))
    rows = [Row("robot/7/pose", one, n, encoding=encoding) for n, one in enumerate(payloads)]
    typed.add(sample_rows(batch(rows), "j", 0))
    return typed


NAMES = [
    ("plain", "plain"),
    ("größe", "größe"),
    ("温度", "温度"),
    ("a.b", "a_b"),
    ("a-b c/d", "a_b_c_d"),
    ("1st", "1st"),
    ("", "_"),
    ("select", "select"),
    ("`; DROP TABLE x", "___DROP_TABLE_x"),
    ("e\u0301", "e_"),
    ("🤖", "_"),
    ("key", "payload_key"),
    ("Offset", "payload_Offset"),
    ("id", "payload_id"),
    ("off\u017fet", "payload_off\u017fet"),
    ("x" * MOST_NAME, "x" * MOST_NAME),
]


@pytest.mark.parametrize(("name", "column"), NAMES)
@pytest.mark.parametrize("count", [1, 100], ids=["one by one", "in columns"])
def test_the_name_of_a_field_becomes_that_of_a_column(name: str, column: str, count: int) -> None:
    typed = decoded([json.dumps({name: 1}).encode()] * count)
    assert typed.new == {column: "bigint"}


SAME = [
    ("X", "x"),
    ("É", "é"),
    ("\u212a", "k"),  # the sign of Kelvin
    ("\u00b5", "\u03bc"),  # micro, and the letter mu
    ("σ", "ς"),
    ("\u0131", "I"),
    ("\u0130", "i"),
    ("\u017f", "S"),
]
"""Names that readers of tables take for one, as Java's `equalsIgnoreCase` says."""


@pytest.mark.parametrize(("one", "other"), SAME)
def test_names_that_differ_in_case_alone_are_one_column(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)
    typed = decoded([json.dumps({one: 1}).encode(), json.dumps({other: 2}).encode()])
    assert typed.new == {one: "bigint"}
    assert [row[one] for row in typed.rows().to_pylist()] == [1, 2]
    assert settled(Columns(), [{one: "bigint"}, {other: "bigint"}])[0] == {one: "bigint"}
    both = decoded([json.dumps({one: 1, other: 2}).encode()] * 100)
    assert set(both.quarantine()["reason"].to_pylist()) == {"name"}
    assert both.rows().num_rows == 0


@pytest.mark.parametrize(("one", "other"), [("ss", "ß"), ("i", "y"), ("a_b", "ab"), ("ﬁ", "fi")])
def test_other_names_are_columns_of_their_own(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)
    assert decoded([json.dumps({one: 1, other: 2}).encode()]).new.keys() == {one, other}


def test_long_names_are_told_apart_by_what_is_cut() -> None:
    one, other = "x" * 300 + "a", "x" * 300 + "b"
    assert column_name(one) != column_name(other)
    assert len(column_name(one)) == MOST_NAME
    assert column_name(one) == "x" * 183 + "_" + column_name(one)[-16:]
    typed = decoded([json.dumps({one: 1, other: 2}).encode()])
    assert typed.rows().to_pylist()[0][column_name(other)] == 2


@pytest.mark.parametrize("count", [1, 100], ids=["one by one", "in columns"])
def test_a_thousand_columns_are_a_table_and_one_more_is_in_quarantine(count: int) -> None:
    many = {f"c{n}": n for n in range(MOST_COLUMNS)}
    one_more = json.dumps({"c5": 1, "more": 2}).encode()
    typed = decoded([json.dumps(many).encode()] * count + [one_more])
    rows = typed.rows().to_pylist()
    assert len(rows) == count
    assert {name: rows[-1][name] for name in many} == many
    (bad,) = typed.quarantine().to_pylist()
    assert (bad["reason"], bad["field"]) == ("columns", "more")


SIZE = 64 << 20


@pytest.mark.parametrize(
    ("payload", "encoding", "column"),
    [
        (b'{"n":1,"x":"' + b"a" * SIZE + b'"}', JSON, "x"),
        (cbor2.dumps({"n": 1, "x": b"\xff" * SIZE}), CBOR, "x"),
        (b"b" * SIZE, NO_ENCODING, "text"),
        (b"\xff" * SIZE, NO_ENCODING, "bytes"),
    ],
    ids=["JSON", "CBOR", "text", "bytes"],
)
def test_a_payload_of_64_megabytes_is_a_row(payload: bytes, encoding: int, column: str) -> None:
    typed = decoded([payload], encoding)
    assert typed.quarantine().num_rows == 0
    (value,) = typed.rows()[column].to_pylist()
    assert len(value) == SIZE


def test_a_million_numbers_are_a_row_too() -> None:
    count = 1_000_000
    payload = b'{"x":[' + b"1234567," * (count - 1) + b"1234567]}"
    typed = decoded([payload])
    assert typed.new == {"x": "array<bigint>"}
    assert len(typed.rows()["x"][0]) == count

"""JSON whose values no column holds exactly is in quarantine, whichever way it is read."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.lake.rowsof import Row, batch
from zenlake.expr.record import implied_value, json_value
from zenlake.lake.decode.typed_rows import TypedRows
from zenlake.lake.model.sample_rows import sample_rows
from zenlake.lake.model.typed_table import Columns, TypedTable

POSE = TypedTable("pose", "robot/${id:*}/pose")
JSON = 5
MANY = pytest.mark.parametrize("count", [1, 500], ids=["one by one", "in columns"])


def decoded(payloads: list[bytes], known: dict[str, str] | None = None) -> TypedRows:
    typed = TypedRows(POSE, Columns(known or {}))
    rows = [Row("robot/7/pose", payload, n, encoding=JSON) for n, payload in enumerate(payloads)]
    typed.add(sample_rows(batch(rows), "j", 0))
    return typed


@MANY
@pytest.mark.parametrize(
    ("payload", "field"),
    [
        (b'{"x":1,"x":2}', "x"),
        (b'{"x":1,"x":1}', "x"),
        (b'{"x":null,"x":1}', "x"),
        (b'{"x":1,"\\u0078":2}', "x"),
        (b'{"p":{"a":1,"a":2}}', "a"),
        (b'{"l":[{"a":1,"a":2}]}', "a"),
        (b'[{"a":1,"a":2}]', "a"),
    ],
)
def test_a_name_twice_in_one_object_is_in_quarantine(
    payload: bytes, field: str, count: int
) -> None:
    typed = decoded([b'{"x":7}'] * count + [payload] + [b'{"x":8}'] * count)
    assert [row["x"] for row in typed.rows().to_pylist()] == [7] * count + [8] * count
    (bad,) = typed.quarantine().to_pylist()
    assert (bad["reason"], bad["field"], bad["value"]) == ("name", field, payload)
    assert bad["detail"] == f"'{field}' stands twice in one object"


@MANY
@pytest.mark.parametrize("number", [b"1e309", b"-1e999", b"1" * 400 + b".5"])
def test_a_number_beyond_all_doubles_is_in_quarantine_and_not_infinite(
    number: bytes, count: int
) -> None:
    payload = b'{"x":' + number + b"}"
    typed = decoded([b'{"x":0.5}'] * count + [payload])
    assert [row["x"] for row in typed.rows().to_pylist()] == [0.5] * count
    (bad,) = typed.quarantine().to_pylist()
    assert (bad["reason"], bad["value"]) == ("range", payload)
    assert json_value(payload) is None
    assert implied_value(payload) == payload.decode()


def signs(rows: list[dict[str, Any]]) -> list[float]:
    return [math.copysign(1, row["x"]) for row in rows]


@MANY
def test_minus_zero_with_a_fraction_has_its_sign_and_whole_it_is_zero(count: int) -> None:
    told = [b'{"x":-0.0}', b'{"x":-0}', b'{"x": -0 }', b'{"x":0.5}', b'{"x":-0e1}'] * count
    typed = decoded(told)
    assert signs(typed.rows().to_pylist()) == [-1, 1, 1, 1, -1] * count
    assert typed.new == {"x": "double"}
    whole = decoded([b'{"x":-0}', b'{"x":5}'] * count)
    assert [row["x"] for row in whole.rows().to_pylist()] == [0, 5] * count
    assert whole.new == {"x": "bigint"}


@MANY
def test_minus_zero_in_a_column_that_stays_whole_is_in_quarantine(count: int) -> None:
    typed = TypedRows(POSE, Columns({"x": "bigint"}, frozenset("x")))
    payloads = [b'{"x":1}', b'{"x":2.0}', b'{"x":-0.0}'] * count
    rows = [Row("robot/7/pose", payload, n, encoding=JSON) for n, payload in enumerate(payloads)]
    typed.add(sample_rows(batch(rows), "j", 0))
    assert [row["x"] for row in typed.rows().to_pylist()] == [1, 2] * count
    assert {row["value"] for row in typed.quarantine().to_pylist()} == {b'{"x":-0.0}'}
    assert set(typed.quarantine()["reason"].to_pylist()) == {"range"}


@MANY
def test_a_decimal_becomes_the_nearest_double(count: int) -> None:
    typed = decoded([b'{"x":0.1234567890123456789}', b'{"x":5e-324}', b'{"x":1e-400}'] * count)
    want = [0.12345678901234568, 5e-324, 0.0] * count
    assert [row["x"] for row in typed.rows().to_pylist()] == want


@pytest.mark.parametrize("digits", [str(1 << 63), str(-(1 << 63) - 1), "1" + "0" * 30])
@MANY
def test_a_whole_number_beyond_64_bits_is_in_quarantine(digits: str, count: int) -> None:
    payload = b'{"x":%s}' % digits.encode()
    typed = decoded([b'{"x":1}'] * count + [payload])
    (bad,) = typed.quarantine().to_pylist()
    assert (bad["reason"], bad["value"]) == ("range", payload)

"""Samples as JSON, events and tables: valid, whatever was published."""

from __future__ import annotations

import base64
import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.rest.asking import Form
from zenlake.rest.samples import (
    JSON,
    TEXT,
    Row,
    event,
    html,
    json_array,
    json_value,
    raw_headers,
    row_json,
)
from zenlake.rest.tables import table_bytes

ENCODINGS = st.sampled_from([*sorted(JSON), *sorted(TEXT), "zenoh/bytes", "application/json;x"])
ROWS = st.builds(Row, st.text(min_size=1), st.binary(), ENCODINGS, st.none() | st.just("1/ab"))


def refused(name: str) -> float:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize(
    ("payload", "encoding", "value"),
    [
        (b"", "application/json", None),
        (b'{"a":[1,2.5]}', "application/json", {"a": [1, 2.5]}),
        (b"12", "text/json", 12),
        (b"hello", "text/plain", "hello"),
        (b"hello", "zenoh/string", "hello"),
        (b"hello", "zenoh/bytes", "aGVsbG8="),
        (b'{"a":1}', "application/json;schema", "eyJhIjoxfQ=="),
        (b"{nope", "application/json", "e25vcGU="),
        (b"NaN", "application/json", "TmFO"),
        (b"1e999", "application/json", "MWU5OTk="),
        (b"\xff", "text/plain", "/w=="),
    ],
)
def test_a_payload_is_shown_by_its_encoding(payload: bytes, encoding: str, value: object) -> None:
    assert json_value(payload, encoding) == value


@given(st.lists(ROWS))
def test_every_answer_is_valid_json_that_says_what_was_published(rows: list[Row]) -> None:
    found = json.loads(json_array(rows), parse_constant=refused)
    assert [one["key"] for one in found] == [row.key for row in rows]
    for one, row in zip(found, rows, strict=True):
        if row.encoding in ("zenoh/bytes", "application/json;x") and row.payload:
            assert base64.b64decode(one["value"]) == row.payload


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, "1" * 5000, '"\\ud800"'])
def test_json_that_strains_a_parser_still_gives_valid_json(text: str) -> None:
    row = Row("a", text.encode(), "application/json")
    assert json.loads(row_json(row))["key"] == "a"


@given(ROWS)
def test_an_event_is_one_event(row: Row) -> None:
    lines = event(row).decode().split("\n")
    assert lines[0] == "event: PUT"
    assert lines[-2:] == ["", ""]
    assert json.loads(lines[-3].removeprefix("data: "))["key"] == row.key
    assert len(lines) == (5 if row.timestamp else 4)


def test_what_looks_like_html_is_shown_and_not_run() -> None:
    assert html([Row("a", b"<script>", "text/plain")]) == (
        "<dl>\n<dt>a</dt>\n<dd>&lt;script&gt;</dd>\n</dl>\n"
    )


@pytest.mark.parametrize(
    ("encoding", "kind", "packed"),
    [
        ("application/json", "application/json", None),
        ("text/plain;charset=utf-8", "text/plain;charset=utf-8", None),
        ("zenoh/bytes", "zenoh/bytes", None),
        ("application/json;schema", "application/octet-stream", None),
        ("my own", "application/octet-stream", None),
        ("text/plain\r\nx: y", "application/octet-stream", None),
        ("text/a;v=1;content-encoding=gzip", "text/a;v=1", "gzip"),
        ("text/a; content-encoding=br ;v=1", "text/a;v=1", "br"),
        ("text/a;content-encoding=é", "text/a", None),
    ],
)
def test_a_payload_as_it_is_has_the_headers_of_its_encoding(
    encoding: str, kind: str, packed: str | None
) -> None:
    headers = raw_headers(encoding)
    assert (headers["content-type"], headers.get("content-encoding")) == (kind, packed)


def test_samples_are_rows_of_every_kind_of_table() -> None:
    rows = [Row("a", b'{"b":1}', "application/json", "7/ab"), Row("c", b"x,y", "text/plain")]
    lines = list(csv.reader(io.StringIO(table_bytes(rows, Form.CSV).decode())))
    assert lines == [
        ["key", "value", "encoding", "timestamp"],
        ["a", '{"b": 1}', "application/json", "7/ab"],
        ["c", "x,y", "text/plain", ""],
    ]
    records = [json.loads(line) for line in table_bytes(rows, Form.JSON_LINES).splitlines()]
    assert [one["value"] for one in records] == [{"b": 1}, "x,y"]
    for table in (
        pa.ipc.open_stream(table_bytes(rows, Form.ARROW)).read_all(),
        pq.read_table(io.BytesIO(table_bytes(rows, Form.PARQUET))),
    ):
        assert table.column("key").to_pylist() == ["a", "c"]
        assert table.column("value").to_pylist() == ['{"b": 1}', '"x,y"']


def test_a_reply_that_is_a_table_gives_its_own_columns() -> None:
    sink = io.BytesIO()
    table = pa.table({"robot": [1, 2], "battery": [0.5, None]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = Row("@lake/sql", sink.getvalue(), "application/vnd.apache.arrow.stream")
    text = Row("@lake/sql", b'[{"robot":1,"battery":0.5}]', "application/json")
    assert pq.read_table(io.BytesIO(table_bytes([arrow], Form.PARQUET))).equals(table)
    assert table_bytes([text], Form.CSV).decode() == "robot,battery\r\n1,0.5\r\n"
    assert table_bytes([arrow], Form.CSV).decode() == "robot,battery\r\n1,0.5\r\n2,\r\n"


def test_letters_are_written_as_they_are_and_half_a_pair_of_surrogates_escaped() -> None:
    assert row_json(Row("é", "ü".encode(), "text/plain")).decode() == (
        '{"key":"é","value":"ü","encoding":"text/plain","timestamp":null}'
    )
    assert b'"value":"\\ud800"' in row_json(Row("é", rb'"\ud800"', "application/json"))

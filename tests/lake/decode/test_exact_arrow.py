"""Values of Arrow are columns that hold them exactly, or their sample is in quarantine."""

from __future__ import annotations

import datetime
import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, read_config
from zenlake.lake.decode.formats.arrow_ipc import ArrowIpc
from zenlake.lake.model.decoder import DecodedRows, PayloadBatch, Undecodable


class Times:
    """A decoder of somebody else, which gives values that no column holds."""

    def decode_batch(self, batch: PayloadBatch) -> list[DecodedRows]:
        values = pa.array([int(one) for one in batch.payloads], pa.timestamp("ns"))
        return [DecodedRows({"at": values}, np.arange(len(values)))]


NAME = "application/vnd.apache.arrow.stream"
CONFIG = read_config(
    f"""{{tables: {{
        scan: {{format: "robot/${{id}}/scan", encoding: "{NAME}"}},
        custom: {{format: "robot/${{id}}/custom", decoder: "{__name__}:Times"}},
    }}}}"""
)
UTC = datetime.UTC


def stream(columns: dict[str, pa.Array]) -> bytes:
    rows = pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def tables(
    folder: Path, payloads: list[bytes], kind: str = "scan"
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of the table and of the quarantine, in the order of their samples."""
    rows = [Row(f"robot/1/{kind}", payload, n) for n, payload in enumerate(payloads)]
    write(folder / "journal", rows, 1)
    pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), CONFIG)
    pipeline.step()
    assert pipeline.stopped.sentences() == ()
    found = [rows_of(folder / "lake", name) for name in (kind, "quarantine")]
    return tuple(sorted(one, key=lambda row: row["offset"]) for one in found)  # type: ignore[return-value]


SMALL = pa.struct([("a", pa.uint8())])
EXACT: list[tuple[str, pa.Array, list[Any]]] = [
    ("uint64", pa.array([(1 << 64) - 1, 0], pa.uint64()), [Decimal((1 << 64) - 1), Decimal(0)]),
    ("decimal", pa.array([Decimal("0.10"), None]), [Decimal("0.10"), None]),
    ("float16", pa.array(np.array([1.5, -0.0], np.float16)), [1.5, -0.0]),
    ("infinite", pa.array([math.inf, -math.inf]), [math.inf, -math.inf]),
    ("before 1970", pa.array([-1, -1_000_001], pa.timestamp("us")), [-1, -1_000_001]),
    ("date64", pa.array([datetime.date(1969, 12, 31)], pa.date64()), [datetime.date(1969, 12, 31)]),
    ("nested", pa.array([[{"a": 1}], None], pa.list_(SMALL)), [[{"a": 1}], None]),
    ("view", pa.array(["é", None], pa.string_view()), ["é", None]),
    ("map", pa.array([[("k", 7)]], pa.map_(pa.string(), pa.uint32())), [[("k", 7)]]),
    ("fixed", pa.array([[1, 2], [3, 4]], pa.list_(pa.uint8(), 2)), [[1, 2], [3, 4]]),
]  # fmt: skip


@pytest.mark.parametrize(("values", "want"), [one[1:] for one in EXACT], ids=[e[0] for e in EXACT])
def test_values_are_those_that_were_sent(tmp_path: Path, values: pa.Array, want: Any) -> None:
    kept, bad = tables(tmp_path, [stream({"x": values})])
    assert bad == []
    found = [row["x"] for row in kept]
    if pa.types.is_timestamp(values.type):
        epoch = datetime.datetime(1970, 1, 1, tzinfo=UTC)
        found = [(one - epoch) // datetime.timedelta(microseconds=1) for one in found]
    assert list(map(repr, found)) == list(map(repr, want))


def test_nanoseconds_that_a_time_does_not_hold_stand_beside_it(tmp_path: Path) -> None:
    times = [1_500, 2_000, -1, None]
    fine = stream({"at": pa.array(times, pa.timestamp("ns"))})
    whole = stream({"at": pa.array([3_000], pa.timestamp("ns", tz="Europe/Berlin"))})
    kept, bad = tables(tmp_path, [whole, fine])
    assert bad == []
    assert [row["at_ns"] for row in kept] == [None, *times]
    epoch = datetime.datetime(1970, 1, 1, tzinfo=UTC)
    micros = [
        row["at"] and (row["at"] - epoch) / datetime.timedelta(microseconds=1) for row in kept
    ]
    assert micros == [3, 1, 2, -1, None]


def test_a_field_that_has_the_name_of_the_nanoseconds_costs_its_sample(tmp_path: Path) -> None:
    at = pa.array([1_500], pa.timestamp("ns"))
    kept, bad = tables(tmp_path, [stream({"at": at, "AT_ns": pa.array([5])})])
    assert kept == []
    assert [(row["reason"], row["field"]) for row in bad] == [("name", "at_ns")]


def inside(*names: str) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array([1])] * len(names), list(names))


def nested(depth: int) -> pa.Array:
    values = pa.array([1])
    for _ in range(depth):
        values = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), values)
    return values


REFUSED: list[tuple[str, pa.Array, str]] = [
    ("nanoseconds in a list", pa.array([[1_500]], pa.list_(pa.timestamp("ns"))), "range"),
    ("nanoseconds inside", pa.array([{"t": 1}], pa.struct([("t", pa.timestamp("ns"))])), "range"),
    ("beyond the year 9999", pa.array([1 << 62], pa.timestamp("us")), "range"),
    ("before the year 1", pa.array([-(1 << 62)], pa.timestamp("us")), "range"),
    ("beyond all times", pa.array([1 << 62], pa.timestamp("s")), "range"),
    ("a late date", pa.array([1 << 30], pa.date32()), "range"),
    ("a late date in a list", pa.array([[1 << 30]], pa.list_(pa.date32())), "range"),
    ("a duration", pa.array([1], pa.duration("s")), "type"),
    ("fields inside but for their case", inside("a", "A"), "type"),
    ("a field inside twice", inside("a", "a"), "type"),
    ("a field inside without a name", inside(""), "type"),
    ("hundreds and no digits", pa.array([100], pa.decimal128(5, -2)), "type"),
    ("lists without end", nested(40), "type"),
    ("256 bits", pa.array([Decimal(1)], pa.decimal256(50, 0)), "type"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "reason"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED]
)
def test_what_no_column_holds_costs_its_own_sample(
    tmp_path: Path, values: pa.Array, reason: str
) -> None:
    good = stream({"n": pa.array([1])})
    kept, bad = tables(tmp_path, [good, stream({"x": values, "n": pa.array([2])}), good])
    assert [row["n"] for row in kept] == [1, 1]
    assert [(row["reason"], row["field"], row["offset"]) for row in bad] == [(reason, "x", 1)]


def test_names_are_fit_for_tables_and_two_for_one_column_cost_their_sample(tmp_path: Path) -> None:
    one = pa.array([1])
    kept, bad = tables(
        tmp_path,
        [
            stream({"a b": one, "key": one, "ü": one}),
            stream({"a b": one, "a_b": one}),
            stream({"key": one, "payload_key": one}),
            stream({"x": one, "X": one}),
        ],
    )
    assert [(row["a_b"], row["payload_key"], row["ü"]) for row in kept] == [(1, 1, 1)]
    assert [(row["reason"], row["offset"]) for row in bad] == [
        ("name", 1),
        ("name", 2),
        ("name", 3),
    ]


def test_a_field_that_is_new_inside_and_is_there_in_another_case_costs_its_sample(
    tmp_path: Path,
) -> None:
    kept, bad = tables(tmp_path, [stream({"x": inside("a")}), stream({"x": inside("A")})])
    assert [row["x"] for row in kept] == [{"a": 1}]
    assert [(row["reason"], row["offset"]) for row in bad] == [("type", 1)]


def test_a_column_of_nulls_alone_says_nothing(tmp_path: Path) -> None:
    kept, bad = tables(tmp_path, [stream({"x": pa.nulls(2), "n": pa.array([1, 2])})])
    assert bad == []
    assert [(row["n"], "x" in row) for row in kept] == [(1, False), (2, False)]


def test_lists_in_lists_are_read_back(tmp_path: Path) -> None:
    kept, bad = tables(tmp_path, [stream({"x": nested(16)})])
    assert bad == []
    assert kept[0]["x"] == nested(16).to_pylist()[0]


def test_among_other_encodings_numbers_are_numbers() -> None:
    row = {
        "u": pa.array([7], pa.uint64()),
        "d": pa.array([Decimal("0.10")]),
        "w": pa.array([Decimal(5)], pa.decimal128(20, 0)),
        "at": pa.array([1_500], pa.timestamp("ns")),
        "nan": pa.array([math.nan]),
    }
    found = dict(ArrowIpc().decode(stream(row), "", None))
    assert math.isnan(found.pop("nan"))  # type: ignore[arg-type]
    assert found == {
        "u": 7,
        "d": "0.10",
        "w": 5,
        "at": "1970-01-01T00:00:00.000001+00:00",
        "at_ns": 1500,
    }


def test_a_value_of_another_decoder_costs_its_own_sample(tmp_path: Path) -> None:
    kept, bad = tables(tmp_path, [b"1000", b"1500", b"2000"], "custom")
    assert [row["at"].microsecond for row in kept] == [1, 2]
    assert [(row["reason"], row["offset"]) for row in bad] == [("range", 1)]


def test_names_that_differ_in_case_alone_are_refused_by_name() -> None:
    with pytest.raises(Undecodable) as refused:
        ArrowIpc().decode(stream({"x": pa.array([1]), "X": pa.array([2])}), "", None)
    assert refused.value.reason == "name"

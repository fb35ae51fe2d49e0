from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, read_config
from zenlake.lake.decode.formats.arrow_ipc import ArrowIpc
from zenlake.lake.decode.registry import decoder_for
from zenlake.lake.model.decoder import Undecodable

NAME = "application/vnd.apache.arrow.stream"
CONFIG = read_config(f'{{tables: {{scan: {{format: "robot/${{id}}/scan", encoding: "{NAME}"}}}}}}')
SCAN = pa.table(
    {
        "beam": pa.array([1, 2], pa.uint16()),
        "range": pa.array([1.5, float("nan")]),
        "label": pa.array(["a", "b"]).dictionary_encode(),
        "pose": pa.array([{"x": 1}, {"x": 2}]),
        "bits": pa.array([[1, 2], [3, 4]], pa.list_(pa.uint8(), 2)),
        "at": pa.array([0, 1_500], pa.timestamp("ns")),
    }
)


def written(rows: pa.Table, form: str = "stream", **options: Any) -> bytes:
    sink = io.BytesIO()
    make = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
    with make(sink, rows.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def test_all_rows_of_a_sample_are_rows_of_its_table(tmp_path: Path) -> None:
    write(
        tmp_path / "journal",
        [
            Row("robot/1/scan", written(SCAN), 0),
            Row("robot/2/scan", written(SCAN.slice(0, 1), "file"), 1),
            Row("robot/1/scan", written(SCAN, compression="zstd"), 2),
            Row("robot/1/scan", b"nothing of the sort", 3),
            Row("robot/1/scan", written(SCAN.slice(0, 0)), 4),
        ],
    )
    Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), CONFIG).step()
    rows = sorted(rows_of(tmp_path / "lake", "scan"), key=lambda row: (row["id"], row["beam"]))
    assert [(row["id"], row["beam"], str(row["range"]), row["label"]) for row in rows] == [
        ("1", 1, "1.5", "a"),
        ("1", 2, "nan", "b"),
        ("2", 1, "1.5", "a"),
    ]
    assert (rows[1]["pose"], rows[1]["bits"]) == ({"x": 2}, [3, 4])
    assert rows[1]["at"].microsecond == 1
    held = rows_of(tmp_path / "lake", "quarantine")
    assert sorted(row["detail"].partition(";")[0].partition(":")[0] for row in held) == [
        "compressed Arrow is not read",
        "not Arrow",
    ]


def test_among_other_encodings_a_sample_is_one_row() -> None:
    decoder = decoder_for(NAME)
    assert isinstance(decoder, ArrowIpc)
    assert decoder.decode(written(SCAN.slice(0, 1)), "", None)["pose"] == {"x": 1}
    with pytest.raises(Undecodable, match="2 rows in one sample"):
        decoder.decode(written(SCAN), "", None)


@given(st.integers(0, len(written(SCAN)) - 1), st.integers(0, 255))
def test_bytes_that_were_changed_are_read_or_refused(place: int, byte: int) -> None:
    damaged = bytearray(written(SCAN))
    damaged[place] = byte
    try:
        found = ArrowIpc().decode(bytes(damaged), "", None)
    except Undecodable:
        return
    assert len(found) <= len(SCAN.column_names)

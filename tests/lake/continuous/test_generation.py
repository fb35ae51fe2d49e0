"""What becomes of a view or an alert when the columns that it was planned with change."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lake.journals import Here, table_of, write
from tests.lake.mortal import CONFIG
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, read_config
from zenlake.lake.continuous.generation import (
    SchemaMoved,
    begin_generation,
    known_generation,
    next_generation,
    watermark_of,
)
from zenlake.lake.continuous.table_stream import TableStream

BEFORE = pa.schema([("key", pa.string()), ("volts", pa.int64())])
WIDER = pa.schema([("key", pa.string()), ("volts", pa.float64())])
MORE = pa.schema([*BEFORE, pa.field("mean", pa.float64())])


def test_without_state_the_columns_are_those_of_now(tmp_path: Path) -> None:
    assert known_generation(tmp_path) is None
    for schema in (BEFORE, WIDER, MORE):
        generation, read, why = next_generation(
            known_generation(tmp_path), {"battery": schema}, stateful=False
        )
        begin_generation(tmp_path, generation)
        assert (generation.number, read, why) == (0, {"battery": schema}, "")
    assert generation.folder(tmp_path) == tmp_path
    assert generation.app("view/1") == "view/1"


def test_state_is_kept_for_the_columns_that_it_began_with(tmp_path: Path) -> None:
    first, _, _ = next_generation(None, {"battery": BEFORE}, stateful=True)
    begin_generation(tmp_path, first)
    known = known_generation(tmp_path)
    assert known == first
    same, read, why = next_generation(known, {"battery": MORE}, stateful=True)
    assert (same, read, why) == (first, {"battery": BEFORE}, "")
    second, read, why = next_generation(known, {"battery": WIDER}, stateful=True)
    assert (second.number, read) == (1, {"battery": WIDER})
    assert why == "the column 'volts' of 'battery' became double, it was bigint"
    assert second.folder(tmp_path) == tmp_path / "generation-1"
    assert second.app("view/1") == "view/1/1"
    gone = pa.schema([BEFORE.field("key")])
    _, _, why = next_generation(known, {"battery": gone}, stateful=True)
    assert why == "the column 'volts' of 'battery' is gone"


def test_what_an_earlier_generation_noted_is_deleted(tmp_path: Path) -> None:
    first, _, _ = next_generation(None, {"battery": BEFORE}, stateful=True)
    for name in ("checkpoint", "input", "steps", "generation-1", "generation-2"):
        (tmp_path / name).mkdir()
    for name in ("input.battery.json", "start.json"):
        (tmp_path / name).touch()
    begin_generation(tmp_path, first)
    left = {"checkpoint", "input", "steps", "input.battery.json", "start.json", "generation.json"}
    assert {one.name for one in tmp_path.iterdir()} == left
    second, _, _ = next_generation(first, {"battery": WIDER}, stateful=True)
    second.folder(tmp_path).mkdir()
    begin_generation(tmp_path, second)
    assert {one.name for one in tmp_path.iterdir()} == {
        "steps", "start.json", "generation.json", "generation-1",
    }  # fmt: skip


def test_the_watermark_is_that_of_the_last_batch_that_finished(tmp_path: Path) -> None:
    assert watermark_of(tmp_path, None) is None
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    for number in range(3):
        page = ["v1", json.dumps({"batchWatermarkMs": 1000 * number}), "{}"]
        (tmp_path / "offsets" / str(number)).write_text("\n".join(page))
    assert watermark_of(tmp_path, None) is None
    (tmp_path / "commits" / "0").touch()
    (tmp_path / "commits" / "1").touch()
    assert watermark_of(tmp_path, None) == 1.0
    assert watermark_of(tmp_path, 2) == 2.0


def test_files_of_a_stream_follow_the_columns_of_their_table(tmp_path: Path) -> None:
    def heard(second: int, volts: float) -> None:
        told = json.dumps({"volts": volts, "amps": volts / 2}).encode()
        write(tmp_path / "journal", [Row("robot/1/battery", told, at=second, encoding=5)])
        pipeline.step()

    heard_first = Row("robot/1/battery", b'{"volts": 4, "amps": 2}', at=0, encoding=5)
    write(tmp_path / "journal", [heard_first])
    config = read_config(CONFIG)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), config)
    pipeline.step()
    journals = {pipeline.journal.id: 2}

    def opened(schema: pa.Schema, *, every: bool = False) -> TableStream:
        table = table_of(tmp_path / "lake", "battery")
        return TableStream(tmp_path, table, {}, schema, every=every)

    def read(stream: TableStream) -> list[list[float]]:
        return [
            pq.read_table(path)["volts"].to_pylist()
            for path in sorted(stream.folder.glob("[0-9]*.parquet"))
        ]

    stream = opened(BEFORE)
    assert stream.more(journals)
    heard(1, 3)  # another column of the table becomes wider
    assert stream.more(journals)
    assert read(stream) == [[4], [3]]
    heard(2, 0.5)
    with pytest.raises(SchemaMoved, match="'volts' of 'battery' became double"):
        stream.more(journals)
    with pytest.raises(SchemaMoved, match="'volts' of 'battery' became double"):
        opened(BEFORE)
    again = opened(WIDER)
    assert again.more(journals)
    assert read(again) == [[4.0], [3.0], [0.5]]
    assert {pq.read_schema(path).field("volts").type for path in again.folder.glob("[0-9]*")} == {
        pa.float64()
    }
    with pytest.raises(SchemaMoved, match="the table 'battery' has the column '"):
        opened(WIDER, every=True)

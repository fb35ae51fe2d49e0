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
    Generation,
    SchemaMoved,
    begin_generation,
    known_generation,
    next_generation,
    read_by,
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


def test_what_a_generation_had_read_is_cut_before_its_last_finished_batch(tmp_path: Path) -> None:
    def noted(path: Path, *lines: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["v1", *map(json.dumps, lines)]))

    def ends(*offsets: int) -> dict[str, object]:
        return {"ends": {number: {"j": [offset]} for number, offset in enumerate(offsets)}}

    first = Generation(0, {"battery": {}, "samples": {}})
    checkpoint = tmp_path / "checkpoint"
    (tmp_path / "input.battery.json").write_text(json.dumps(ends(3, 5, 9)))
    (tmp_path / "input.samples.json").write_text(json.dumps(ends(4)))
    for source, table in enumerate(("samples", "battery")):
        file = {"path": f"file:///lake/input/{table}/000000000000.parquet", "batchId": 0}
        noted(checkpoint / "sources" / str(source) / "0", file)
    noted(checkpoint / "offsets" / "0", {}, {"logOffset": 0}, {"logOffset": 0})
    (checkpoint / "offsets" / "0").write_text('v1\n{}\n-\n{"logOffset": 0}')
    noted(checkpoint / "offsets" / "1", {}, {"logOffset": 0}, {"logOffset": 0})
    noted(checkpoint / "offsets" / "2", {}, {"logOffset": 0}, {"logOffset": 2})
    (checkpoint / "commits").mkdir()

    def read(reached: int | None) -> dict[str, list[dict[str, list[int]]]]:
        return read_by(first, tmp_path, reached, ["battery", "samples"])

    assert read(None) == {"battery": [], "samples": []}
    assert read(0) == {"battery": [{"j": [3]}], "samples": [{}]}
    (checkpoint / "commits" / "0").touch()
    (checkpoint / "commits" / "1").touch()
    assert read(0) == {"battery": [{"j": [3]}, {"j": [3]}], "samples": [{}, {"j": [4]}]}
    finished = read(2)
    assert finished == {"battery": [{"j": [3]}, {"j": [9]}], "samples": [{"j": [4]}, {"j": [4]}]}
    (tmp_path / "input.battery.json").write_text(json.dumps(ends(3)))
    with pytest.raises(LookupError):
        read(2)
    # Columns change again, before the next generation has published anything.
    second = Generation(1, first.tables, finished)
    assert second.known_batches == 2
    for batch in (None, 0):
        assert read_by(second, tmp_path, batch, ["battery", "samples"]) == finished


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

    def replaying(after: int) -> TableStream:
        ends = [{pipeline.journal.id: [offset, 0]} for offset in (1, after)]
        folder = tmp_path / f"generation-{after}"
        folder.mkdir(exist_ok=True)
        return TableStream(folder, table_of(tmp_path / "lake", "battery"), {}, WIDER, read=ends)

    def read(stream: TableStream) -> list[list[float]]:
        return [
            sorted(pq.read_table(path)["volts"].to_pylist())
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
    # What an earlier generation had read comes in two files, what it had not in others.
    for after, files in ((1, [[4.0], [], [0.5, 3.0]]), (2, [[4.0], [3.0], [0.5]])):
        assert replaying(after).more(journals)
        assert read(replaying(after)) == files
        times = [one.stat().st_mtime for one in sorted(replaying(after).folder.glob("[0-9]*"))]
        assert times == sorted(set(times))

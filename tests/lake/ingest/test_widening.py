"""Columns of Arrow become wider between batches and between the tasks of one batch."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.errors import LocalError
from zenlake.lake import Pipeline, read_config
from zenlake.lake.ingest.schema_agreement import agreed
from zenlake.lake.ingest.task import TypedFiles
from zenlake.lake.model.typed_table import Columns, settled

NAME = "application/vnd.apache.arrow.stream"
CONFIG = read_config(
    f"""{{tables: {{
        scan: {{format: "robot/${{id}}/scan", encoding: "{NAME}"}},
        pose: {{format: "robot/${{id}}/pose", encoding: "application/json"}},
    }}, batch: {{task_rows: 1}}}}"""
)


def stream(**columns: pa.Array) -> bytes:
    rows = pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def column(*batches: list[Any], folder: Path) -> list[Any]:
    """Return the values of `x` after a step for each batch; each sample is a task of its own."""
    at = 0
    for samples in batches:
        rows = []
        for values in samples:
            at += 1
            rows.append(Row("robot/1/scan", stream(x=values), at))
        write(folder / "journal", rows, 1)
        pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), CONFIG)
        while pipeline.step().behind:
            pass
        assert pipeline.stopped.sentences() == ()
    assert rows_of(folder / "lake", "quarantine") == []
    found = sorted(rows_of(folder / "lake", "scan"), key=lambda row: row["offset"])
    return [row["x"] for row in found]


NARROW_AND_WIDE = [
    (pa.array([7], pa.int32()), pa.array([1 << 60], pa.int64())),
    (pa.array([1e20], pa.float32()), pa.array([0.1])),
    (pa.array([{"a": 1}]), pa.array([{"a": 2, "b": "new"}])),
    (pa.array([[{"a": 1}]]), pa.array([[{"b": 0.5}, {"a": 3}]])),
]


@pytest.mark.parametrize(("narrow", "wide"), NARROW_AND_WIDE)
@pytest.mark.parametrize("together", [False, True], ids=["later", "in one batch"])
@pytest.mark.parametrize("turned", [False, True], ids=["wider last", "wider first"])
def test_a_column_of_arrow_becomes_wider_without_a_change_of_its_values(
    tmp_path: Path, narrow: pa.Array, wide: pa.Array, together: bool, turned: bool
) -> None:
    told = [wide, narrow] if turned else [narrow, wide]
    found = column(*([told] if together else [[one] for one in told]), folder=tmp_path)
    want = [(wide if one is wide else narrow).to_pylist()[0] for one in told]
    assert [without_nulls(value) for value in found] == [without_nulls(value) for value in want]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def test_a_float_beside_a_column_of_whole_numbers_does_not_stop_their_table(tmp_path: Path) -> None:
    """Only whole numbers that become doubles are looked at before a column becomes wider."""
    first = stream(s=pa.array([{"a": 1}]), f=pa.array([1e20], pa.float32()), n=pa.array([1]))
    wider = stream(
        s=pa.array([{"a": 1, "b": 2}]), f=pa.array([1e200], pa.float64()), n=pa.array([2])
    )
    for at, payload in enumerate([first, wider]):
        write(tmp_path / "journal", [Row("robot/1/scan", payload, at)], 1)
        pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), CONFIG)
        pipeline.step()
        assert pipeline.stopped.sentences() == ()
    rows = sorted(rows_of(tmp_path / "lake", "scan"), key=lambda row: row["n"])
    assert [row["s"] for row in rows] == [{"a": 1, "b": None}, {"a": 1, "b": 2}]
    assert [row["f"] for row in rows] == [pa.scalar(1e20, pa.float32()).as_py(), 1e200]


def test_tasks_settle_on_the_wider_of_all_kinds() -> None:
    assert settled(Columns({"s": "int"}), [{"s": "bigint"}]) == ({"s": "bigint"}, [])
    assert settled(Columns({"s": "int"}), [{}, {"s": "bigint"}]) == ({"s": "bigint"}, [0])
    assert settled(Columns(), [{"f": "float"}, {"f": "double"}]) == ({"f": "double"}, [0])
    both = "struct<a:bigint,b:string,c:double>"
    columns, again = settled(
        Columns({"p": "struct<a:int>"}),
        [{"p": "struct<a:bigint,b:string>"}, {"p": "struct<a:int,c:double>"}],
    )
    assert (columns, again) == ({"p": both}, [0, 1])
    fixed = Columns({"s": "int"}, frozenset("s"))
    assert settled(fixed, [{}]) == ({"s": "int"}, [])


def test_tasks_that_never_agree_commit_nothing() -> None:
    stubborn = [TypedFiles(new={"x": "string"}), TypedFiles(new={"x": "boolean"})]

    def again(places: list[int], columns: Columns) -> list[TypedFiles]:
        return [stubborn[n] for n in places]

    with pytest.raises(LocalError, match="do not agree on the column 'x'"):
        agreed(Columns(), list(stubborn), again)


def test_at_last_columns_keep_the_kinds_that_they_have() -> None:
    """Tasks whose columns grow each time that they decode are told to leave them as they are."""
    asked: list[bool] = []

    def again(places: list[int], columns: Columns) -> list[TypedFiles]:
        asked.append(columns.fixed >= columns.kinds.keys())
        if asked[-1]:
            return [TypedFiles() for _ in places]
        size = columns.kinds["x"].count(":") + 1
        return [TypedFiles(new={"x": f"struct<a{size}:int,own{n}:int>"}) for n in places]

    parts = [TypedFiles(new={"x": "struct<a:int>"}), TypedFiles(new={"x": "struct<b:int>"})]
    columns, parts = agreed(Columns(), parts, again)
    assert asked[-1]
    assert [part.new for part in parts] == [{}, {}]
    assert columns["x"].startswith("struct<")


def test_more_columns_of_arrow_than_a_table_has_are_in_quarantine(tmp_path: Path) -> None:
    some = {f"a{n}": pa.array([n]) for n in range(600)}
    others = {f"b{n}": pa.array([n]) for n in range(600)}
    rows = [Row("robot/1/scan", stream(**some), 1), Row("robot/1/scan", stream(**others), 2)]
    write(tmp_path / "journal", rows, 1)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), CONFIG)
    pipeline.step()
    (kept,) = rows_of(tmp_path / "lake", "scan")
    (bad,) = rows_of(tmp_path / "lake", "quarantine")
    assert [kept[name] for name in some] == list(range(600))
    assert (bad["reason"], bad["offset"]) == ("columns", 1)


def test_json_of_other_tables_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "journal", [Row("robot/1/pose", json.dumps({"x": 1}).encode(), 1)], 1)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), CONFIG)
    pipeline.step()
    assert [row["x"] for row in rows_of(tmp_path / "lake", "pose")] == [1]

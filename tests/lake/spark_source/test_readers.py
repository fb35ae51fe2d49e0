"""What the readers of `format("zenlake")` decide, without a Java."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from zenlake.lake.spark_source.filters import pushed_filter
from zenlake.lake.spark_source.options import TABLE_OPTIONS, TableOptions
from zenlake.lake.spark_source.source import LakeTableReader, LakeTableSource
from zenlake.lake.spark_source.stream import LakeTableStream, RowsChanged
from zenlake.lake.spark_source.tasks import TableFile, packed
from zenlake.lake.table.data_files import read_table, write_file
from zenlake.lake.table.delta import Table
from zenlake.lake.table.features import UnsupportedTable
from zenlake.lake.table.location import LakeLocation
from zenlake.spark.offsets import DataLoss
from zenlake.spark.options import OptionError

START = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = pa.schema(
    [
        ("n", pa.int64()),
        ("small", pa.int16()),
        ("x", pa.float64()),
        ("y", pa.float32()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("ok", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("raw", pa.binary()),
        ("day", pa.date32()),
    ]
)


def rows(first: int, end: int) -> pa.Table:
    """Rows of every kind, some of them null or NaN; two days."""
    return pa.Table.from_pylist(
        [
            {
                "n": n,
                "small": n % 5,
                "x": float("nan") if n % 7 == 0 else n / 4,
                "y": None if n % 6 == 0 else n / 2,
                "name": None if n % 9 == 0 else f"robot/{n % 4}/ä{n}",
                "at": START + timedelta(seconds=n),
                "local": (START + timedelta(seconds=n)).replace(tzinfo=None),
                "ok": n % 2 == 0,
                "tags": [str(n), None],
                "raw": bytes([n % 256]),
                "day": date(2026, 1, 1 + n % 2),
            }
            for n in range(first, end)
        ],
        schema=KINDS,
    )


def append(place: Path, first: int, end: int) -> None:
    write_deltalake(str(place), rows(first, end), mode="append", partition_by=["day"])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files: three commits of twenty rows each, a file for each of two days."""
    place = tmp_path_factory.mktemp("lake") / "things"
    for first in (0, 20, 40):
        append(place, first, first + 20)
    return place


def source(place: Path | str, **options: str) -> LakeTableSource:
    return LakeTableSource({"path": str(place), **options})


def reader(place: Path | str, **options: str) -> LakeTableReader:
    found = source(place, **options)
    made = found.reader(found.schema())
    assert isinstance(made, LakeTableReader)
    return made


def batches(made: Any, tasks: Iterable[InputPartition]) -> list[pa.RecordBatch]:
    """What tasks give after the journey that Spark sends a reader on."""
    there = pickle.loads(pickle.dumps(made))
    return [one for task in pickle.loads(pickle.dumps(list(tasks))) for one in there.read(task)]


def numbers(found: Iterable[pa.RecordBatch]) -> list[int]:
    return sorted(n for batch in found for n in batch.column("n").to_pylist())


def read(made: LakeTableReader) -> list[int]:
    return numbers(batches(made, made.partitions()))


def files_of(made: LakeTableReader) -> int:
    return sum(len(task.value[1]) for task in made.partitions() if task.value)


def test_every_kind_of_column_is_as_delta_rs_reads_it(table: Path) -> None:
    made = reader(table)
    found = pa.Table.from_batches(batches(made, made.partitions())).sort_by("n")
    theirs = DeltaTable(str(table)).to_pyarrow_table().sort_by("n").select(found.column_names)
    # NaN is no NaN for Arrow.
    assert str(found.to_pylist()) == str(theirs.cast(found.schema).to_pylist())
    assert found.num_rows == 60


@pytest.mark.parametrize(
    ("filter", "holds", "most"),
    [
        (EqualTo(("n",), 25), lambda row: row["n"] == 25, 2),
        (LessThan(("n",), 20), lambda row: row["n"] < 20, 2),
        (LessThanOrEqual(("n",), 20), lambda row: row["n"] <= 20, 3),
        (GreaterThan(("n",), 39), lambda row: row["n"] > 39, 2),
        (GreaterThanOrEqual(("n",), 58), lambda row: row["n"] >= 58, 2),
        (In(("n",), (1, 3, None)), lambda row: row["n"] in (1, 3), 2),
        (In(("small",), (9,)), lambda row: False, 0),
        (EqualTo(("day",), date(2026, 1, 2)), lambda row: row["n"] % 2 == 1, 3),
        (
            LessThan(("at",), START + timedelta(seconds=3)),
            lambda row: row["n"] < 3,
            2,
        ),
        (
            GreaterThan(("local",), datetime(2026, 1, 1, 0, 0, 57)),
            lambda row: row["n"] > 57,
            6,
        ),
        (StringStartsWith(("name",), "robot/2/"), lambda row: "/2/" in (row["name"] or ""), 6),
        (StringStartsWith(("name",), "robot/9/"), lambda row: False, 0),
        (IsNull(("name",)), lambda row: row["name"] is None, 6),
        (IsNull(("n",)), lambda row: False, 0),
        (IsNotNull(("y",)), lambda row: row["y"] is not None, 6),
        (EqualNullSafe(("y",), None), lambda row: row["y"] is None, 6),
        (EqualNullSafe(("n",), 7), lambda row: row["n"] == 7, 2),
        # NaN is the greatest number for Spark.
        (GreaterThan(("x",), 14.0), lambda row: not row["x"] <= 14.0, 6),
        (LessThan(("x",), 1.0), lambda row: row["x"] < 1.0, 6),
        (EqualTo(("ok",), True), lambda row: row["ok"], 6),
    ],
)
def test_filters_leave_files_and_rows_out(
    table: Path, filter: Filter, holds: Any, most: int
) -> None:
    assert list(reader(table).pushFilters([filter])) == [filter]
    made = reader(table, filterPushdown="true")
    assert list(made.pushFilters([filter])) == []
    every = DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    assert read(made) == sorted(row["n"] for row in every if holds(row))
    assert files_of(made) <= most


@pytest.mark.parametrize(
    "filter",
    [
        Not(EqualTo(("n",), 1)),
        EqualTo(("x",), float("nan")),
        In(("x",), (0.0,)),
        EqualTo(("y",), 0.1),
        EqualTo(("raw",), b"1"),
        EqualTo(("tags", "inner"), 1),
        EqualTo(("small",), 1 << 40),
        LessThan(("at",), datetime(2026, 1, 1)),
    ],
)
def test_what_arrow_answers_otherwise_stays_with_spark(filter: Filter) -> None:
    assert pushed_filter(filter, KINDS) is None


@given(
    low=st.integers(-5, 65), high=st.integers(-5, 65), x=st.floats(-1, 20), day=st.integers(1, 3)
)
def test_filters_joined_by_and_give_what_python_gives(
    table: Path, low: int, high: int, x: float, day: int
) -> None:
    made = reader(table)
    filters = [
        GreaterThanOrEqual(("n",), low),
        LessThan(("n",), high),
        GreaterThan(("x",), x),
        EqualTo(("day",), date(2026, 1, day)),
    ]
    assert made.take_filters(list(filters)) == []
    assert read(made) == [
        n for n in range(60) if low <= n < high and (n % 7 == 0 or n / 4 > x) and 1 + n % 2 == day
    ]


def test_row_groups_that_cannot_have_a_row_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "one"
    write_deltalake(str(place), pa.table({"n": list(range(100))}))
    (path,) = place.glob("*.parquet")
    pq.write_table(pa.table({"n": list(range(100))}), path, row_group_size=10)
    asked: list[list[int]] = []
    iterate = pq.ParquetFile.iter_batches

    def noted(self: Any, rows: int, groups: list[int], columns: list[str]) -> Any:
        asked.append(groups)
        return iterate(self, rows, groups, columns)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    made = reader(place)
    made.take_filters([GreaterThan(("n",), 42), LessThanOrEqual(("n",), 60)])
    assert read(made) == list(range(43, 61))
    assert asked == [[4, 5, 6]]


def test_columns_that_no_file_has_are_null_and_those_of_the_folder_need_no_file_column(
    tmp_path: Path,
) -> None:
    place = tmp_path / "grown"
    before = pa.table({"n": [1, 2], "robot": ["a b/ä%20", None]})
    write_deltalake(str(place), before, partition_by=["robot"])
    write_deltalake(
        str(place),
        pa.table({"n": [3], "robot": ["c"], "later": [1.5]}),
        mode="append",
        schema_mode="merge",
        partition_by=["robot"],
    )
    made = reader(place, columns="later,robot")
    found = pa.Table.from_batches(batches(made, made.partitions()))
    assert sorted(map(str, found.to_pylist())) == sorted(
        map(
            str,
            [
                {"later": None, "robot": "a b/ä%20"},
                {"later": None, "robot": None},
                {"later": 1.5, "robot": "c"},
            ],
        )
    )
    made = reader(place, columns="n,robot")
    assert made.take_filters([IsNull(("robot",))]) == []
    assert read(made) == [2]


def test_versions_and_times_of_a_table_are_read(table: Path) -> None:
    assert read(reader(table, version="0")) == list(range(20))
    assert read(reader(table, version="1")) == list(range(40))
    instants = [one["timestamp"] for one in DeltaTable(str(table)).history()]
    assert read(reader(table, timestamp=str(max(instants)))) == list(range(60))
    with pytest.raises(OptionError, match="there was no table yet"):
        reader(table, timestamp="2001-01-01")
    with pytest.raises(Exception, match="has no version 9"):
        reader(table, version="9")


def test_what_is_wrong_is_said_in_words(table: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="did you mean 'version'"):
        reader(table, verson="1")
    with pytest.raises(OptionError, match="startingVersion' is for readStream"):
        source(table, startingVersion="1").reader(source(table).schema())
    with pytest.raises(OptionError, match="write the number of a version"):
        reader(table, version="newest")
    with pytest.raises(OptionError, match="write one of them"):
        reader(table, version="1", timestamp="2026-01-01")
    with pytest.raises(OptionError, match="did you mean 'things'"):
        reader(table.parent, table="thing")
    with pytest.raises(OptionError, match="say which table, with option table: things"):
        reader(table.parent)
    with pytest.raises(OptionError, match="no _delta_log there"):
        reader(tmp_path / "nothing")
    with pytest.raises(OptionError, match=r'load\("path/of/lake/battery"\)'):
        LakeTableSource({}).schema()
    with pytest.raises(OptionError, match="has no column 'nam'; did you mean 'name'"):
        reader(table, columns="n,nam")
    with pytest.raises(OptionError, match="is bigint, not string"):
        source(table).reader(source(table).schema().add("n", "string")).partitions()


def test_a_table_is_found_by_its_folder_its_address_or_its_name_in_a_lake(table: Path) -> None:
    every = list(range(60))
    assert read(reader(f"{table}/")) == every
    assert read(reader(table.as_uri())) == every
    assert read(reader(table.parent, table="things", columns="n")) == every


def test_a_table_with_a_feature_that_is_not_understood_is_refused_by_name(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "strict"
    write_deltalake(str(place), pa.table({"n": [1]}))
    DeltaTable(str(place)).alter.add_constraint({"positive": "n > 0"})
    with pytest.raises(UnsupportedTable, match="'strict' has the constraint positive"):
        reader(place)


@given(st.lists(st.integers(1, 200 << 20), max_size=20))
def test_small_files_share_a_task_and_large_ones_are_cut(sizes: list[int]) -> None:
    files = [TableFile(str(n), size, None, {}) for n, size in enumerate(sizes)]
    tasks = packed(files)
    covered: dict[str, int] = dict.fromkeys((file.path for file in files), 0)
    for part in (part for task in tasks for part in task):
        assert part.start == covered[part.file.path]
        covered[part.file.path] = part.end
    assert covered == {file.path: file.size for file in files}
    bytes_of = [sum(part.end - part.start for part in task) for task in tasks]
    assert all(size <= 64 << 20 for size in bytes_of)
    # Two neighbours would not fit into one.
    assert all(one + other > 1 << 20 for one, other in pairwise(bytes_of))


def test_the_parts_of_a_large_file_have_each_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "one"
    found = pa.table({"n": list(range(5000)), "day": ["d"] * 5000})
    write_deltalake(str(place), found, partition_by=["day"])
    (path,) = place.glob("*/*.parquet")
    pq.write_table(found.select(["n"]), path, row_group_size=100)
    monkeypatch.setattr("zenlake.lake.spark_source.tasks.SMALLEST_TASK_BYTES", 1000)
    monkeypatch.setattr("zenlake.lake.spark_source.tasks.TASK_BYTES", 1000)
    made = reader(place)
    (size,) = DeltaTable(str(place)).get_add_actions(flatten=True)["size_bytes"].to_pylist()
    assert len(made.partitions()) == -(-size // 1000) > 2
    assert path.stat().st_size > size, "what lies behind the size that the log says is read, too"
    assert read(made) == list(range(5000))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    place = tmp_path / "one"
    write_deltalake(str(place), pa.table({"n": [1]}))
    (path,) = place.glob("*.parquet")
    path.unlink()
    with pytest.raises(DataLoss, match=f"the file {path.name} of .* is gone"):
        read(reader(place))


# --- streams ------------------------------------------------------------------------------------


def stream(place: Path, **options: str) -> LakeTableStream:
    made = source(place, **options).streamReader(source(place).schema())
    assert isinstance(made, LakeTableStream)
    return made


def taken(made: LakeTableStream, start: dict[str, Any]) -> tuple[list[list[int]], dict[str, Any]]:
    """Micro-batches until there is nothing new, and the offset after them."""
    found: list[list[int]] = []
    while (end := made.latestOffset(start, made.getDefaultReadLimit())) != start:
        found.append(numbers(batches(made, made.partitions(start, end))))
        start = end
    return found, start


def test_a_stream_reads_what_is_there_and_then_what_each_commit_added(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    append(place, 0, 10)
    append(place, 10, 20)
    made = stream(place)
    start = made.initialOffset()
    assert start["snapshot"] is True
    append(place, 20, 30)
    found, start = taken(made, start)
    assert found == [list(range(30))]
    assert taken(made, start) == ([], start)
    DeltaTable(str(place)).optimize.compact()
    assert taken(made, start) == ([], start), "compaction is no data"
    append(place, 30, 40)
    # After a restart, from the checkpoint.
    found, start = taken(stream(place), start)
    assert found == [list(range(30, 40))]
    DeltaTable(str(place)).delete("day = '2026-01-01'")
    assert taken(made, start) == ([], start), "what only removes rows adds none"


def test_batches_end_at_files_and_together_have_each_row_once(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    for first in range(0, 60, 20):
        append(place, first, first + 20)
    for options in ({}, {"startingVersion": "0"}):
        made = stream(place, maxRowsPerTrigger="25", **options)
        assert made.getDefaultReadLimit() == ReadMaxRows(25)
        found, end = taken(made, made.initialOffset())
        assert [len(one) for one in found] == [20, 20, 20]
        assert sorted(n for one in found for n in one) == list(range(60))
        assert end == made.reportLatestOffset()
    tiny = stream(place, maxRowsPerTrigger="1")
    assert [len(one) for one in taken(tiny, tiny.initialOffset())[0]] == [10] * 6
    every = tiny.latestOffset(tiny.initialOffset(), ReadAllAvailable())
    assert every == tiny.reportLatestOffset()


def test_a_stream_begins_with_a_version_or_a_time(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    for first in range(0, 60, 20):
        append(place, first, first + 20)
    made = stream(place, startingVersion="1")
    assert taken(made, made.initialOffset())[0] == [list(range(20, 60))]
    made = stream(place, startingVersion="latest")
    assert taken(made, made.initialOffset())[0] == []
    instants = sorted(one["timestamp"] for one in DeltaTable(str(place)).history())
    made = stream(place, startingTimestamp=str(instants[-1]))
    assert numbers(batches(made, made.partitions(made.initialOffset(), made.reportLatestOffset())))[
        -20:
    ] == list(range(40, 60))
    made = stream(place, startingTimestamp=str(instants[-1] + 1))
    assert taken(made, made.initialOffset())[0] == []


def test_a_trigger_that_takes_what_is_there_ends(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    append(place, 0, 20)
    made = stream(place)
    start = made.initialOffset()
    made.prepareForTriggerAvailableNow()
    append(place, 20, 40)
    assert taken(made, start)[0] == [list(range(20))]


def test_a_commit_that_changed_rows_stops_a_stream_or_is_passed_over(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    append(place, 0, 20)
    made = stream(place)
    _, start = taken(made, made.initialOffset())
    DeltaTable(str(place)).update(predicate="n = 3", updates={"small": "9"})
    append(place, 20, 40)
    with pytest.raises(RowsChanged, match="version 1 of table 'things' changed rows"):
        taken(made, start)
    assert taken(stream(place, skipChangeCommits="true"), start)[0] == [list(range(20, 40))]


def test_rows_that_the_log_forgot_and_tables_made_again_are_no_silent_loss(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    append(place, 0, 20)
    made = stream(place, startingVersion="0")
    start = made.initialOffset()
    append(place, 20, 40)
    DeltaTable(str(place)).create_checkpoint()
    (place / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(DataLoss, match="no longer has version 0"):
        taken(made, start)
    with pytest.raises(DataLoss, match="of another table"):
        made.latestOffset({**start, "table": "other"}, ReadAllAvailable())


def test_an_offset_does_not_stay_behind_for_ever_where_nothing_is_added(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    write_deltalake(str(place), pa.table({"n": [1]}))
    made = stream(place)
    _, start = taken(made, made.initialOffset())
    for n in range(25):
        DeltaTable(str(place)).alter.set_table_properties(
            {"zenlake.note": str(n)}, raise_if_not_exists=False
        )
    end = made.latestOffset(start, ReadAllAvailable())
    assert end["version"] == 26
    assert batches(made, made.partitions(start, end)) == []


def test_a_column_of_another_type_ends_a_stream(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    write_deltalake(str(place), pa.table({"n": [1]}))
    made = stream(place)
    start = made.initialOffset()
    write_deltalake(str(place), pa.table({"n": [1.5]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(OptionError, match="is double, not bigint"):
        made.partitions(start, made.reportLatestOffset())


def test_each_option_is_said_once() -> None:
    names = [option.name for option in TABLE_OPTIONS]
    assert len(set(names)) == len(names)
    assert TableOptions({"path": "x/../y"}, "read").path.startswith("/")


def test_files_that_the_lake_writes_anew_give_a_stream_no_rows(tmp_path: Path) -> None:
    place = tmp_path / "things"
    append(place, 0, 20)
    start = stream(place).initialOffset()
    seen, after = taken(stream(place), start)
    assert sorted(n for batch in seen for n in batch) == list(range(20))
    lake = Table.open(LakeLocation(str(tmp_path)), "things")
    assert lake is not None
    old = lake.files()
    # As retention does: a file without some of its rows in the place of the old one.
    kept = read_table(lake.place, old[0].path, lake.file_schema).slice(0, 3)
    lake.rewrite([write_file(lake.place, kept, old[0].partition, "kept")], old[:1], True)
    append(place, 20, 24)

    assert [sorted(batch) for batch in taken(stream(place), after)[0]] == [[20, 21, 22, 23]]

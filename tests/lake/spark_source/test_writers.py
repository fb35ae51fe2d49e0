"""What the writers of `format("zenlake")` commit, without a Java."""

from __future__ import annotations

import json
import pickle
import threading
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    CalendarIntervalType,
    DayTimeIntervalType,
    NullType,
    StructType,
    VariantType,
)

from tests.lake.journals import Here, write
from tests.lake.rowsof import Row
from zenlake.lake import Lake, LakeConfig, Pipeline, Retention, read_config
from zenlake.lake.spark_source.source import LakeTableSource
from zenlake.lake.spark_source.table_writer import CheckpointLost
from zenlake.lake.table.delta import Table
from zenlake.lake.table.iceberg import FOLDER, IcebergMirror
from zenlake.lake.table.location import LakeLocation
from zenlake.spark.options import OptionError

THINGS = pa.schema([("n", pa.int64()), ("name", pa.string()), ("day", pa.date32())])


def things(first: int, end: int) -> pa.Table:
    days = [date(2026, 1, 1 + n % 2) for n in range(first, end)]
    names = [None if n % 5 == 0 else f"a/ö b={n % 3}" for n in range(first, end)]
    return pa.table([list(range(first, end)), names, days], schema=THINGS)


class TaskOf:
    """A task, with what Spark tells tasks of their query."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.properties = properties

    def getLocalProperty(self, key: str) -> str | None:
        return self.properties.get(key)


def put(
    place: Path | str,
    rows: pa.Table,
    *,
    batch: int | None = None,
    query: str = "q",
    overwrite: bool = False,
    schema: StructType | None = None,
    **options: str,
) -> None:
    """Write rows as Spark does: two tasks, in objects that were pickled, and one commit."""
    messages, writer = prepared(place, rows, batch, query, overwrite, schema, **options)
    commit(writer, messages, batch)


def prepared(
    place: Path | str,
    rows: pa.Table,
    batch: int | None = None,
    query: str = "q",
    overwrite: bool = False,
    schema: StructType | None = None,
    **options: str,
) -> tuple[list[Any], Any]:
    source = LakeTableSource({"path": str(place), **options})
    columns = schema or from_arrow_schema(rows.schema)
    made: Any = source.writer if batch is None else source.streamWriter
    writer = pickle.loads(pickle.dumps(made(columns, overwrite)))
    middle = rows.num_rows // 2
    parts = [rows.slice(0, middle), rows.slice(middle)]
    task = TaskOf({} if batch is None else {"sql.streaming.queryId": query})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskContext, "get", lambda: task)
        messages = [writer.write(iter(part.to_batches())) for part in parts]
    # The driver makes another writer for the commit of a batch of a stream.
    return pickle.loads(pickle.dumps(messages)), made(columns, overwrite) if batch else writer


def commit(writer: Any, messages: list[Any], batch: int | None = None) -> None:
    if batch is None:
        writer.commit(messages)
    else:
        writer.commit(messages, batch)


def numbers(place: Path) -> list[int]:
    return sorted(DeltaTable(str(place)).to_pyarrow_table()["n"].to_pylist())


def version(place: Path) -> int:
    return DeltaTable(str(place)).version()


def files(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*.parquet"))


@pytest.mark.parametrize("by", ["", "day", "name,day", "Day, name"])
def test_rows_are_committed_in_one_version_and_read_by_others(tmp_path: Path, by: str) -> None:
    place = tmp_path / "lake" / "things"
    put(place, things(0, 20), partitionBy=by, description="some things")
    put(place, things(20, 30))
    assert version(place) == 2, "made, and two writes"
    table = DeltaTable(str(place))
    assert numbers(place) == list(range(30))
    named = [one.strip().lower() for one in by.split(",") if one.strip()]
    assert table.metadata().partition_columns == named
    assert table.metadata().description == "some things"
    mine = LakeTableSource({"path": str(place)})
    reader: Any = mine.reader(mine.schema())
    found = [batch for task in reader.partitions() for batch in reader.read(task)]
    ours = pa.Table.from_batches(found).sort_by("n")
    assert ours.to_pylist() == things(0, 30).to_pylist()
    counted = table.get_add_actions(flatten=True)
    assert sum(pa.table(counted)["num_records"].to_pylist()) == 30


def test_a_batch_of_a_stream_that_comes_again_is_there_once(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    for batch, first in enumerate((0, 10, 20)):
        put(place, things(first, first + 10), batch=batch)
    there, at = files(place), version(place)
    put(place, things(20, 30), batch=2)
    assert (numbers(place), version(place)) == (list(range(30)), at)
    assert files(place) == there, "the files of the second try are gone"
    put(place, things(30, 30), batch=3)
    assert version(place) == at, "a batch without rows makes no version"
    put(place, things(30, 40), batch=4)
    assert numbers(place) == list(range(40))


def test_two_drivers_with_one_batch_commit_it_once(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    put(place, things(0, 10), batch=0)
    one, other = (prepared(place, things(10, 20), 1) for _ in range(2))
    commit(one[1], one[0], 1)
    commit(other[1], other[0], 1)
    assert numbers(place) == list(range(20))


def test_writers_at_the_same_time_lose_no_row(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    several = [prepared(place, things(n * 10, n * 10 + 10), 0, f"q{n}") for n in range(6)]
    threads = [
        threading.Thread(target=commit, args=(writer, messages, 0)) for messages, writer in several
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(place) == list(range(60))


def test_a_checkpoint_that_is_older_or_lost_drops_no_row_in_silence(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    for batch in range(3):
        put(place, things(batch * 10, batch * 10 + 10), batch=batch, txnAppId="mine")
    with pytest.raises(CheckpointLost, match="has batch 2 of query q, and this is batch 1"):
        put(place, things(50, 60), batch=1, txnAppId="mine")
    with pytest.raises(CheckpointLost, match="batch 0 of a new query: the checkpoint was lost"):
        put(place, things(0, 10), batch=0, query="new", txnAppId="mine")
    # Without a name of the user's, a new checkpoint is a new query, whose rows are all written.
    put(place, things(50, 60), batch=0, query="new")
    assert numbers(place) == [*range(30), *range(50, 60)]


def test_a_batch_write_with_a_number_is_there_once(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    for number, first in ((1, 0), (1, 10), (2, 20), (0, 30)):
        put(place, things(first, first + 10), txnAppId="job", txnVersion=str(number))
    assert numbers(place) == [*range(10), *range(20, 30)]
    assert DeltaTable(str(place)).transaction_version("job") == 2
    with pytest.raises(OptionError, match="write both txnAppId and txnVersion"):
        put(place, things(0, 1), txnAppId="job")


def test_an_abort_removes_files_unless_they_are_in_the_table(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    put(place, things(0, 10))
    there = files(place)
    messages, writer = prepared(place, things(10, 20))
    assert len(files(place)) == len(there) + 2
    writer.abort([*messages, None])
    assert files(place) == there
    messages, writer = prepared(place, things(10, 20))
    commit(writer, messages)
    writer.abort(messages)  # as after a commit whose answer did not come
    assert numbers(place) == list(range(20))


def test_a_file_that_vacuum_has_taken_is_not_committed(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    put(place, things(0, 10))
    messages, writer = prepared(place, things(10, 20))
    gone = messages[0].files[0]
    (place / gone.path).unlink()
    # Written an hour ago.
    messages[0].files[0] = replace(gone, modified=gone.modified - 3_600_000)
    with pytest.raises(FileNotFoundError, match=f"the file {gone.path} .* 60 minutes ago"):
        commit(writer, messages)
    assert numbers(place) == list(range(10))


def test_overwrite_replaces_all_rows_in_one_version(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    put(place, things(0, 20), partitionBy="day")
    at = version(place)
    put(place, things(100, 110), overwrite=True)
    assert (numbers(place), version(place)) == (list(range(100, 110)), at + 1)
    assert DeltaTable(str(place), version=at).to_pyarrow_table().num_rows == 20
    put(place, things(0, 5), overwrite=True, batch=7)
    put(place, things(0, 5), overwrite=True, batch=7)
    assert (numbers(place), version(place)) == (list(range(5)), at + 2)
    put(place, things(0, 0), overwrite=True)
    assert numbers(place) == []


def test_columns_are_added_and_become_wider_only_where_that_is_said(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    put(place, pa.table({"n": pa.array([1, 2], pa.int32()), "x": pa.array([1, None], pa.int64())}))
    more = pa.table({"n": pa.array([1 << 40]), "x": [2.5], "note": ["new"]})
    with pytest.raises(OptionError, match="'things' has no column note; add it to"):
        put(place, more)
    with pytest.raises(OptionError, match=r"column 'n' .* is int32, too narrow for int64"):
        put(place, more.drop_columns(["note"]))
    put(place, more, mergeSchema="true")
    found = DeltaTable(str(place)).to_pyarrow_table().sort_by("n").to_pylist()
    assert found == [
        {"n": 1, "x": 1.0, "note": None},
        {"n": 2, "x": None, "note": None},
        {"n": 1 << 40, "x": 2.5, "note": "new"},
    ]
    # A narrower value fits, a column may be left out, and its name has any case.
    put(place, pa.table({"N": pa.array([7], pa.int16())}))
    assert numbers(place) == [1, 2, 7, 1 << 40]
    with pytest.raises(OptionError, match="column 'note' is int64, and table 'things' has string"):
        put(place, pa.table({"n": [1], "note": [1]}), mergeSchema="true")
    big = pa.table({"x": [(1 << 53) + 1]})
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        put(place, big)


def test_a_whole_number_that_no_double_holds_keeps_its_column(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    put(place, pa.table({"x": [(1 << 53) + 1]}))
    with pytest.raises(OptionError, match="has whole numbers that no double holds"):
        put(place, pa.table({"x": [0.5]}), mergeSchema="true")


@pytest.mark.parametrize("by", ["", "day", "name"])
def test_merge_replaces_rows_with_the_same_keys_and_adds_the_others(
    tmp_path: Path, by: str
) -> None:
    place = tmp_path / "lake" / "things"
    put(place, things(0, 20), partitionBy=by)
    put(place, things(20, 40))
    before = set(DeltaTable(str(place)).get_add_actions(flatten=True)["path"].to_pylist())
    fresh = pa.table(
        [[3, 25, 99], ["new"] * 3, [date(2026, 1, 1 + n % 2) for n in (3, 25, 99)]], schema=THINGS
    )
    at = version(place)
    put(place, fresh, mergeKeys="n,day")
    assert version(place) == at + 1
    found = DeltaTable(str(place)).to_pyarrow_table()
    assert sorted(found["n"].to_pylist()) == [*range(40), 99]
    assert sorted(r["n"] for r in found.to_pylist() if r["name"] == "new") == [3, 25, 99]
    after = set(DeltaTable(str(place)).get_add_actions(flatten=True)["path"].to_pylist())
    assert before & after, "files without such a row stay as they are"
    put(place, fresh, batch=0, mergeKeys="n")
    put(place, fresh, batch=0, mergeKeys="n")
    assert version(place) == at + 2
    assert numbers(place) == [*range(40), 99]


def test_what_cannot_be_merged_is_said(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    put(place, things(0, 10))
    there = files(place)
    twice = pa.concat_tables([things(3, 4), things(3, 4)])
    messages, writer = prepared(place, twice, mergeKeys="n")
    with pytest.raises(OptionError, match="2 rows have n=3, and which of them"):
        commit(writer, messages)
    writer.abort(messages)
    messages, writer = prepared(place, things(0, 1), mergeKeys="name")
    with pytest.raises(OptionError, match="1 rows have no 'name'"):
        commit(writer, messages)
    writer.abort(messages)
    with pytest.raises(OptionError, match="mergeKeys is for mode append"):
        put(place, things(0, 1), overwrite=True, mergeKeys="n")
    with pytest.raises(OptionError, match="no column 'nam'; did you mean 'name'"):
        put(place, things(0, 1), mergeKeys="nam")
    with pytest.raises(OptionError, match="whose values are not compared"):
        put(place, pa.table({"n": [1], "x": [0.5]}), mergeKeys="x", mergeSchema="true")
    assert files(place) == there
    assert numbers(place) == list(range(10))


def test_every_type_that_a_table_keeps_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "kinds"
    rows = pa.table(
        {
            "b": [True, None],
            "i8": pa.array([1, -1], pa.int8()),
            "f": pa.array([0.5, None], pa.float32()),
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "raw": [b"\0", None],
            "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "local": pa.array([datetime(2026, 1, 1), None], pa.timestamp("us")),
            "tags": [["x", None], None],
            "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
            "at_home": pa.array(
                [{"x": 1.5, "to": [1]}, None],
                pa.struct([("x", pa.float64()), ("to", pa.list_(pa.int64()))]),
            ),
        }
    )
    put(place, rows)
    put(place, rows)
    found = DeltaTable(str(place)).to_pyarrow_table()
    assert found.slice(0, 2).to_pylist() == found.slice(2).to_pylist()
    assert sorted(map(str, found.slice(0, 2).to_pylist())) == sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (StructType().add("a", NullType()), r"'a' is void, .*CAST\(NULL AS string\)"),
        (StructType().add("a", VariantType()), r"'a' is variant, .*to_json\(a\)"),
        (StructType().add("a", DayTimeIntervalType()), "interval day to second, .*cast it"),
        (StructType().add("a", CalendarIntervalType()), "'a' is interval, .*cast it to string"),
        (StructType().add("a", StructType().add("b", NullType())), r"column 'a\.b' is void"),
        (StructType().add("two words", "integer"), r"name 'two words' has a character .*alias"),
        (StructType().add("a", "integer").add("A", "integer"), "'a' and 'A' are one to Spark"),
        (StructType(), "no columns"),
    ],
)
def test_columns_that_no_table_has_are_refused_by_name(
    tmp_path: Path, schema: StructType, words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        put(tmp_path / "t", pa.table({}), schema=schema)


def test_mistakes_in_options_are_said_in_words(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    with pytest.raises(OptionError, match=r'say which table to write: save\("'):
        LakeTableSource({}).writer(StructType().add("n", "integer"), False)
    with pytest.raises(OptionError, match="did you mean 'mergeSchema'"):
        put(place, things(0, 1), mergeSchem="true")
    with pytest.raises(OptionError, match="option 'version' is for read; it means nothing here"):
        put(place, things(0, 1), version="1")
    with pytest.raises(OptionError, match="files are partitioned by text"):
        put(place, pa.table({"n": [1], "x": [0.5]}), partitionBy="x")
    with pytest.raises(OptionError, match="needs a column beside"):
        put(place, pa.table({"n": [1]}), partitionBy="n")
    put(place, things(0, 2), partitionBy="day")
    with pytest.raises(OptionError, match="is there, and is partitioned by day; leave"):
        put(place, things(0, 2), partitionBy="name")
    with pytest.raises(OptionError, match="no column 'day'"):
        put(place, pa.table({"n": [1]}))
    with pytest.raises(OptionError, match="is a lake with the tables things"):
        put(place.parent, things(0, 1))
    with pytest.raises(OptionError, match=r"register_tables\(spark, 'path/of/lake'\)"):
        LakeTableSource({"path": str(place), "provider": "zenlake"}).schema()


def test_comments_of_columns_are_kept(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"
    schema = StructType().add("n", "long", True, {"comment": "how many"}).add("time", "string")
    put(place, pa.table({"n": [1], "time": ["noon"]}), schema=schema)
    put(place, pa.table({"n": [0.5], "time": ["noon"]}), mergeSchema="true")
    put(place, pa.table({"n": [0.5], "time": ["noon"]}), overwrite=True)
    fields = {one.name: one.metadata for one in DeltaTable(str(place)).schema().fields}
    assert fields == {"n": {"comment": "how many"}, "time": {}}
    found = LakeTableSource({"path": str(place)}).schema()
    assert found["n"].metadata == {"comment": "how many"}


# --- in a lake ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that its pipeline fills, with a table of a program beside."""
    root = tmp_path_factory.mktemp("both")
    rows = [
        Row(f"robot/{n % 3}/pose", json.dumps({"x": n}).encode(), n, encoding=5) for n in range(9)
    ]
    write(root / "journal", rows)
    config = read_config('{tables: {pose: {format: "robot/${id}/pose"}}}')
    pipeline = Pipeline(str(root / "lake"), str(root / "journal"), Here(), config)
    while pipeline.step().behind:
        pass
    return root / "lake"


@pytest.mark.parametrize("name", ["samples", "latest", "gaps", "quarantine", "pose", "rollups"])
def test_tables_of_the_pipeline_are_refused(lake: Path, name: str) -> None:
    with pytest.raises(OptionError, match="pipeline"):
        put(lake / name, things(0, 1))


def test_the_pipeline_leaves_a_table_of_a_program_alone(tmp_path: Path) -> None:
    put(tmp_path / "lake" / "pose", things(0, 3))
    write(tmp_path / "journal", [Row("robot/1/pose", b'{"x": 1}', 1, encoding=5)])
    config = read_config('{tables: {pose: {format: "robot/${id}/pose"}}}')
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), config)
    for _ in range(3):
        pipeline.step()
    assert numbers(tmp_path / "lake" / "pose") == [0, 1, 2]
    samples = DeltaTable(str(tmp_path / "lake" / "samples")).to_pyarrow_table()
    assert samples.num_rows == 1, "the other tables go on"
    assert "filled by programs" in "".join(pipeline.stopped.sentences())


def test_a_table_of_a_program_lives_beside_those_of_the_pipeline(lake: Path) -> None:
    by = {"plain": "", "days": "day", "names": "name,day"}
    opened = Lake(LakeLocation(lake), None, LakeConfig())
    for name, partitions in by.items():
        for n in range(4):
            put(lake / name, things(n * 10, n * 10 + 10), partitionBy="" if n else partitions)
    copied = DeltaTable(str(lake / "pose")).to_pyarrow_table()
    put(lake / "copied", copied, partitionBy="id")
    put(lake / "copied", copied)
    rules = (Retention("**", 1.0),)
    assert opened.compact(tasks=Here())["plain"] == 7
    assert opened.retain(rules, tasks=Here())["copied"] == 0, "its rows are its program's"
    assert opened.vacuum(0.0)["names"] != []
    for name in by:
        assert numbers(lake / name) == list(range(40)), name
    assert DeltaTable(str(lake / "copied")).to_pyarrow_table().num_rows == 18
    status = opened.status()
    assert {one.name: one.behind for one in status.tables if one.name in by} == dict.fromkeys(by, 0)


def test_tables_of_programs_are_mirrored_to_iceberg(lake: Path) -> None:
    pytest.importorskip("pyiceberg")
    from pyiceberg.table import StaticTable

    for name, by in {"flat": "", "split": "name,day"}.items():
        put(lake / name, things(0, 10), partitionBy=by)
        put(lake / name, things(10, 20))
        table = Table.open(LakeLocation(lake), name)
        assert table is not None
        IcebergMirror().publish(table)
        found = StaticTable.from_metadata(str(lake / name / FOLDER)).scan().to_arrow()
        assert sorted(found["n"].to_pylist()) == list(range(20))
        assert sorted(map(str, found["name"].to_pylist())) == sorted(
            map(str, things(0, 20)["name"].to_pylist())
        )


def test_keys_are_forgotten_in_tables_of_programs_too(tmp_path: Path) -> None:
    rows = pa.table({"key": ["a/1", "b/1", None], "n": [1, 2, 3]})
    for name, by in {"one": "", "other": "key"}.items():
        put(tmp_path / name, rows, partitionBy=by)
        put(tmp_path / name, pa.table({"key": ["a/2"], "n": [4]}))
    put(tmp_path / "numbers", pa.table({"key": [1], "n": [1]}))
    gone = Lake(LakeLocation(tmp_path), None, LakeConfig()).forget("a/**", tasks=Here())
    assert (gone["one"], gone["other"], gone["numbers"]) == (2, 2, 0)
    assert numbers(tmp_path / "one") == numbers(tmp_path / "other") == [2, 3]


def test_any_delta_table_takes_rows(tmp_path: Path) -> None:
    place = tmp_path / "theirs"
    write_deltalake(str(place), things(0, 10), partition_by=["name"])
    put(place, things(10, 20))
    put(place, things(15, 25), mergeKeys="n")
    assert numbers(place) == list(range(25))

"""Other programs change tables of a lake with delta-rs, and the lake goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.lake.journals import Here, R, rows_of, table_of, write
from tests.lake.rowsof import START, Row
from zenlake.expr.tree import Comparison, Field, Moment
from zenlake.journal import Journal
from zenlake.lake import LakeConfig, Pipeline, open, read_config
from zenlake.lake.history.samples import History
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.maintain.forget import forget_in
from zenlake.lake.maintain.rebuild import rebuild
from zenlake.lake.query.catalog import Catalog
from zenlake.lake.table.location import LakeLocation
from zenlake.lake.table.pruning import matching

JSON = 5
CONFIG = read_config('{tables: {pose: {format: "robot/${id}/pose"}}}')


class Meanwhile(Here):
    """Does work here; when it first does some of a kind, another program does something."""

    def __init__(self, what: str, act: Callable[[], object]) -> None:
        super().__init__()
        self.what = what
        self.acts = [act]

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        done = super().run(items, what)
        if what.startswith(self.what) and self.acts:
            self.acts.pop()()
        return done


def poses(first: int, end: int, more: float = 0) -> list[Row]:
    return [
        Row(f"robot/{n % 3}/pose", json.dumps({"n": n, "x": n + more}).encode(), n, encoding=JSON)
        for n in range(first, end)
    ]


def theirs(lake: Path, name: str) -> DeltaTable:
    return DeltaTable(str(lake / name))


def test_rows_that_others_delete_while_a_column_widens_stay_deleted(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, poses(0, 20))
    tasks = Meanwhile("widen pose", lambda: theirs(lake, "pose").delete("n < 5"))
    pipeline = Pipeline(str(lake), str(journal), tasks, CONFIG)
    while pipeline.step().behind:
        pass
    write(journal, poses(20, 30, 0.5))
    while pipeline.step().behind:
        pass
    assert pipeline.stopped.sentences() == ()
    assert sorted(row["x"] for row in rows_of(lake, "pose")) == [
        *map(float, range(5, 20)),
        *(n + 0.5 for n in range(20, 30)),
    ]
    assert tasks.jobs.count("widen pose") == 2


def test_what_is_forgotten_is_forgotten_though_others_merge_files_meanwhile(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    for first in (0, 10):
        write(journal, poses(first, first + 10))
        pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)
        while pipeline.step().behind:
            pass
    tasks = Meanwhile("forget robot/1/** in pose", theirs(lake, "pose").optimize.compact)
    assert forget_in(LakeLocation(lake), open(lake).tables(), "robot/1/**", tasks)["pose"] == 7
    assert {row["id"] for row in rows_of(lake, "pose")} == {"0", "2"}
    assert len(rows_of(lake, "pose")) == 13


def changed_by_others(lake: Path, name: str) -> None:
    """Let delta-rs write all files of a table anew, with types of its own."""
    theirs(lake, name).optimize.z_order(["key"])
    theirs(lake, name).update({"key": "key"})
    table = theirs(lake, name)
    rows = table.to_pyarrow_table()
    (
        table.merge(rows, "s.offset = t.offset AND s.partition = t.partition", "s", "t")
        .when_matched_update_all()
        .execute()
    )
    files = theirs(lake, name).file_uris()
    assert any(pa.string_view() in pq.read_schema(path).types for path in files)


def test_whatever_the_lake_does_with_a_table_it_does_with_files_of_others(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    config = read_config(
        """{tables: {pose: {format: "robot/${id}/pose"}}, rollups: true,
            retain: [{keys: "robot/2/**", age: "1s"}]}"""
    )
    bad = [Row("robot/1/pose", b"{", 100 + n, encoding=JSON) for n in range(2)]
    pipeline: Pipeline | None = None
    for first in (0, 10):
        write(journal, [*poses(first, first + 10), bad.pop()])
        pipeline = pipeline or Pipeline(str(lake), str(journal), Here(), config)
        while pipeline.step().behind:
            pass
    assert pipeline is not None
    for name in ("samples", "pose", "quarantine"):
        changed_by_others(lake, name)
    write(journal, poses(20, 30, 0.5))  # a column widens
    while pipeline.step().behind:
        pass
    pipeline.finish()
    assert pipeline.stopped.sentences() == ()
    assert sorted(row["x"] for row in rows_of(lake, "pose")) == [
        *map(float, range(20)),
        *(n + 0.5 for n in range(20, 30)),
    ]
    for name in ("samples", "pose", "quarantine"):
        changed_by_others(lake, name)
    write(journal, poses(30, 31))
    pipeline.step()
    mine = open(lake)
    fewer = mine.compact(tasks=Here())
    assert (fewer["samples"], fewer["pose"]) == (1, 1)
    assert len(rows_of(lake, "samples")) == 33
    assert mine.retain(config.retain, tasks=Here())["pose"] == 10
    for name in ("samples", "pose", "quarantine"):
        changed_by_others(lake, name)
    (spec,) = config.tables
    assert rebuild(LakeLocation(lake), spec, Here()).rows == 21
    assert len(rows_of(lake, "quarantine")) == 2
    history = History(Catalog(LakeLocation(lake)), [Journal.open(journal)])
    _, newest = history.newest("**")
    assert sorted(newest["key"].to_pylist()) == [f"robot/{n}/pose" for n in range(3)]
    found = pa.concat_tables(history.samples(history.look(), "robot/1/*", None))
    assert found.num_rows == 12
    changed_by_others(lake, "samples")
    forgotten = forget_in(LakeLocation(lake), mine.tables(), "robot/0/**", Here())
    assert (forgotten["samples"], forgotten["pose"]) == (11, 11)


def test_a_moment_is_found_in_files_whose_bounds_end_before_it(tmp_path: Path) -> None:
    """Other programs cut the bounds of times to milliseconds, the greatest too."""
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [Row("a", b"", 1.000_001), Row("a", b"", 2.000_999)])
    pipeline = Pipeline(str(lake), str(journal), Here())
    pipeline.step()
    theirs(lake, "samples").optimize.z_order(["key"])
    for second in (1.000_001, 2.000_999):
        at = Moment(round((START + second) * 1_000_000), "at")
        conditions = [Comparison(Field("time"), "=", at)]
        assert len(matching(table_of(lake, "samples").actions(), conditions)) == 1


PUT, DELETE = 0, 1


def test_latest_knows_deletions_again_after_others_merged_its_files(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [Row("old", b"kept", 0), Row("gone", b"", 1), *poses(2, 20)])
    pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)
    pipeline.step()
    pipeline.fold(1.0, all=True)
    # What `latest` has may have left `samples`, whose rows are kept for a time.
    theirs(lake, "samples").delete("key = 'old'")
    write(journal, [Row("gone", kind=DELETE, at=50), Row("late/**", kind=DELETE, at=50)])
    pipeline.step()
    pipeline.fold(2.0, all=True)
    mine = table_of(lake, "latest").files()
    theirs(lake, "latest").optimize.z_order(["key"])
    theirs(lake, "latest").delete("key = 'robot/1/pose'")
    write(journal, [Row("gone", b"late", 10), Row("late/1", b"", 11), Row("new", b"", 60)])
    pipeline.step()
    pipeline.fold(1000.0)  # as soon as somebody looks
    assert pipeline.stopped.sentences() == ()
    keys = sorted(row["key"] for row in rows_of(lake, "latest"))
    assert keys == ["new", "old", *(f"robot/{n}/pose" for n in range(3))]
    again = table_of(lake, "latest").files()
    assert not {file.path for file in mine} & {file.path for file in again}
    assert len({file.partition["bucket"] for file in again}) == len(again)
    version = table_of(lake, "latest").version
    pipeline.fold(2000.0, all=True)
    assert table_of(lake, "latest").version == version


def test_latest_of_several_journals_is_made_again_of_all(tmp_path: Path) -> None:
    lake, names = tmp_path / "lake", ("one", "two")
    for name in names:
        write(tmp_path / name, [Row(name, b"", 1), Row(f"gone/{name}", b"", 1)])
        write(tmp_path / name, [Row(f"gone/{name}", kind=DELETE, at=50)])
    config = LakeConfig(remember=1e10)
    pipelines = [Pipeline(str(lake), str(tmp_path / name), Here(), config) for name in names]
    for pipeline in pipelines:
        pipeline.step()
        pipeline.fold(1.0, all=True)
    theirs(lake, "latest").optimize.z_order(["key"])
    pipelines[0].fold(2.0, all=True)
    for name in names:
        write(tmp_path / name, [Row(f"gone/{name}", b"late", 10)])
    for pipeline in pipelines:
        pipeline.step()
        pipeline.fold(3.0, all=True)
    assert sorted(row["key"] for row in rows_of(lake, "latest")) == ["one", "two"]


def test_a_ledger_whose_state_others_dropped_stops_and_says_what_to_do(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    numbered = [Row("a", b"", n, sn=n, source=b"\x01") for n in (1, 2, 5, 6)]
    write(journal, numbered[:3], 1)
    pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)
    pipeline.step()
    pipeline.fold(1.0, all=True)
    before = table_of(lake, "gaps").version
    missing = [row["missing"] for row in rows_of(lake, "gaps")]
    theirs(lake, "gaps").optimize.z_order(["key"])
    theirs(lake, "gaps").delete("missing = 0")
    write(journal, numbered[3:], 1)
    pipeline.step()
    pipeline.fold(2.0, all=True)
    (sentence,) = pipeline.stopped.sentences()
    assert "table 'gaps' has stopped" in sentence
    assert f"RESTORE TABLE gaps TO VERSION AS OF {before}`" in sentence
    theirs(lake, "gaps").restore(before)
    pipeline.fold(1000.0, all=True)
    assert pipeline.stopped.sentences() == ()
    assert [row["missing"] for row in rows_of(lake, "gaps")] == missing == [2]

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from tests.journal import heard
from tests.journal.written import write_rows
from tests.lake.crashing import Killed, dying
from tests.lake.journals import Here, R, rows_of, table_of, write
from tests.lake.rowsof import START, Row, batch
from zenlake.journal import Journal, JournalWriter
from zenlake.lake import LakeConfig, Pipeline, read_config
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.table.delta import CommitConflict

JSON = 5
CONFIG = """{tables: {
    pose: {format: "robot/${id}/pose"},
    battery: {format: "robot/${id}/battery", columns: {percent: "double"}},
}, families: false, batch: {task_rows: 10}}"""


def counters(keys: int, each: int, first: int = 0) -> list[Row]:
    return [
        Row(f"robot/{k}/pose", json.dumps({"n": n}).encode(), at=n, encoding=JSON)
        for n in range(first, first + each)
        for k in range(keys)
    ]


def run(lake: Path, journal: Path, config: LakeConfig | None = None, **more: Any) -> Pipeline:
    pipeline = Pipeline(str(lake), str(journal), more.pop("tasks", Here()), config)
    while pipeline.step().behind:
        pass
    pipeline.finish()
    return pipeline


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "lake", tmp_path / "journal"


def test_every_sample_is_in_every_table_once_and_again_changes_nothing(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    write(journal, counters(5, 20))
    for _ in range(2):
        run(lake, journal, read_config(CONFIG))
        samples = rows_of(lake, "samples")
        identities = {(row["journal"], row["partition"], row["offset"]) for row in samples}
        assert len(samples) == len(identities) == 100
        assert Counter(row["key"] for row in samples) == {f"robot/{k}/pose": 20 for k in range(5)}
        pose = rows_of(lake, "pose")
        assert sum(row["n"] for row in pose) == 5 * sum(range(20))
        assert {row["id"] for row in pose} == {str(k) for k in range(5)}
        latest = {row["key"]: json.loads(row["value"])["n"] for row in rows_of(lake, "latest")}
        assert latest == {f"robot/{k}/pose": 19 for k in range(5)}
        assert rows_of(lake, "quarantine") == []


def test_samples_tell_all_that_the_journal_tells(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    row = Row("a/b", b"\x00\xff", 3, 0, 65535, "my/own;v2", 9, b"\x07\x01", 4, b"\xb3\xa2\x01")
    write(journal, [row, Row("a/b", kind=1, at=4, encoding=1000)], 1)
    run(lake, journal)
    first, second = sorted(rows_of(lake, "samples"), key=lambda row: row["offset"])
    assert (first["key"], first["value"], first["kind"]) == ("a/b", b"\x00\xff", "put")
    assert (first["encoding"], first["source_id"], first["source_sn"]) == (
        "my/own;v2",
        "1a2b3:1",
        4,
    )
    assert (first["stamp_id"], first["source_zid"], first["source_eid"]) == ("107", "1a2b3", 1)
    assert (first["received"] - first["time"]).total_seconds() == 6
    assert str(first["day"]) == "2023-11-14"
    assert first["journal"] == Journal.open(journal).id
    assert (second["kind"], second["encoding"], second["offset"]) == ("delete", "unknown(1000)", 1)
    assert second["source_id"] is None
    assert rows_of(lake, "latest") == []


def test_batches_with_and_without_sources_become_one_file(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [Row("a", b"", 1)], 1)
    write(journal, [Row("a", b"", 2, sn=1, source=b"\x01"), Row("a", b"", 3, schema="x")], 1)
    run(lake, journal)
    rows = sorted(rows_of(lake, "samples"), key=lambda row: row["offset"])
    assert [row["source_id"] for row in rows] == [None, "1:1", None]
    assert [row["encoding"] for row in rows] == ["zenoh/bytes", "zenoh/bytes", "zenoh/bytes;x"]


def test_rows_are_partitioned_by_the_day_they_were_received_and_files_say_what_is_in_them(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    day = 86400.0
    write(journal, [Row(f"k/{n}", b"", at=0, heard=n * day) for n in range(3)], 1)
    run(lake, journal)
    actions = table_of(lake, "samples").actions()
    assert sorted(str(d) for d in actions["partition.day"].to_pylist()) == [
        "2023-11-14",
        "2023-11-15",
        "2023-11-16",
    ]
    assert sorted(actions["min.key"].to_pylist()) == ["k/0", "k/1", "k/2"]
    assert actions["min.hlc"].null_count == actions["max.time"].null_count == 0


def test_new_fields_make_new_columns_and_old_rows_have_none(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    config = read_config(CONFIG)
    write(journal, [Row("robot/1/pose", b'{"x": 1.5}', 1, encoding=JSON)])
    run(lake, journal, config)
    write(journal, [Row("robot/1/pose", b'{"x": 2.5, "y": {"z": "up"}}', 2, encoding=JSON)])
    run(lake, journal, config)
    rows = sorted(rows_of(lake, "pose"), key=lambda row: row["x"])
    assert [(row["x"], row["y_z"]) for row in rows] == [(1.5, None), (2.5, "up")]


def test_tasks_that_disagree_about_a_column_decode_again(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    rows = [
        Row(f"robot/{n}/pose", json.dumps({"x": n if n < 15 else "far"}).encode(), n, encoding=JSON)
        for n in range(30)
    ] + [Row("robot/9/pose", b'{"x": 0.5}', 99, encoding=JSON)]
    write(journal, rows, 3)
    tasks = Here()
    run(lake, journal, read_config(CONFIG), tasks=tasks)
    kept, bad = rows_of(lake, "pose"), rows_of(lake, "quarantine")
    assert "agree on columns" in tasks.jobs
    assert len(kept) + len(bad) == 31
    kinds = {type(row["x"]) for row in kept}
    assert len(kinds) == 1
    assert {(row["reason"], row["field"]) for row in bad} == {("type", "x")}


def test_what_does_not_parse_is_in_quarantine_with_its_bytes(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [*counters(2, 3), Row("robot/1/pose", b"\xff{", 9, encoding=JSON)])
    run(lake, journal, read_config(CONFIG))
    (bad,) = rows_of(lake, "quarantine")
    assert (bad["key"], bad["value"], bad["table"]) == ("robot/1/pose", b"\xff{", "pose")
    assert len(rows_of(lake, "pose")) == 6
    assert len(rows_of(lake, "samples")) == 7


def test_the_ledger_is_a_table(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    zid = b"\x05" * 16
    write(journal, [Row("a", b"", n, sn=n, source=zid) for n in (0, 1, 4)] + [Row("b", b"", 1)])
    run(lake, journal)
    write(journal, [Row("a", b"", 7, sn=7, source=zid)])
    run(lake, journal)
    pages = rows_of(lake, "gaps")
    (page,) = [row for row in pages if row["source"] is not None]
    assert (page["expected"], page["received"], page["missing"]) == (8, 4, 4)
    assert page["gaps"] == [[2, 3], [5, 6]]
    assert [(row["key"], row["rows"]) for row in pages if row["source"] is None] == [("b", 1)]


def test_heartbeats_are_no_samples_and_show_in_gaps_what_was_lost_last(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    beat = heard.beat(4, "a")
    write_rows(journal, [heard.Row("a", sn=0), beat, heard.Row("a", sn=1)], [beat])
    run(lake, journal)
    write_rows(journal, [heard.Row("a", sn=2)])
    run(lake, journal)
    samples = rows_of(lake, "samples")
    assert sorted((row["offset"], row["source_sn"]) for row in samples) == [(0, 0), (2, 1), (4, 2)]
    assert [row["key"] for row in rows_of(lake, "latest")] == ["a"]
    (page,) = rows_of(lake, "gaps")
    assert (page["expected"], page["received"], page["gaps"]) == (5, 3, [[3, 4]])


def test_a_deleted_key_that_comes_back_is_back_and_late_data_changes_nothing(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders

    def shown() -> dict[str, bytes]:
        return {row["key"]: row["value"] for row in rows_of(lake, "latest")}

    # Received now: deletions are remembered by the clock of the wall.
    now = time.time() - START
    steps: list[tuple[Row, dict[str, bytes]]] = [
        (Row("a", b"1", 1, heard=now), {"a": b"1"}),
        (Row("a", kind=1, at=3, heard=now), {}),
        (Row("a", b"late", 2, heard=now), {}),
        (Row("a", b"back", 4, heard=now), {"a": b"back"}),
        (Row("b/1", b"x", 5, heard=now), {"a": b"back", "b/1": b"x"}),
        (Row("b/**", kind=1, at=6, heard=now), {"a": b"back"}),
        (Row("b/2", b"late", 5, heard=now), {"a": b"back"}),
        (Row("skewed", b"y", -5000, heard=now), {"a": b"back", "skewed": b"y"}),
    ]
    for row, expected in steps:
        write(journal, [row])
        run(lake, journal)
        assert shown() == expected, row


def test_buckets_without_news_are_not_written_anew(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [Row(f"k/{n}", b"", n) for n in range(200)])
    run(lake, journal)
    before = {f.path for f in table_of(lake, "latest").files()}
    write(journal, [Row("k/7", b"new", 999)])
    run(lake, journal)
    after = {f.path for f in table_of(lake, "latest").files()}
    assert len(before) == len(after) == 16
    assert len(before - after) == 1


class Fragile(Here):
    """Dies at the n-th job, before or after it is done."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.left = jobs

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        if self.left == 0:
            raise Killed
        self.left -= 1
        done = super().run(items, what)
        if self.left == 0:
            raise Killed
        return done


POISONED = [
    Row(
        f"robot/{n % 7}/pose",
        b"{" if n % 5 == 0 else json.dumps({"n": n}).encode(),
        n,
        encoding=JSON,
    )
    for n in range(90)
]


def proven(lake: Path, journal: Path) -> None:
    """That each sample of `POISONED` is in each table once."""
    heard = [
        (partition, offset)
        for partition in range(2)
        for found in Journal.open(journal).scan(partition=partition)
        for offset in found["offset"].to_pylist()
    ]
    places = [(row["partition"], row["offset"]) for row in rows_of(lake, "samples")]
    assert sorted(places) == sorted(heard)
    pose = [(row["partition"], row["offset"]) for row in rows_of(lake, "pose")]
    bad = [(row["partition"], row["offset"]) for row in rows_of(lake, "quarantine")]
    assert sorted(pose + bad) == sorted(heard)
    assert len(bad) == 18
    assert len(rows_of(lake, "latest")) == 7


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commit", range(1, 9))
def test_killed_before_or_after_any_commit_each_sample_is_there_once(
    folders: tuple[Path, Path], commit: int, after: bool
) -> None:
    lake, journal = folders
    config = read_config(CONFIG.replace("task_rows: 10", "task_rows: 10, rows: 60"))
    write(journal, POISONED)
    # Two steps of three commits each, then gaps and latest.
    with dying(commit, after=after):
        run(lake, journal, config)
    run(lake, journal, config)
    proven(lake, journal)


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_killed_in_a_job_leaves_files_that_no_table_has(
    folders: tuple[Path, Path], jobs: int
) -> None:
    lake, journal = folders
    config = read_config(CONFIG)
    write(journal, POISONED)
    with pytest.raises(Killed):
        run(lake, journal, config, tasks=Fragile(jobs))
    run(lake, journal, config)
    proven(lake, journal)


def test_two_pipelines_at_once_do_not_double_anything(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    config = read_config(CONFIG)
    write(journal, POISONED)
    one = Pipeline(str(lake), str(journal), Here(), config)

    class Rude(Here):
        """While the other one works, does all of it."""

        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            done = super().run(items, what)
            run(lake, journal, config)
            return done

    two = Pipeline(str(lake), str(journal), Rude(), config)
    with pytest.raises(CommitConflict):
        two.step()
    while one.step().behind:
        pass
    proven(lake, journal)


def test_stretches_with_nothing_for_a_table_are_not_read_again(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    write(journal, counters(2, 5))
    config = read_config(CONFIG)
    run(lake, journal, config)
    again = Here()
    run(lake, journal, config, tasks=again)
    assert again.jobs == []


def test_a_table_that_is_configured_later_gets_what_is_in_the_journal(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    write(journal, counters(2, 5))
    run(lake, journal)
    run(lake, journal, read_config(CONFIG))
    assert len(rows_of(lake, "pose")) == 10
    assert len(rows_of(lake, "samples")) == 10


def test_two_journals_may_flow_into_one_lake(folders: tuple[Path, Path], tmp_path: Path) -> None:
    lake, journal = folders
    write(journal, [Row("a", b"1", 1), Row("b", b"1", 1)])
    write(tmp_path / "other", [Row("a", b"2", 2)])
    run(lake, journal)
    run(lake, tmp_path / "other")
    assert len(rows_of(lake, "samples")) == 3
    assert {row["key"]: row["value"] for row in rows_of(lake, "latest")} == {"a": b"2", "b": b"1"}
    assert {row["journal"] for row in rows_of(lake, "gaps")} == {
        Journal.open(journal).id,
        Journal.open(tmp_path / "other").id,
    }


def test_ten_thousand_keys_and_one_large_payload(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    large = bytes(range(256)) * 80_000
    write(journal, [Row(f"k/{n}", b"%d" % n, n) for n in range(10_000)] + [Row("big", large, 1)])
    run(lake, journal)
    dataset = DeltaTable(str(lake / "latest")).to_pyarrow_dataset()
    duck = duckdb.connect()
    duck.register("rows", dataset)
    duck.execute("select count(distinct key), max(octet_length(value)) from rows")
    ((count, longest),) = duck.fetchall()
    assert (count, longest) == (10_001, len(large))
    assert dataset.schema.field("key").type in ("string", "large_string", "string_view")


def test_rows_that_the_journal_dropped_before_they_were_read_are_counted(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    write(journal, [Row("a", b"", n) for n in range(10)], 1)
    pipeline = run(lake, journal)
    large = b"x" * (128 << 10)
    with JournalWriter.open(
        journal, fsync="never", segment_bytes=1, retain_bytes=1 << 20
    ) as writer:
        for n in range(10, 30):
            writer.append(0, batch([Row("a", large, n)]).drop_columns(["offset"]))
            writer.flush()
    (earliest,) = pipeline.journal.earliest()
    assert 10 < earliest < 30
    step = pipeline.step()
    assert (step.lost, step.rows) == (earliest - 10, 30 - earliest)
    assert len(rows_of(lake, "samples")) == 40 - earliest
    assert run(lake, journal).lost() == earliest - 10, "a pipeline that starts later knows it, too"


def test_a_first_number_that_is_whole_decides_nothing(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    config = read_config(CONFIG.replace(', columns: {percent: "double"}', ""))
    for n, percent in enumerate((87, 87.5, 3, 100.0)):
        payload = json.dumps({"percent": percent, "cells": [percent]}).encode()
        write(journal, [Row("robot/1/battery", payload, n, encoding=JSON)])
        run(lake, journal, config)
    rows = sorted(rows_of(lake, "battery"), key=lambda row: row["time"])
    assert [row["percent"] for row in rows] == [87.0, 87.5, 3.0, 100.0]
    assert [row["cells"] for row in rows] == [[87.0], [87.5], [3.0], [100.0]]
    assert rows_of(lake, "quarantine") == []
    actions = table_of(lake, "battery").actions()
    assert max(actions["max.percent"].to_pylist()) == 100.0


def test_numbers_that_no_double_holds_are_not_rounded_for_a_fraction(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    big = (1 << 60) + 1
    for n, stamp in enumerate((big, 0.5, 7)):
        payload = json.dumps({"stamp": stamp}).encode()
        write(journal, [Row("robot/1/pose", payload, n, encoding=JSON)])
        run(lake, journal, read_config(CONFIG))
    assert sorted(row["stamp"] for row in rows_of(lake, "pose")) == [7, big]
    (bad,) = rows_of(lake, "quarantine")
    assert (bad["reason"], bad["field"], bad["value"]) == ("range", "stamp", b'{"stamp": 0.5}')


@pytest.mark.parametrize("value", [(1 << 53) + 1, [1, (1 << 53) + 1]], ids=["number", "list"])
def test_numbers_of_a_column_that_the_log_says_nothing_of_are_not_rounded_either(
    folders: tuple[Path, Path], value: object
) -> None:
    """Readers of the log show bounds of the first 32 columns, and none of lists."""
    lake, journal = folders
    config = read_config(CONFIG)
    fields = {f"c{n:02}": n for n in range(40)}
    write(journal, [Row("robot/1/pose", _pose(fields | {"last": value}), 1, encoding=JSON)])
    run(lake, journal, config)
    half = [0.5] if isinstance(value, list) else 0.5
    for at in (2, 3):
        # The second time in the memory of the pipeline, or of another one.
        write(journal, [Row("robot/1/pose", _pose({"last": half}), at, encoding=JSON)])
        run(lake, journal, config)
    (kept,) = rows_of(lake, "pose")
    assert kept["last"] == value
    bad = rows_of(lake, "quarantine")
    assert [(row["field"], row["value"]) for row in bad] == [("last", _pose({"last": half}))] * 2


def test_a_column_past_those_of_the_log_becomes_wider_where_that_is_exact(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    config = read_config(CONFIG)
    fields = {f"c{n:02}": n for n in range(40)}
    for at, last in enumerate((1 << 53, 0.5)):
        write(journal, [Row("robot/1/pose", _pose(fields | {"last": last}), at, encoding=JSON)])
        run(lake, journal, config)
    assert sorted(row["last"] for row in rows_of(lake, "pose")) == [0.5, float(1 << 53)]
    assert rows_of(lake, "quarantine") == []


def test_a_configuration_cannot_make_numbers_doubles_that_no_double_holds(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    config = CONFIG.replace(', columns: {percent: "double"}', "")
    far = (1 << 53) + 1
    write(journal, [Row("robot/1/battery", _pose({"percent": far}), 1, encoding=JSON)])
    run(lake, journal, read_config(config))
    (problem,) = run(lake, journal, read_config(CONFIG)).problems
    assert "battery.percent" in problem
    assert "no double holds" in problem
    assert [row["percent"] for row in rows_of(lake, "battery")] == [far]


def _pose(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize("after", [False, True])
def test_killed_while_a_column_becomes_wider_each_sample_is_there_once(
    folders: tuple[Path, Path], after: bool
) -> None:
    lake, journal = folders
    write(journal, [Row("robot/1/pose", b'{"x": 1}', 1, encoding=JSON)])
    run(lake, journal, read_config(CONFIG))
    write(journal, [Row("robot/1/pose", b'{"x": 1.5}', 2, encoding=JSON)])
    with dying(after=after, of=lambda uri: "pose" in uri):
        run(lake, journal, read_config(CONFIG))
    run(lake, journal, read_config(CONFIG))
    assert sorted(row["x"] for row in rows_of(lake, "pose")) == [1.0, 1.5]


def test_a_configuration_that_disagrees_with_a_table_says_so_or_widens_it(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    write(journal, [Row("robot/1/pose", b'{"x": 1, "y": 2.5}', 1, encoding=JSON)])
    run(lake, journal, read_config('{tables: {pose: {format: "robot/${id}/pose"}}}'))
    columns = 'columns: {x: "double", y: "string"}'
    config = read_config(f'{{tables: {{pose: {{format: "robot/${{id}}/pose", {columns}}}}}}}')
    (problem,) = run(lake, journal, config).problems
    assert "pose.y is string, but the table has double" in problem
    assert "zenlake lake rebuild pose" in problem
    assert str(table_of(lake, "pose").schema.field("x").type) == "double"


def test_latest_is_written_seldom_and_gaps_on_time_while_rows_come(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    zid = b"\x05" * 16
    write(journal, [Row("a", b"x" * 1000, 0, sn=0, source=zid)])
    pipeline = Pipeline(str(lake), str(journal), Here())
    written: dict[str, list[int]] = {"latest": [], "gaps": []}
    for second in range(120):
        write(journal, [Row("a", b"x" * 1000, second, sn=second + 1, source=zid)])
        pipeline.step()
        write(journal, [Row("a", b"x", second, sn=second + 1, source=zid)])  # never caught up
        for name in pipeline.fold(float(second)):
            written[name].append(second)
    assert written["latest"] == [0, 30, 60, 90]
    assert written["gaps"] == list(range(0, 120, 10))


def test_what_every_table_has_is_told_to_the_journal(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [*counters(2, 5), Row("other", b"", 1)], 1)
    pipeline = run(lake, journal, read_config(CONFIG))
    assert pipeline.committed() == (11,)
    write(journal, [Row("other", b"", 2)], 1)
    pipeline.step()
    # The ledger has not read it yet, all others have it or do not want it.
    assert (pipeline.behind(), pipeline.committed()) == (0, (11,))
    shown = {table.name: table for table in pipeline.shown()}
    assert shown["battery"].behind == shown["pose"].behind == shown["latest"].behind == 0
    assert shown["pose"].at == {pipeline.journal.id: (12,)}
    assert (shown["samples"].rows, shown["gaps"].behind) == (12, 1)

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.lake.crashing import dying
from tests.lake.journals import Here, R, rows_of, table_of, write
from tests.lake.rowsof import START, Row
from zenlake.lake import LakeConfig, Pipeline, Retention, open, read_config
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.maintain.background import BackgroundMaintenance, Schedule
from zenlake.lake.maintain.upkeep import MOST_ROWS, compact, groups, promised, retain, vacuum
from zenlake.lake.table.data_files import DataFile

SMALL = LakeConfig(compact_files=4)
DAY = 86400.0


def filled(tmp_path: Path, batches: int, each: int = 3) -> Pipeline:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    pipeline: Pipeline | None = None
    for n in range(batches):
        rows = [Row(f"k/{k}", b"%d" % n, at=n) for k in range(each)]
        write(journal, [*rows, Row("robot/1/pose", b"{" if n % 2 else b'{"x": 1}', n, encoding=5)])
        pipeline = pipeline or Pipeline(
            str(lake),
            str(journal),
            Here(),
            read_config('{tables: {pose: {format: "robot/${id}/pose"}}}'),
        )
        while pipeline.step().behind:
            pass
    assert pipeline is not None
    pipeline.finish()
    return pipeline


def test_small_files_become_one_sorted_by_key_and_time_and_no_row_changes(tmp_path: Path) -> None:
    filled(tmp_path, 5)
    lake = tmp_path / "lake"
    before = sorted(rows_of(lake, "samples"), key=str)
    assert len(table_of(lake, "samples").files()) == 5
    assert open(lake).compact(tasks=Here())["samples"] == 4
    (file,) = table_of(lake, "samples").files()
    assert sorted(rows_of(lake, "samples"), key=str) == before
    order = [(row["key"], row["hlc"]) for row in rows_of(lake, "samples")]
    assert order == sorted(order)
    assert file.rows == len(before)
    actions = table_of(lake, "samples").actions()
    assert (actions["min.key"][0].as_py(), actions["max.key"][0].as_py()) == ("k/0", "robot/1/pose")
    assert len(rows_of(lake, "pose")) == 3
    assert len(rows_of(lake, "latest")) == 4


def test_the_number_of_files_grows_with_the_logarithm_of_the_batches(tmp_path: Path) -> None:
    pipeline = filled(tmp_path, 1)
    journal = tmp_path / "journal"
    most = 0
    for n in range(1, 24):
        write(journal, [Row("k", b"x" * 3000, at=n)])
        pipeline.step()
        compact(table_of(tmp_path / "lake", "samples"), Here(), SMALL)
        most = max(most, len(table_of(tmp_path / "lake", "samples").files()))
    assert most <= 8
    assert len(rows_of(tmp_path / "lake", "samples")) == 27


def test_the_files_of_a_day_that_is_over_become_one(tmp_path: Path) -> None:
    files = [DataFile(f"{n}", 1000, 1, {"day": f"2026-01-0{1 + n // 3}"}, "", n) for n in range(6)]
    (group,) = groups(files, LakeConfig(), False)
    assert [file.path for file in group] == ["0", "1", "2"]


def test_the_pipeline_goes_on_while_files_are_merged(tmp_path: Path) -> None:
    pipeline = filled(tmp_path, 6)
    journal = tmp_path / "journal"

    class Meanwhile(Here):
        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            done = super().run(items, what)
            write(journal, [Row("new", b"", 99)])
            pipeline.step()
            return done

    assert compact(table_of(tmp_path / "lake", "samples"), Meanwhile(), SMALL) == 5
    assert len(rows_of(tmp_path / "lake", "samples")) == 25


def test_two_compactions_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    filled(tmp_path, 6)
    lake = tmp_path / "lake"
    before = sorted(rows_of(lake, "samples"), key=str)

    class Race(Here):
        raced = False

        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            done = super().run(items, what)
            if not self.raced:
                self.raced = True
                compact(table_of(lake, "samples"), Here(), SMALL)
                retain(table_of(lake, "samples"), Here(), (Retention("k/0", 0.0),), now=START + 3.0)
            return done

    compact(table_of(lake, "samples"), Race(), SMALL)
    kept = [
        row for row in before if row["key"] != "k/0" or row["received"].timestamp() >= START + 3
    ]
    assert sorted(rows_of(lake, "samples"), key=str) == kept


def test_retention_goes_by_age_and_the_first_rule_that_names_a_key(tmp_path: Path) -> None:
    filled(tmp_path, 6)
    lake = tmp_path / "lake"
    rules = (Retention("k/1", 100.0), Retention("k/*", 2.0))
    dropped = open(lake).retain(rules, tasks=Here(), now=START + 5.0)
    # Received at 0 … 5; k/0 and k/2 keep 3, 4 and 5; nobody said anything of robots.
    assert dropped["samples"] == 6
    assert dropped["latest"] == dropped["pose"] == 0
    counts: dict[str, int] = {}
    for row in rows_of(lake, "samples"):
        counts[row["key"]] = counts.get(row["key"], 0) + 1
    assert counts == {"k/0": 3, "k/1": 6, "k/2": 3, "robot/1/pose": 6}
    assert open(lake).retain(rules, tasks=Here(), now=START + 5.0)["samples"] == 0
    everything = open(lake).retain((Retention("**", 0.0),), tasks=Here(), now=START + 50.0)
    assert everything["samples"] == 18
    assert rows_of(lake, "samples") == []
    assert everything["quarantine"] == 3


def test_a_date_that_is_set_ahead_drops_no_rows_before_it_was_so_for_a_day(tmp_path: Path) -> None:
    now = time.time()
    write(tmp_path / "journal", [Row("k", b"%d" % n, at=n, heard=now - START) for n in range(16)])
    config = LakeConfig(retain=(Retention("**", 10 * DAY),), history=10 * DAY)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), config)
    pipeline.step()
    pipeline.finish()
    told: list[str] = []
    schedule = Schedule(retain=DAY / 24, vacuum=DAY / 24)
    upkeep = BackgroundMaintenance(pipeline, Here(), schedule, told.append)
    orphan = tmp_path / "lake" / "samples" / "orphan.parquet"
    orphan.write_bytes(b"")
    upkeep.turn(0.0, now)
    year = 365 * DAY
    os.utime(orphan, (now - year, now - year))  # as old as it seems when the date is set
    for hour in range(1, 24):
        upkeep.turn(hour * 3600.0, now + year + hour * 3600)
    assert len(rows_of(tmp_path / "lake", "samples")) == 16
    assert orphan.exists()
    (problem,) = upkeep.problems
    assert "the clock is 365 days, 0:00:00 ahead" in problem
    assert told == [f"upkeep: {problem}"]
    # One that starts meanwhile waits, too.
    other = BackgroundMaintenance(pipeline, Here(), schedule, told.append)
    for hour in range(23):
        other.turn(hour * 3600.0, now + year + hour * 3600)
    assert len(rows_of(tmp_path / "lake", "samples")) == 16
    upkeep.turn(2 * DAY, now + year + 2 * DAY)
    assert rows_of(tmp_path / "lake", "samples") == []
    assert not orphan.exists()
    assert upkeep.problems == ()


def test_a_retention_that_is_overtaken_looks_again(tmp_path: Path) -> None:
    filled(tmp_path, 6)
    lake = tmp_path / "lake"

    class Overtaking(Here):
        times = 1

        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            done = super().run(items, what)
            if self.times:
                self.times -= 1
                compact(table_of(lake, "samples"), Here(), LakeConfig(), full=True)
            return done

    dropped = retain(
        table_of(lake, "samples"), Overtaking(), (Retention("k/*", 2.0),), now=START + 5.0
    )
    assert dropped == 9
    assert len(rows_of(lake, "samples")) == 15


def test_vacuum_takes_what_no_version_needs_and_nothing_young(tmp_path: Path) -> None:
    filled(tmp_path, 5)
    lake = tmp_path / "lake"
    open(lake).compact(tasks=Here())
    orphan = lake / "samples" / "day=2023-11-14" / "orphan.parquet"
    orphan.write_bytes(b"half a file")
    scratch = lake / "latest" / "_scratch" / "gone" / "state.arrow"
    scratch.parent.mkdir(parents=True)
    scratch.write_bytes(b"x")
    old = time.time() - 7200
    for path in (lake / "samples").rglob("*.parquet"):
        os.utime(path, (old, old))
    # Old files all, but their readers may have begun a moment ago, before the compaction.
    assert open(lake).vacuum(3600.0)["samples"] == ["day=2023-11-14/orphan.parquet"]
    orphan.write_bytes(b"half a file")
    assert len(open(lake).vacuum(0.0, dry=True)["samples"]) == 6
    assert orphan.exists()
    assert len(open(lake).vacuum(0.0)["samples"]) == 6
    assert not orphan.exists()
    assert not scratch.parent.exists()
    assert len(rows_of(lake, "samples")) == 20
    assert len(rows_of(lake, "latest")) == 4


def test_vacuum_spares_what_a_typed_table_has_promised_to_the_quarantine(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [Row("robot/1/pose", b"{", 9, encoding=5)])
    config = read_config('{tables: {pose: {format: "robot/${id}/pose"}}}')
    # Killed between the commit of the table and that of the quarantine.
    with dying(of=lambda uri: "quarantine" in uri):
        Pipeline(str(lake), str(journal), Here(), config).step()
    assert rows_of(lake, "quarantine") == []
    assert len(promised(open(lake).tables())) == 1
    old = time.time() - 7200
    for path in (lake / "quarantine").rglob("*.parquet"):
        os.utime(path, (old, old))
    open(lake).vacuum(3600.0)
    Pipeline(str(lake), str(journal), Here(), config)
    assert [row["value"] for row in rows_of(lake, "quarantine")] == [b"{"]


def test_tables_that_are_replaced_anyway_are_left_alone(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    latest = table_of(tmp_path / "lake", "latest")
    assert compact(latest, Here(), SMALL, full=True) == 0
    assert retain(latest, Here(), (Retention("**", 0.0),)) == 0
    assert vacuum(latest, 3600.0) == []


@given(st.lists(st.integers(1, 200_000_000), max_size=60), st.booleans())
def test_no_file_is_merged_twice_and_no_group_is_larger_than_a_file_may_be(
    sizes: list[int], full: bool
) -> None:
    config = LakeConfig()
    # Half of them have many rows for their size.
    files = [
        DataFile(f"{n}", size, size * (n % 3), {"day": str(n % 2)}, "", n)
        for n, size in enumerate(sizes)
    ]
    chosen = groups(files, config, full)
    paths = [file.path for group in chosen for file in group]
    assert len(paths) == len(set(paths))
    for group in chosen:
        assert len(group) > 1
        assert sum(file.size for file in group) <= config.compact_bytes
        assert sum(file.rows for file in group) <= MOST_ROWS
        assert len({file.partition["day"] for file in group}) == 1


@given(st.lists(st.tuples(st.integers(1, 100 << 20), st.integers(1, 600_000)), max_size=60))
def test_after_a_day_its_files_have_32_to_128_megabytes_or_many_rows_except_one(
    files: list[tuple[int, int]],
) -> None:
    config = LakeConfig()
    day = [
        DataFile(f"{n}", size, rows, {"day": "1"}, "", n) for n, (size, rows) in enumerate(files)
    ]
    chosen = groups(day, config, full=True)
    merged = {file.path for group in chosen for file in group}
    left = [(file.size, file.rows) for file in day if file.path not in merged]
    left += [(sum(f.size for f in group), sum(f.rows for f in group)) for group in chosen]
    small = [(size, rows) for size, rows in left if size < 32 << 20 and rows < 500_000]
    assert len(small) <= 1
    assert all(size <= 128 << 20 for size, _ in left)


def test_thousands_of_keys_do_not_make_thousands_of_files(tmp_path: Path) -> None:
    config = read_config('{tables: {pose: {format: "robot/${id}/pose"}}, rollups: true}')
    rows = [Row(f"robot/{n}/pose", b'{"x": 1}', n % 60, encoding=5) for n in range(3000)]
    write(tmp_path / "j", rows)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Here(), config)
    pipeline.step()
    pipeline.finish()
    counts = {one.name: one.files for one in pipeline.shown()}
    assert counts["samples"] <= 2
    assert counts["pose"] <= 2
    assert counts["rollups"] <= 2
    assert counts["latest"] <= 16
    assert len(rows_of(tmp_path / "lake", "latest")) == 3000

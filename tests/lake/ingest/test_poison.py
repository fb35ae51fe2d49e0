"""A sample that kills whoever decodes it: all others arrive, and it is in quarantine once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lake.crashing import Killed, dying
from tests.lake.deadly import POISON, Mortals, Processes
from tests.lake.journals import R, rows_of, write
from tests.lake.rowsof import Row
from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.lake import LakeConfig, Pipeline, read_config
from zenlake.lake.decode import registry
from zenlake.lake.ingest.crashes import MOST_CRASHES, Crashes
from zenlake.lake.ingest.failure_reason import WorkFailed
from zenlake.lake.ingest.spark_tasks import Tasks, Work, tasks_on
from zenlake.lake.maintain.rebuild import known_table, rebuild
from zenlake.lake.service.loop import LoopReport, run
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 400


def config(decoder: str = "Dying", task_rows: int = 20) -> LakeConfig:
    return read_config(
        f"""{{tables: {{
            pose: {{format: "robot/${{id}}/pose", decoder: "tests.lake.deadly:{decoder}"}},
            all: {{format: "robot/${{id}}/${{what}}", encoding: "text/plain"}},
        }}, batch: {{task_rows: {task_rows}}}}}"""
    )


def journal_of(folder: Path, poisoned: set[int], partitions: int = 1, first: int = 0) -> str:
    """Samples of robots, each with its number as value, but some."""
    rows = [
        Row(f"robot/{n % 5}/pose", POISON if n in poisoned else b"%d" % n, at=n)
        for n in range(first, first + ROWS)
    ]
    write(folder, rows, partitions)
    return str(folder)


def fill(lake: Path, journal: str, tasks: Tasks, settings: LakeConfig) -> tuple[LoopReport, str]:
    """Fill a lake once, with what was told."""
    told: list[str] = []
    pipeline = Pipeline(str(lake), journal, tasks, settings)
    report = run(pipeline, tasks, stop=threading.Event(), once=True, complain=told.append)
    return report, "\n".join(told)


def check(lake: Path, poisoned: set[int], rows: int = ROWS) -> None:
    """All samples are in the table or in quarantine, each of them once."""
    assert len(rows_of(lake, "samples")) == len(rows_of(lake, "all")) == rows
    assert sorted(row["n"] for row in rows_of(lake, "pose")) == sorted({*range(rows)} - poisoned)
    bad = rows_of(lake, "quarantine")
    assert sorted(row["time"].timestamp() for row in bad) == sorted(
        row["time"].timestamp() for row in rows_of(lake, "samples") if row["value"] == POISON
    )
    assert {(row["table"], row["reason"], row["value"]) for row in bad} == (
        {("pose", "crash", POISON)} if poisoned else set()
    )
    assert len(bad) == len(poisoned)


@pytest.mark.parametrize("poisoned", [{137}, {0}, {ROWS - 1}, {20, 21, 22, 300}])
@pytest.mark.parametrize("partitions", [1, 3])
def test_it_goes_to_quarantine_and_all_others_arrive(
    tmp_path: Path, poisoned: set[int], partitions: int
) -> None:
    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", poisoned, partitions)
    report, told = fill(lake, journal, Mortals(), config())
    check(lake, poisoned)
    assert report.quarantined == len(poisoned)
    assert "a Python worker of Spark died (journal to tables, offsets " in told
    assert told.count("goes to quarantine undecoded, table 'pose'") == len(poisoned)
    assert not list(lake.glob(".step-*"))
    # It is remembered, and what comes later is read as ever.
    journal_of(tmp_path / "j", {ROWS + 3}, partitions, first=ROWS)
    fill(lake, journal, Mortals(), config())
    check(lake, {*poisoned, ROWS + 3}, 2 * ROWS)


def test_samples_and_other_tables_do_not_wait_for_the_search(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", {137})
    pipeline = Pipeline(str(lake), journal, Mortals(), config())
    assert pipeline.step().told
    while len(rows_of(lake, "samples")) < ROWS:
        pipeline.step()
        assert pipeline.narrows
    numbers = {row["n"] for row in rows_of(lake, "pose")}
    assert max(numbers, default=0) < 137, "the search is not over"


def test_the_search_goes_on_after_a_kill_in_any_of_its_steps(tmp_path: Path) -> None:
    class Killing(Mortals):
        left = 0

        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            self.left -= 1
            if not self.left:
                raise Killed
            return super().run(items, what)

    for deadline in range(1, 40, 4):
        place = tmp_path / str(deadline)
        place.mkdir()
        lake, journal = place / "lake", journal_of(place / "j", {137})
        tasks = Killing()
        tasks.left = deadline
        try:
            fill(lake, journal, tasks, config(task_rows=10_000))
        except Killed:
            fill(lake, journal, Mortals(), config(task_rows=10_000))
            check(lake, {137})
        else:
            break
    assert deadline > 10


def test_no_row_is_blamed_while_no_worker_can_work(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", set())
    tasks = Mortals()
    tasks.sick.add("journal to tables")
    with pytest.raises(WorkFailed, match="offsets 0 to 0 of partition 0"):
        fill(lake, journal, tasks, config())
    with pytest.raises(WorkFailed):
        fill(lake, journal, tasks, config())
    fill(lake, journal, Mortals(), config())
    check(lake, set())


def test_a_table_stops_if_workers_die_of_it_whatever_is_left_out(tmp_path: Path) -> None:
    class Allergic(Mortals):
        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            names = {t for i in items for one in getattr(i, "stretches", ()) for t in one.starts}
            self.sick = {"journal to tables"} if "pose" in names else set()
            return super().run(items, what)

    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", set())
    with pytest.raises(LocalError, match="table 'pose' has stopped, the others go on: a Python"):
        fill(lake, journal, Allergic(), config())
    assert len(rows_of(lake, "samples")) == len(rows_of(lake, "all")) == ROWS
    assert rows_of(lake, "quarantine") == []
    assert Crashes(LakeLocation(lake)).of("pose") == {}
    fill(lake, journal, Mortals(), config())
    check(lake, set())


def test_a_table_stops_if_too_many_of_its_samples_crash(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", {7})
    pipeline = Pipeline(str(lake), journal, Mortals(), config())
    (lake / ".crashes.json").write_text(
        json.dumps({"pose": {"other/0": list(range(MOST_CRASHES))}})
    )
    pipeline = Pipeline(str(lake), journal, Mortals(), config())
    while not pipeline.stopped.reason("pose"):
        pipeline.step()
    assert pipeline.stopped.reason("pose") == (
        "1,000 samples crashed its decoder, and so does offset 7 of partition 0; mend it"
    )
    while pipeline.behind():
        pipeline.step()
    assert len(rows_of(lake, "all")) == ROWS


def test_a_table_that_is_made_again_has_what_can_be_decoded_now(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", {137})
    fill(lake, journal, Mortals(), config())
    place = LakeLocation(lake)
    app = f"{Journal.open(journal).id}/0"
    assert Crashes(place).of("pose") == {app: (137,)}
    for _ in range(2):
        made = rebuild(place, known_table(place, config(), "pose"), Mortals())
        assert (made.rows, made.refused) == (ROWS - 1, 1)
        check(lake, {137})
    mended = read_config('{tables: {pose: {format: "robot/${id}/pose", encoding: "text/plain"}}}')
    made = rebuild(place, known_table(place, mended, "pose"), Mortals())
    assert (made.rows, made.refused) == (ROWS, 0)
    assert Crashes(place).of("pose") == {}


@pytest.fixture
def deadly_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another package is installed, whose decoder ends its process at one payload."""
    package = tmp_path / "packages" / "deadly-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[zenlake.decoders]\ndeadly = tests.lake.deadly:DeadlyEncoding\n"
    )
    monkeypatch.syspath_prepend(package.parent)

    def forget() -> None:
        registry._others.cache_clear()
        registry.decoder_for.cache_clear()

    forget()
    yield
    forget()


def deadly_rows(poisoned: set[int], count: int = 60) -> list[Row]:
    """Samples of keys that have no table."""
    return [
        Row(
            f"plant/{n % 5}/flow",
            POISON if n in poisoned else b"%d" % n,
            at=n,
            encoding=65535,
            schema="application/x-deadly",
        )
        for n in range(count)
    ]


@pytest.mark.usefixtures("deadly_encoding")
def test_a_row_that_kills_who_looks_for_new_tables_is_in_samples(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "j"
    write(journal, deadly_rows({2, 44}), 1)
    tasks = Processes()
    _, told = fill(lake, str(journal), tasks, LakeConfig())
    assert tasks.deaths > 2
    assert "offset 2 of partition 0 is in samples, and its payload makes no table" in told
    assert sorted(row["offset"] for row in rows_of(lake, "samples")) == [*range(60)]
    # The other rows made a table of their keys, and it has those that it can read.
    assert sorted(row["n"] for row in rows_of(lake, "flow")) == sorted({*range(60)} - {2, 44})
    bad = rows_of(lake, "quarantine")
    assert sorted((row["table"], row["reason"], row["offset"]) for row in bad) == [
        ("flow", "crash", 2), ("flow", "crash", 44),
    ]  # fmt: skip


@pytest.mark.usefixtures("deadly_encoding")
def test_a_decoder_that_kills_at_every_payload_stops_no_samples(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "j"
    write(journal, deadly_rows({*range(60)}), 1)
    fill(lake, str(journal), Processes(), LakeConfig())
    assert len(rows_of(lake, "samples")) == 60
    assert rows_of(lake, "quarantine") == []
    pipeline = Pipeline(str(lake), str(journal), Processes(), LakeConfig())
    assert "10 samples of keys without a table ended the process" in pipeline.problems[-1]


@pytest.mark.parametrize("dies_after", [False, True])
def test_a_row_that_cannot_be_written_to_samples_goes_to_quarantine_once(
    tmp_path: Path, dies_after: bool
) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "j"
    write(journal, [Row(f"robot/{n % 3}/pose", b"%d" % n, at=n) for n in range(60)], 1)
    if dies_after:  # between the commits of the two tables
        with dying(1, of=lambda uri: uri.rstrip("/").endswith("quarantine")):
            fill(lake, str(journal), Processes(17), LakeConfig())
    _, told = fill(lake, str(journal), Processes(17), LakeConfig())
    assert dies_after or "offset 17 of partition 0 goes to quarantine instead of samples" in told
    assert sorted(row["offset"] for row in rows_of(lake, "samples")) == sorted({*range(60)} - {17})
    assert sorted(row["offset"] for row in rows_of(lake, "pose")) == [*range(60)]
    (bad,) = rows_of(lake, "quarantine")
    assert (bad["table"], bad["reason"], bad["offset"], bad["value"]) == (
        "samples", "crash", 17, b"17",
    )  # fmt: skip


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_worker_of_spark_that_ends_costs_the_one_sample_that_it_ends_of(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "j"
    write(journal, [Row("pose", POISON if n == 17 else b"%d" % n, at=n) for n in range(30)], 1)
    settings = read_config(
        '{tables: {pose: {format: "pose", decoder: "tests.lake.deadly:Deadly"}}}'
    )
    _, told = fill(lake, str(journal), tasks_on(spark), settings)
    assert len(rows_of(lake, "samples")) == 30
    assert sorted(row["n"] for row in rows_of(lake, "pose")) == sorted({*range(30)} - {17})
    (bad,) = rows_of(lake, "quarantine")
    assert (bad["reason"], bad["value"], bad["offset"]) == ("crash", POISON, 17)
    assert told.splitlines()[0] == (
        "a Python worker of Spark died (journal to tables, offsets 0 to 29 of partition 0, 4 times "
        "in a row); tables and rows are tried apart to find which"
    )

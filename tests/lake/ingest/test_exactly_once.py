"""Everything is killed, again and again, and each sample is in each table once.

    Eclipse's publishers ──► router ──► recorder ──► journal ──► Spark ──► tables, rollups, Iceberg
      └ logs of their own                 ✝                       ✝
      JSON, protobuf, ROS 2                            local, and by Spark Connect

What publishers wrote down, what the recorder acknowledged to a witness before it was killed, the
rows of the journal, its ledger, and the tables as four readers see them must tell one story. To
see it: `pytest -s tests/lake/ingest/test_exactly_once.py`; ZENLAKE_ROUNDS says how often.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.cli.programs import COMMAND, ROOT, Program, command, endpoint
from tests.lake.clusters import connect_server, until_connected
from tests.lake.counts import (
    Counts,
    Heard,
    Said,
    by_table,
    counted,
    heard,
    published,
    readers,
    rolled_up,
    runs,
    said,
    seen,
    without_distincts,
)
from tests.lake.journals import rows_of
from tests.lake.numbered import FIELDS, ROS2_KEY, config, table_of
from tests.waiting import SECONDS, until
from zenlake.journal import Journal
from zenlake.journal.ledger import checkpoint
from zenlake.journal.schema import HEALED
from zenlake.journal.verify import verify
from zenlake.lake import Pipeline, read_config
from zenlake.lake.ingest.spark_tasks import SparkTasks
from zenlake.lake.maintain.status_file import STATUS
from zenlake.lake.service.loop import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = int(os.environ.get("ZENLAKE_ROUNDS", "1"))

pytestmark = [
    pytest.mark.nightly(
        day="lake/query/test_object_source.py, lake/continuous/test_views_and_alerts.py, "
        "journal/test_crash.py"
    ),
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.interop,
    pytest.mark.timeout(300 + 200 * ROUNDS),
]

KINDS = {
    "plain": ("count/p0", "count/p1", "proto/p2"),
    "advanced": ("count/a0", "count/a1", "proto/a2"),
    "silent": ("count/s0",),
    "ros2": (ROS2_KEY,),
}
#: Many small steps, so that a kill is in the middle of one.
STEPS = ("batch: {rows: 3000, task_rows: 1000}", "compact: {files: 3}", 'gaps: {every: "2s"}')
PARTITIONS = 2
PATIENCE = 120.0


@contextmanager
def eclipse(kind: str, place: str, log: Path, *keys: str) -> Iterator[subprocess.Popen[str]]:
    """A program of Eclipse's package; it ends when its input does."""
    program = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.lake.counting"),
            *(kind, place, str(log), *keys),
        ],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        assert program.stdout.readline() == "begun\n"
        yield program
        program.stdin.close()
        assert program.wait(SECONDS) == 0
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
        program.stdin.close()


class Trial:
    """One run of everything, and who kills what in it."""

    def __init__(self, home: Path, place: str, remote: str) -> None:
        self.place = place
        self.remote = remote
        self.lake = home / "lake"
        self.folder = home / "journal"
        self.told = home / "watermarks"
        self.config = home / "lake.json5"
        self.config.write_text(config(home, *STEPS))
        self.chance = random.Random(11)
        self.stack = ExitStack()
        self.recorder = self.record()
        self.journal = Journal.open(self.folder)
        #: The rows that were acknowledged, as they were read when they were.
        self.acknowledged: list[list[Heard]] = [[] for _ in range(PARTITIONS)]
        self.sources: dict[str, int] = {}
        self.kills: dict[str, int] = {}

    # -------------------------------------------------------------------------- what is started

    def record(self) -> Program:
        program = self.stack.enter_context(
            command(
                *(
                    "record",
                    "-k",
                    "count/**",
                    "-k",
                    "proto/**",
                    "-k",
                    "0/**",
                    "--to",
                    str(self.folder),
                    "--name",
                    "counts",
                ),
                *("--partitions", str(PARTITIONS), "--fsync", "20ms", "--segment-size", "256KiB"),
                *("-q", "-m", "client", "-e", self.place),
            )
        )
        program.says("recording", 60)
        return program

    def drive(self, master: str) -> Program:
        return self.stack.enter_context(
            Program(
                *("-c", COMMAND, "lake", "run", "--lake", str(self.lake)),
                *("--journal", str(self.folder), "--config", str(self.config)),
                *("--every", "200ms", "--json", "--master", master),
            )
        )

    # --------------------------------------------------------------------------- what is killed

    def killed(self, kind: str, *programs: Program) -> None:
        """Kill programs with all that they started, at once and without a word."""
        found = [psutil.Process(program.process.pid) for program in programs]
        # The Python of Spark's tasks has a process group of its own, so no group is enough.
        family = [one for parent in found for one in (parent, *parent.children(recursive=True))]
        if self.recorder in programs:
            self.acknowledge()
        for one in family:
            one.kill()
        for program in programs:
            program.process.wait(SECONDS)
        _, alive = psutil.wait_procs(family, timeout=SECONDS)
        assert alive == []
        self.kills[kind] = self.kills.get(kind, 0) + 1

    def killed_java(self, driver: Program) -> None:
        """Kill only the Java of a driver, which then must see that it can do no more."""
        family = psutil.Process(driver.process.pid).children(recursive=True)
        (java,) = [one for one in family if one.name() == "java"]
        java.kill()
        assert driver.process.wait(PATIENCE) != 0
        _, alive = psutil.wait_procs(family, timeout=SECONDS)
        assert alive == []
        self.kills["driver"] = self.kills.get("driver", 0) + 1

    def acknowledge(self) -> None:
        """Keep what the recorder promises: what a stranger on the bus was told, and the rows."""
        told = json.loads(self.told.read_text().splitlines()[-1])
        self.sources = told["sources"]
        for partition, end in enumerate(told["offsets"]):
            kept = self.acknowledged[partition]
            kept += heard(self.journal, partition, len(kept), end)

    def has_all(self, sent: Said) -> bool:
        """Whether the last of each key is durable, and all that can be asked for again."""
        self.acknowledge()
        rows = [row for part in self.acknowledged for row in part]
        numbers: dict[str, set[int]] = {key: set() for key in sent.numbers}
        for row in rows:
            numbers[row.key].add(row.number)
        return all(
            found
            >= (set(sent.numbers[key]) if key in KINDS["advanced"] else {sent.numbers[key][-1]})
            for key, found in numbers.items()
        )

    def until_begun(self) -> None:
        """Wait for a sample of each key: what is lost before the first one nobody can know of."""

        def keys() -> set[str]:
            ends = enumerate(self.journal.watermark().offsets)
            return {row.key for p, end in ends for row in heard(self.journal, p, 0, end)}

        everyone = {key for mine in KINDS.values() for key in mine}
        until(lambda: keys() == everyone, "somebody says nothing", PATIENCE)

    def until_recorded(self, rows: int) -> None:
        """Wait until there are so many rows more, and another moment."""
        enough = self.rows() + rows
        until(lambda: self.rows() >= enough, "nothing is recorded", PATIENCE)
        self.moment(0.4)

    def rows(self) -> int:
        return sum(self.journal.watermark().offsets)

    def moment(self, seconds: float) -> None:
        """No condition to wait for: a kill is to come at any point."""
        time.sleep(self.chance.uniform(0, seconds))

    def until_driven(self, driver: Program) -> None:
        """Wait until the driver has committed something, and another moment."""
        driver.says('"rows"', PATIENCE)
        self.moment(1.5)

    def forget(self) -> None:
        """Delete whatever lies beside the tables and the rows, as if it were only a cache."""
        (self.folder / checkpoint.LEDGER).unlink(missing_ok=True)
        (self.lake / STATUS).unlink(missing_ok=True)
        for table in [path for path in self.lake.iterdir() if path.is_dir()]:
            shutil.rmtree(table / "_scratch", ignore_errors=True)
            (table / "_delta_log" / "_last_checkpoint").unlink(missing_ok=True)
        self.kills["checkpoint"] = self.kills.get("checkpoint", 0) + 1

    def round(self, number: int) -> None:
        """Kill each of them once; then both at once, and what they put aside, every other time.

        Of a driver sometimes only its Java dies, sometimes all of it at once; that of Spark Connect
        always does, with the recorder.
        """
        driver = self.drive("local[2]")
        # While one Spark starts or works there is time for the recorder.
        self.until_recorded(300)
        self.killed("recorder", self.recorder)
        self.moment(0.5)
        self.recorder = self.record()
        self.until_driven(driver)
        if number % 2:
            self.killed("driver", driver)
        else:
            self.killed_java(driver)
        self.look()
        if number % 2:
            return
        until_connected(self.remote)
        # Its server goes on with what it was asked for when it is killed.
        driver = self.drive(self.remote)
        self.until_driven(driver)
        self.killed("both", self.recorder, driver)
        self.look()
        self.forget()
        self.recorder = self.record()

    def look(self) -> None:
        """Whoever reads now sees what the log of each table says, and nothing half done."""
        ends = self.journal.watermark().offsets
        tables = [
            [table_of(row.key, row.number) for row in heard(self.journal, p, 0, end)]
            for p, end in enumerate(ends)
        ]
        for name in ("samples", *FIELDS):
            if not (self.lake / name).is_dir():
                continue  # the table of a topic is made when the topic is met
            table = DeltaTable(str(self.lake / name))
            found = places_in(table.to_pyarrow_table(columns=["partition", "offset"]))
            for partition in range(PARTITIONS):
                end = table.transaction_version(f"{self.journal.id}/{partition}") or 0
                due = [n for n in range(end) if name in ("samples", tables[partition][n])]
                assert found.get(partition, []) == due, f"{name} of partition {partition}"
            if (self.lake / name / "_iceberg").is_dir():
                # It may be some commits behind, so it has all up to somewhere.
                for partition, offsets in places_in(published(str(self.lake), name)).items():
                    assert offsets == found[partition][: len(offsets)], f"Iceberg's {name}"
        keys = [row["key"] for row in rows_of(self.lake, "latest")]
        assert len(set(keys)) == len(keys)


def places_in(rows: pa.Table) -> dict[int, list[int]]:
    """The offsets of rows in each partition, in order."""
    found: dict[int, list[int]] = {}
    pairs = zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True)
    for partition, offset in sorted(pairs):
        found.setdefault(partition, []).append(offset)
    return found


# ------------------------------------------------------------------------------------------ proof


def proven_journal(trial: Trial, sent: Said) -> dict[str, list[Heard]]:
    """The journal has what was acknowledged, nothing twice, nothing that was not said."""
    ends = trial.journal.watermark().offsets
    rows = [heard(trial.journal, p, 0, end) for p, end in enumerate(ends)]
    for kept, now in zip(trial.acknowledged, rows, strict=True):
        assert now[: len(kept)] == kept
    by_key: dict[str, list[Heard]] = {}
    for row in [row for part in rows for row in part]:
        by_key.setdefault(row.key, []).append(row)
        assert row.sn == (row.number if row.key in sent.sources else None)
    assert by_key.keys() == sent.numbers.keys()
    for key, found in by_key.items():
        numbers = [row.number for row in found]
        assert len(set(numbers)) == len(numbers), f"{key} has a sample twice"
        assert set(numbers) <= set(sent.numbers[key]), f"{key} has what nobody said"
        if key in KINDS["advanced"]:
            assert set(numbers) == set(sent.numbers[key])
        if key in sent.sources and key not in KINDS["ros2"]:  # the watermark names nodes of Zenoh
            assert trial.sources[sent.sources[key]] in set(numbers)
    return by_key


def proven_ledger(trial: Trial, sent: Said, rows: dict[str, list[Heard]]) -> None:
    """The ledger knows to the row what was sent and did not come, here and in the lake."""
    verdict = verify(trial.journal)
    assert (verdict.problems, verdict.ledger) == ([], "agrees")
    stored = checkpoint.stored(trial.folder)
    pages = {page.key: page for page in checkpoint.caught_up(trial.journal, stored).pages()}
    table = {row["key"]: row for row in rows_of(trial.lake, "gaps")}
    assert pages.keys() == sent.sources.keys()
    assert table.keys() == sent.numbers.keys()
    for key, source in sent.sources.items():
        numbers = [row.number for row in rows[key]]
        lost = runs(set(sent.numbers[key]) - set(numbers))
        healed = sum(row.origin == HEALED for row in rows[key])
        for page in (pages[key].facts(), table[key]):
            assert page["source"] == source
            counts = (len(sent.numbers[key]), len(numbers))
            assert (page["expected"], page["received"]) == counts, key
            assert page["missing"] == len(sent.numbers[key]) - len(numbers)
            assert page["gaps"] == lost[:100]
            assert (page["duplicates"], page["restarts"]) == (0, 0)
            assert (page["healed"], page["rows"]) == (healed, len(numbers))
    for key in KINDS["silent"]:
        assert table[key]["source"] is None
        assert table[key]["rows"] == len(rows[key])


def proven_tables(
    trial: Trial, rows: dict[str, list[int]], newest: Counts, spark: SparkSession
) -> None:
    """Each engine sees the rows of the journal in each table, each once, and so do rollups."""
    whole, typed = counted(rows), by_table(rows)
    for name, ask in readers(trial.lake, spark).items():
        assert seen(ask, "samples") == whole, f"samples as {name} reads it"
        assert seen(ask, "latest") == newest, f"latest as {name} reads it"
        for table, counts in typed.items():
            assert seen(ask, table) == counts, f"{table} as {name} reads it"
    totals = without_distincts(typed)
    assert rolled_up(rows_of(trial.lake, "rollups")) == {"minute": totals, "hour": totals}


def tell(
    sent: Said, rows: dict[str, list[Heard]], journal: Counts, newest: Counts, trial: Trial
) -> None:
    """The table of counts, for `-s`."""
    print("\n\nkilled:", ", ".join(f"{kind} {n} times" for kind, n in trial.kills.items()))
    print("tables are what Spark, delta-rs, DuckDB, and DuckDB by Iceberg read, all the same\n")
    words = ("sent", "acknowledged", "unheard", "healed")
    print(
        f"{'key':10}", *(f"{word:>12}" for word in words), "  count/sum/distinct in the journal ="
        " samples = typed = rollups  latest",
    )  # fmt: skip
    acknowledged = [row.key for part in trial.acknowledged for row in part]
    for key, found in sorted(rows.items()):
        lost = len(sent.numbers[key]) - len(found)
        healed = sum(row.origin == HEALED for row in found)
        counts = (len(sent.numbers[key]), acknowledged.count(key), lost, healed)
        print(
            f"{key[:10]:10}", *(f"{n:>12}" for n in counts),
            f"  {journal[key].rows:>9} / {journal[key].sum:>12} / {journal[key].distinct:>9}"
            f"{newest[key].sum:>29}",
        )  # fmt: skip


def test_whoever_is_killed_each_sample_is_in_each_table_once(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = endpoint()
    logs = {kind: tmp_path / f"{kind}.log" for kind in KINDS}
    with ExitStack() as stack:
        router = stack.enter_context(command("router", "-l", place))
        router.says("listens on", 60)
        remote = stack.enter_context(connect_server(tmp_path))
        told = tmp_path / "watermarks"
        stack.enter_context(eclipse("witness", place, told, "@journal/counts/watermark"))
        trial = Trial(tmp_path, place, remote)
        stack.push(trial.stack)
        publishers = [
            stack.enter_context(eclipse(kind, place, logs[kind], *keys))
            for kind, keys in KINDS.items()
        ]
        trial.until_begun()
        for number in range(ROUNDS):
            trial.round(number)
        trial.until_recorded(300)
        for one in publishers:
            assert one.stdin is not None
            assert one.stdout is not None
            one.stdin.write("end\n")
            one.stdin.flush()
            assert one.stdout.readline() == "ended\n"
        sent = said(logs.values())

        until(lambda: trial.has_all(sent), "not all that can be healed is", 60)
        assert trial.recorder.interrupt() == 130
    spark: SparkSession = request.getfixturevalue("spark")
    tasks = SparkTasks(spark)
    settings = read_config(config(tmp_path))
    pipeline = Pipeline(str(trial.lake), str(trial.folder), tasks, settings)
    run(pipeline, tasks, stop=threading.Event(), once=True)
    rows = proven_journal(trial, sent)
    proven_ledger(trial, sent, rows)
    numbers = {key: [row.number for row in found] for key, found in rows.items()}
    newest = counted({key: [numbers[-1]] for key, numbers in sent.numbers.items()})
    proven_tables(trial, numbers, newest, spark)
    tell(sent, rows, counted(numbers), newest, trial)
    every, other = dict.fromkeys(("recorder", "driver"), ROUNDS), (ROUNDS + 1) // 2
    assert trial.kills == every | dict.fromkeys(("both", "checkpoint"), other)

"""Two programs write to the tables of a lake at once, and no row is lost, doubled or back."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.cli.programs import ROOT
from tests.lake.journals import Here, rows_of, table_of, write
from tests.lake.rowsof import Row
from zenlake.journal import Journal
from zenlake.lake import Pipeline, read_config
from zenlake.lake.maintain.upkeep import compact
from zenlake.lake.table.delta import CommitConflict

JSON = 5
CONFIG = read_config(
    '{tables: {pose: {format: "robot/${id}/pose"}}, compact: {files: 3}, latest: {buckets: 4}}'
)
EACH = 20
"""Samples of a batch."""


def poses(batch: int) -> list[Row]:
    """Rows with a column that is young in every fourth batch, and becomes wider two batches on."""
    rows = []
    for n in range(batch * EACH, (batch + 1) * EACH):
        wide = n if batch % 4 < 2 else n + 0.5
        said = json.dumps({"n": n, f"w{batch // 4 % 50}": wide}).encode()
        rows.append(Row(f"robot/{n % 7}/pose", said, n, encoding=JSON))
    return rows


def keep_in_shape(lake: Path, over: threading.Event, failed: list[BaseException]) -> None:
    try:
        while not over.wait(0.2):
            for name in ("samples", "pose"):
                try:
                    compact(table_of(lake, name), Here(), CONFIG)
                except CommitConflict:
                    continue  # in the next round
    except BaseException as error:
        failed.append(error)


BY_NIGHT = pytest.mark.nightly(day="lake/test_two_writers.py")


@pytest.mark.parametrize("acts", ["optimize", "change"])
@pytest.mark.parametrize(
    "seconds",
    [pytest.param(3.0, id="by day"), pytest.param(30.0, id="by night", marks=BY_NIGHT)],
)
def test_each_sample_is_in_each_table_once_but_for_those_that_the_other_deleted(
    tmp_path: Path, seconds: float, acts: str
) -> None:
    """The lake merges no files while the other one does: that program notices it too seldom.

    OPTIMIZE of delta-rs commits though its files are gone; `docs/how-to/other-writers.md` says so.
    """
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, poses(0), 1)
    pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)
    pipeline.step()
    pipeline.fold(0.0, all=True)
    other = subprocess.Popen(
        [sys.executable, "-m", "tests.lake.other_writer", str(lake), str(seconds), "7", acts],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    failed: list[BaseException] = []
    over = threading.Event()
    upkeep = threading.Thread(target=keep_in_shape, args=(lake, over, failed))
    if acts == "change":
        upkeep.start()
    batches, conflicts = 1, 0
    try:
        while other.poll() is None:
            write(journal, poses(batches), 1)
            batches += 1
            try:
                pipeline.step(time.monotonic())
                pipeline.fold(time.monotonic(), all=True)
            except CommitConflict:
                conflicts += 1
            assert pipeline.stopped.sentences() == ()
    finally:
        over.set()
        if upkeep.ident is not None:
            upkeep.join()
        told, _ = other.communicate()
    assert other.returncode == 0
    assert failed == []
    for _ in range(3):
        pipeline.step(time.monotonic())
    pipeline.fold(time.monotonic(), all=True)
    assert (pipeline.behind(), pipeline.stopped.sentences()) == (0, ())

    done = [json.loads(line) for line in told.splitlines()]
    print(Counter((one["table"], one["act"]) for one in done), batches, conflicts)
    gone = {offset for one in done for offset in one["gone"]}
    id = Journal.open(journal).id
    every = [(id, 0, offset) for offset in range(batches * EACH)]
    samples = rows_of(lake, "samples")
    assert Counter((r["journal"], r["partition"], r["offset"]) for r in samples) == Counter(every)
    assert {json.loads(row["value"])["n"] for row in samples} == set(range(batches * EACH))
    left = Counter(row for row in every if row[2] not in gone)
    pose = rows_of(lake, "pose")
    assert Counter((row["journal"], row["partition"], row["offset"]) for row in pose) == left
    for row in pose:
        batch = row["n"] // EACH
        wide = row["n"] if batch % 4 < 2 else row["n"] + 0.5
        assert row[f"w{batch // 4 % 50}"] == wide
    newest = {row["key"]: json.loads(row["value"])["n"] for row in rows_of(lake, "latest")}
    assert newest == {f"robot/{n % 7}/pose": n for n in range(batches * EACH - 7, batches * EACH)}
    assert rows_of(lake, "quarantine") == []
    assert DeltaTable(str(lake / "pose")).version() > batches / 2

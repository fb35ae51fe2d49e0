"""Delta's own connector for Spark changes the tables of a lake, and the lake goes on.

It comes from Maven, with the newest Spark that it supports from PyPI, into an environment under
`build`; the test is skipped where there is no Java or no Maven.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.programs import ROOT
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, open, read_config

pytestmark = pytest.mark.nightly(day="lake/test_other_writers.py, lake/table/test_features.py")

JSON = 5
SPARK = "4.2.1"
CONNECTOR = "io.delta:delta-spark_4.2_2.13:4.4.0"
POM = (
    "https://repo1.maven.org/maven2/io/delta/delta-spark_4.2_2.13/4.4.0/"
    "delta-spark_4.2_2.13-4.4.0.pom"
)
CONFIG = read_config('{tables: {pose: {format: "robot/${id}/pose"}}, rollups: true}')

Asked = Callable[[str], Any]


def python_with_spark(folder: Path) -> Path:
    """The interpreter of an environment with nothing but that Spark."""
    python = folder / "bin" / "python"
    ready = folder / f"spark-{SPARK}"
    if not ready.exists():
        venv.create(folder, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", f"pyspark=={SPARK}"]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"Spark {SPARK} does not come from PyPI: {done.stderr[-200:]}")
        ready.touch()
    return python


@pytest.fixture
def connector(machine: dict[str, str], tmp_path: Path) -> Iterator[Asked]:
    """Asks the connector a statement of SQL, and gives the rows."""
    if "JAVA_HOME" not in machine and shutil.which("java", path=machine["PATH"]) is None:
        pytest.skip("this machine has no Java")
    try:
        urllib.request.urlopen(POM, timeout=20).close()
    except OSError as error:
        pytest.skip(f"Maven cannot be reached: {error}")
    folder = ROOT / "build" / "delta-connector"
    python = python_with_spark(folder)
    script = Path(__file__).with_name("delta_connector.py")
    log = tmp_path / "connector.log"
    errors = log.open("w")
    program = subprocess.Popen(
        [str(python), str(script), CONNECTOR, str(folder / "ivy")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={name: value for name, value in machine.items() if name != "PYTHONPATH"},
    )
    assert program.stdin is not None
    assert program.stdout is not None
    told, said = program.stdin, program.stdout

    def asked(statement: str) -> Any:
        print(statement, file=told, flush=True)
        line = said.readline()
        while line.startswith("Deleted "):  # VACUUM says so by itself
            line = said.readline()
        assert line.startswith("["), (statement, line, log.read_text("utf-8")[-2000:])
        answer = json.loads(line)
        return answer

    try:
        assert json.loads(said.readline() or '"it did not start"') == "ready"
        yield asked
    finally:
        told.close()
        program.wait(60)
        said.close()
        errors.close()


def poses(first: int, end: int, more: float = 0) -> list[Row]:
    return [
        Row(f"robot/{n % 3}/pose", json.dumps({"n": n, "x": n + more}).encode(), n, encoding=JSON)
        for n in range(first, end)
    ]


def test_the_connector_reads_and_changes_every_table_and_the_lake_goes_on(
    tmp_path: Path, connector: Asked
) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [*poses(0, 30), Row("robot/1/pose", b"{", 99, encoding=JSON)], 1)
    pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)

    def step() -> None:
        pipeline.step()
        pipeline.fold(0.0, all=True)
        assert pipeline.stopped.sentences() == ()

    step()
    for name in ("samples", "pose", "quarantine", "latest", "gaps", "rollups"):
        rows = [[len(rows_of(lake, name))]]
        assert connector(f"SELECT count(*) FROM delta.`{lake}/{name}`") == rows

    for name in ("samples", "pose", "quarantine"):
        table = f"delta.`{lake}/{name}`"
        connector(f"OPTIMIZE {table} ZORDER BY (key)")
        connector(
            f"MERGE INTO {table} t USING (SELECT * FROM {table} WHERE offset < 5) s "
            "ON s.journal = t.journal AND s.partition = t.partition AND s.offset = t.offset "
            "WHEN MATCHED THEN UPDATE SET *"
        )
        connector(f"DELETE FROM {table} WHERE offset = 7")
        connector(f"VACUUM {table}")
    connector(f"OPTIMIZE delta.`{lake}/latest` ZORDER BY (key)")
    write(journal, poses(30, 40, 0.5), 1)  # a column widens
    step()
    left = [n for n in range(40) if n != 7]
    assert sorted(row["x"] for row in rows_of(lake, "pose")) == [
        n + (0.5 if n >= 30 else 0.0) for n in left
    ]
    mine = open(lake)
    assert mine.compact(tasks=Here())["samples"] > 0
    assert len(rows_of(lake, "samples")) == 40
    assert len(rows_of(lake, "latest")) == 3
    assert len(rows_of(lake, "quarantine")) == 1

    # A deletion vector stops the table, and the way out that is told leads out.
    pose = f"delta.`{lake}/pose`"
    connector(f"ALTER TABLE {pose} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    connector(f"DELETE FROM {pose} WHERE n = 0")
    write(journal, poses(40, 50), 1)
    pipeline.step(1.0)
    (sentence,) = pipeline.stopped.sentences()
    assert "feature deletionVectors" in sentence
    assert len(rows_of(lake, "samples")) == 50
    connector(f"REORG TABLE {pose} APPLY (PURGE)")
    connector(f"ALTER TABLE {pose} DROP FEATURE deletionVectors")
    pipeline.step(500.0)
    (sentence,) = pipeline.stopped.sentences()
    assert "DROP FEATURE checkpointProtection TRUNCATE HISTORY" in sentence
    # Delta drops that one when its history has expired, and when that is depends on the hour.
    assert connector(f"SELECT count(*), max(n) FROM {pose}") == [[38, 39]]

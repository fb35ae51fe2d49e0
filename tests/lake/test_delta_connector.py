"""Delta's own connector for Spark changes the tables of a lake, and the lake goes on.

It comes from Maven, with the newest Spark that it supports from PyPI, into an environment under
`build`; the test is skipped where there is no Java or no Maven.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.programs import ROOT
from tests.lake.journals import Here, rows_of, table_of, write
from tests.lake.older_spark import Asked, asking
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, open, read_config
from zenlake.lake.table.features import UnsupportedTable

pytestmark = pytest.mark.nightly(day="lake/test_other_writers.py, lake/table/test_features.py")

JSON = 5
SPARK = "4.2.1"
CONNECTOR = "io.delta:delta-spark_4.2_2.13:4.4.0"
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.databricks.delta.snapshotPartitions": "1",
}
CONFIG = read_config('{tables: {pose: {format: "robot/${id}/pose"}}, rollups: true}')


@pytest.fixture
def connector(machine: dict[str, str], tmp_path: Path) -> Iterator[Asked]:
    """Asks the connector a statement of SQL, and gives the rows."""
    folder = ROOT / "build" / "delta-connector"
    with asking(machine, folder, tmp_path / "log", SPARK, CONNECTOR, SETTINGS) as asked:
        yield asked


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

    # Rows that deletion vectors delete are gone, and the connector sees the files as they are.
    for name in ("pose", "samples"):
        table = f"delta.`{lake}/{name}`"
        connector(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    connector(f"DELETE FROM delta.`{lake}/pose` WHERE n = 0")
    with pytest.raises(UnsupportedTable, match="deletion vectors"):
        table_of(lake, "pose")
    write(journal, poses(40, 50), 1)
    pipeline.step(1.0)
    step()
    connector(f"DELETE FROM delta.`{lake}/pose` WHERE n IN (1, 45)")
    connector(f"DELETE FROM delta.`{lake}/samples` WHERE offset IN (3, 20)")
    pipeline.step(1000.0)
    pipeline.step(2000.0)
    assert pipeline.stopped.sentences() == ()
    numbers = f"SELECT n FROM delta.`{lake}/pose` ORDER BY n"
    assert connector(numbers) == [[n] for n in range(2, 50) if n not in (7, 45)]
    assert table_of(lake, "pose").totals().rows == 46
    assert table_of(lake, "samples").totals().rows == 48
    assert connector(f"SELECT count(*) FROM delta.`{lake}/samples`") == [[48]]
    assert mine.compact(tasks=Here())["samples"] >= 0

    # A feature that is not understood stops the table.
    pose = f"delta.`{lake}/pose`"
    connector(f"ALTER TABLE {pose} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    write(journal, poses(50, 60), 1)
    pipeline.step(3000.0)
    (sentence,) = pipeline.stopped.sentences()
    assert "which is not understood, so nothing in it is read or written; take it away" in sentence
    assert table_of(lake, "samples").totals().rows == 58

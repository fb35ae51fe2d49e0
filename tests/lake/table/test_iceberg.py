"""The same rows by Delta and by Iceberg, whoever reads them and whatever was done to the files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from tests.lake.journals import Here, table_of, write
from tests.lake.maintain.test_forget import found_in
from tests.lake.rowsof import START, Row
from tests.volumes.bucket import SECRET, bucket
from zenlake.lake import Pipeline, Retention, open, read_config
from zenlake.lake.service.loop import run
from zenlake.lake.table.iceberg import IcebergMirror

__all__ = ["bucket"]

JSON = 5
TABLES = """{tables: {pose: {format: "robot/${id}/pose", comment: "where robots are",
    comments: {x: "metres east"}}}, compact: {files: 3}"""
CONFIG = read_config(TABLES + ", iceberg: true}")
NAMES = ("samples", "latest", "gaps", "quarantine", "pose")


def filled(tmp_path: Path, first: int, last: int) -> None:
    """Steps with integers, then fractions, new columns, lists, refusals and deletions."""
    for n in range(first, last):
        more = ', "name": "ä", "tags": ["a", "b"], "at": {"z": 1}' if n > 1 else ""
        write(
            tmp_path / "journal",
            [
                Row(
                    "robot/1/pose",
                    f'{{"x": {n if n < 3 else n + 0.5}{more}}}'.encode(),
                    n,
                    encoding=JSON,
                ),
                Row("robot/2/pose", b"oops" if n % 2 else b"{}", n, encoding=JSON),
                Row(f"other/{n}", b"", n, kind=n % 2),
            ],
        )
        pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), CONFIG)
        run(pipeline, Here(), stop=threading.Event(), once=True)


def the_same(lake: Path) -> dict[str, int]:
    """Compare every table as all readers see it; gives the rows of each."""
    return {name: _compared(lake, name) for name in NAMES}


def _compared(lake: Path, name: str) -> int:
    delta = DeltaTable(str(lake / name)).to_pyarrow_table()
    iceberg = StaticTable.from_metadata(str(lake / name / "_iceberg"))
    scanned = iceberg.scan().to_arrow()
    wanted = _ordered(delta.to_pylist(), delta.column_names)
    assert _ordered(scanned.to_pylist(), delta.column_names) == wanted
    framed = polars.scan_iceberg(iceberg).collect().to_arrow()
    assert _ordered(framed.to_pylist(), delta.column_names) == wanted
    assert set(framed.column_names) == set(delta.column_names)
    # DuckDB's own extension is not in its package; it reads what pyiceberg planned.
    by_duckdb = duckdb.from_arrow(scanned).to_arrow_table().cast(scanned.schema)
    assert _ordered(by_duckdb.to_pylist(), delta.column_names) == wanted
    return len(wanted)


def _ordered(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    return sorted(repr([row[name] for name in names]) for row in rows)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake whose column x became a double, and its journal."""
    folder = tmp_path_factory.mktemp("grown")
    filled(folder, 0, 5)
    return folder


def test_tables_and_columns_say_what_they_are_in_both_formats(grown: Path) -> None:
    lake = grown / "lake"
    delta = DeltaTable(str(lake / "pose"))
    assert delta.metadata().description == "Samples of robot/${id:*}/pose. where robots are"
    said = {field.name: field.metadata.get("comment") for field in delta.schema().fields}
    assert said["x"] == "metres east"
    assert said["key"] == "the key"
    assert said["id"] is None
    iceberg = StaticTable.from_metadata(str(lake / "pose/_iceberg"))
    assert iceberg.properties["comment"] == delta.metadata().description
    assert {field.name: field.doc for field in iceberg.schema().fields} == said


def test_every_reader_finds_the_rows_of_delta_after_appends_merges_and_deletions(
    grown: Path,
) -> None:
    lake = grown / "lake"
    assert the_same(lake) == {"samples": 15, "latest": 5, "gaps": 7, "quarantine": 2, "pose": 8}
    assert open(lake, config=CONFIG).compact(tasks=Here())["samples"] > 0
    assert the_same(lake)["samples"] == 15
    iceberg = StaticTable.from_metadata(str(lake / "samples/_iceberg"))
    assert len(list(iceberg.scan().plan_files())) == len(table_of(lake, "samples").files())
    assert not list(iceberg.scan("key == 'nobody'").plan_files())
    rules = (Retention("robot/1/*", 2.0),)
    assert open(lake).retain(rules, tasks=Here(), now=START + 4.0)["samples"] == 2
    filled(grown, 5, 6)
    assert the_same(lake)["samples"] == 16


def test_a_publication_that_was_cut_off_is_made_up_for(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    filled(tmp_path, 0, 2)
    hint = lake / "samples/_iceberg/metadata/version-hint.text"
    number = int(hint.read_text())
    filled(tmp_path, 2, 3)
    # As if it had died after the metadata and before the pointer, half of it written.
    hint.write_text(f"{number}")
    torn = hint.parent / f"v{number + 1}.metadata.json"
    torn.write_text('{"format')
    filled(tmp_path, 3, 4)
    assert _compared(lake, "samples") == 12
    # Of what is there only that goes which nobody needs.
    mirror = IcebergMirror()
    mirror.publish(table_of(lake, "samples"))
    swept = mirror.sweep(table_of(lake, "samples"), 0.0)
    assert f"metadata/{torn.name}" in swept
    assert _compared(lake, "samples") == 12


def test_what_is_forgotten_is_in_no_manifest_and_a_switch_turned_off_leaves_nothing_stale(
    tmp_path: Path,
) -> None:
    lake = tmp_path / "lake"
    filled(tmp_path, 0, 2)
    write(tmp_path / "journal", [Row("robot/anna/pose", b'{"x": 1}', 3, encoding=JSON)])
    filled(tmp_path, 2, 3)
    manifests = {path for path in lake.rglob("_iceberg/**/*") if path.suffix == ".avro"}
    assert manifests
    open(lake).forget("robot/anna/**", tmp_path / "journal", tasks=Here())
    assert not found_in(lake / "samples", "robot/anna")
    assert not found_in(lake / "pose", "robot/anna")
    # Manifests have bounds of keys, and are compressed: none of before may be left.
    assert not [path for path in manifests if path.exists()]
    assert _compared(lake, "samples") == 9
    Pipeline(str(lake), str(tmp_path / "journal"), Here(), read_config(TABLES + "}"))
    assert not list(lake.rglob("_iceberg"))


def test_metadata_lies_on_s3_beside_the_tables(tmp_path: Path, bucket: tuple[str, Any]) -> None:
    lake, client = bucket
    write(tmp_path / "journal", [Row("robot/1/pose", b'{"x": 1}', 0, encoding=JSON)])
    pipeline = Pipeline(lake, str(tmp_path / "journal"), Here(), CONFIG)
    run(pipeline, Here(), stop=threading.Event(), once=True)
    where = {"s3.endpoint": client.meta.endpoint_url}
    iceberg = StaticTable.from_metadata(f"{lake}/pose/_iceberg", where)
    (row,) = iceberg.scan().to_arrow().to_pylist()
    assert (row["id"], row["x"]) == ("1", 1)
    assert SECRET not in iceberg.metadata.model_dump_json()

"""The lake on a store of objects: a real server of S3, work without Spark, and one question."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import zenlake.lake
from tests.lake.crashing import dying
from tests.lake.journals import Here, write
from tests.lake.rowsof import Row
from tests.volumes.bucket import SECRET, bucket
from zenlake.errors import LocalError, ZError
from zenlake.journal import Journal
from zenlake.lake import Pipeline, read_config
from zenlake.lake.maintain.status_file import read_status, write_status
from zenlake.lake.model.status import LakeStatus
from zenlake.lake.query.object_source import completed
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.location import LakeLocation, storage_options

__all__ = ["bucket"]

CONFIG = read_config('{tables: {battery: {format: "robot/${id}/battery"}}}')


def said(first: int, count: int) -> list[Row]:
    return [
        Row(
            f"robot/{n % 3}/battery",
            b"oops" if n % 10 == 9 else json.dumps({"percent": n}).encode(),
            n,
            encoding=5,
        )
        for n in range(first, first + count)
    ]


def rows(lake: str, name: str) -> list[dict[str, Any]]:
    table = Table.open(LakeLocation(lake), name)
    assert table is not None
    return list(table._table.to_pyarrow_table().to_pylist())


def is_table(name: str, uri: str) -> bool:
    return uri.rstrip("/").endswith(f"/{name}")


def proven(lake: str, count: int) -> None:
    good = [n for n in range(count) if n % 10 != 9]
    assert len(rows(lake, "samples")) == count
    assert len({(row["partition"], row["offset"]) for row in rows(lake, "samples")}) == count
    assert sorted(row["percent"] for row in rows(lake, "battery")) == good
    assert len(rows(lake, "quarantine")) == count - len(good)


@pytest.mark.timeout(240)
def test_a_pipeline_that_dies_at_any_commit_fills_the_store_exactly_once(
    tmp_path: Path, bucket: tuple[str, Any]
) -> None:
    lake, client = bucket
    journal = tmp_path / "journal"
    count = 0
    for table, after in (("samples", False), ("battery", True), ("quarantine", False)):
        write(journal, said(count, 20))
        count += 20
        pipeline = Pipeline(lake, str(journal), Here(), CONFIG)
        with dying(after=after, of=partial(is_table, table)):
            pipeline.step()
            pipeline.finish()
    pipeline = Pipeline(lake, str(journal), Here(), CONFIG)
    pipeline.step()
    pipeline.finish()
    proven(lake, count)

    # Merging and sweeping: the same rows in fewer objects.
    opened = zenlake.lake.open(lake)
    before = opened.tables()["samples"].totals()
    assert opened.compact(tasks=Here())["samples"] > 0
    assert opened.tables()["samples"].totals().files < before.files
    gone = opened.vacuum(-60.0)
    assert gone["samples"]
    prefix = lake.removeprefix("s3://zenlake/")
    listed = client.list_objects_v2(Bucket="zenlake", Prefix=f"{prefix}/samples/day")["Contents"]
    there = {one["Key"] for one in listed if one["Key"].endswith(".parquet")}
    assert len(there) == opened.tables()["samples"].totals().files
    proven(lake, count)

    status = opened.status(Journal.open(journal))
    assert (status.rows, status.lag) == (count, 0)
    assert status.bytes_total > status.bytes_live > 0

    # Nothing in the store tells the key to it.
    for one in client.list_objects_v2(Bucket="zenlake", Prefix=prefix)["Contents"]:
        body = client.get_object(Bucket="zenlake", Key=one["Key"])["Body"].read()
        assert SECRET.encode() not in body, one["Key"]


def test_of_two_that_commit_at_once_one_is_refused(bucket: tuple[str, Any]) -> None:
    lake = LakeLocation(bucket[0])
    schema = pa.schema([("n", pa.int64()), ("day", pa.date32())])
    mine = Table.create(lake, "t", schema, "day")
    other = Table.open(lake, "t")
    assert other is not None
    # Both have looked; neither looks again before it commits.
    mine._demand({"a": (None, 1)})
    mine.append([], {"a": (None, 1)})
    other.refresh = lambda: None  # type: ignore[method-assign]
    with pytest.raises(CommitConflict):
        other.append([], {"a": (None, 2)})
    mine.refresh()
    assert mine.committed("a") == 1


def test_a_status_is_read_where_it_was_written(bucket: tuple[str, Any]) -> None:
    assert read_status(bucket[0]) is None
    write_status(bucket[0], LakeStatus(rows=7))
    found = read_status(bucket[0])
    assert found is not None
    assert found.rows == 7


def test_what_goes_wrong_is_told_without_the_key(
    bucket: tuple[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told = io.StringIO()

    def tell(error: BaseException) -> None:
        story = traceback.TracebackException.from_exception(error, capture_locals=True)
        told.write("".join(story.format()))

    with pytest.raises((ZError, OSError)) as missing:
        Table.create(
            LakeLocation("s3://nobody-has-this/lake"), "t", pa.schema([("day", "date32")]), "day"
        )
    tell(missing.value)
    with pytest.raises(LocalError) as inside:
        LakeLocation(f"s3://AKIAEXAMPLE:{SECRET}@zenlake/lake")
    assert "AWS_SECRET_ACCESS_KEY" in str(inside.value)
    told.write(str(inside.value))
    with pytest.raises(LocalError) as journal:
        Journal.open(f"s3://AKIAEXAMPLE:{SECRET}@zenlake/journal")
    told.write(str(journal.value))
    place = LakeLocation(bucket[0])
    told.write(f"{place!r} {place.uri} {place.options} {place.__reduce__()}")
    assert "nobody-has-this" in told.getvalue()
    assert SECRET not in told.getvalue()
    assert SECRET not in caplog.text


def test_an_address_says_where_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    assert storage_options("/data/lake") is None
    assert storage_options("gs://bucket/lake") is None
    assert storage_options("s3://b/lake") == {"aws_conditional_put": "etag"}
    given = "s3://b/lake?endpoint_override=10.0.0.1:9000&scheme=http&region=eu-central-1"
    assert storage_options(given) == {
        "aws_conditional_put": "etag",
        "aws_endpoint_url": "http://10.0.0.1:9000",
        "aws_region": "eu-central-1",
        "aws_allow_http": "true",
    }
    place = LakeLocation(given) / "samples"
    assert place.uri.startswith("s3://b/lake/samples?endpoint_override")
    assert (place.bare, place.path("x")) == ("s3://b/lake/samples", "b/lake/samples/x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert storage_options("s3://b/lake") == {
        "aws_conditional_put": "etag",
        "aws_allow_http": "true",
    }


def test_rows_get_what_their_folder_says_and_nulls_for_newer_columns() -> None:
    whole = pa.schema([("n", pa.int64()), ("later", pa.string()), ("day", pa.date32())])
    rows = pa.table({"n": [1, 2]})
    (row, _) = completed(rows, whole, "day=2026-11-16/a.parquet").to_pylist()
    assert (row["n"], row["later"], row["day"].isoformat()) == (1, None, "2026-11-16")


@pytest.mark.nightly(day="lake/query/test_object_source.py, lake/query/test_spark.py")
@pytest.mark.spark
@pytest.mark.timeout(240)
def test_spark_answers_from_the_store_without_a_filesystem_for_it(
    tmp_path: Path, bucket: tuple[str, Any]
) -> None:
    lake = bucket[0]
    write(tmp_path / "journal", said(0, 30))
    pipeline = Pipeline(lake, str(tmp_path / "journal"), Here(), CONFIG)
    pipeline.step()
    pipeline.finish()
    query = (
        "SELECT s.key, count(*) AS n, sum(b.percent) AS percent FROM samples s "
        "LEFT JOIN battery b ON s.partition = b.partition AND s.offset = b.offset "
        "WHERE s.day IS NOT NULL GROUP BY s.key ORDER BY s.key"
    )
    asked = subprocess.run(
        [sys.executable, "-m", "zenlake", "sql", query, "--lake", lake, "--format", "json"],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert asked.returncode == 0, asked.stderr
    found = [json.loads(line) for line in asked.stdout.splitlines()]
    good = {k: [n for n in range(k, 30, 3) if n % 10 != 9] for k in range(3)}
    assert [(row["key"], row["n"], row["percent"]) for row in found] == [
        (f"robot/{k}/battery", 10, sum(good[k])) for k in range(3)
    ]
    assert SECRET not in asked.stdout + asked.stderr

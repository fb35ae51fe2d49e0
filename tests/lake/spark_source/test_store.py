"""Tables on a store of objects, read and written through a real server of S3."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.lake.journals import Here, write
from tests.lake.query.test_object_source import said
from tests.lake.spark_source.test_writers import put, things
from tests.volumes.bucket import SECRET, bucket
from zenlake.lake import Pipeline, read_config
from zenlake.lake.spark_source.source import LakeTableSource

__all__ = ["bucket"]

CONFIG = read_config('{tables: {battery: {format: "robot/${id}/battery"}}}')


def percents(made: Any, tasks: Any) -> list[float]:
    sent = pickle.dumps((made, list(tasks)))
    assert SECRET.encode() not in sent
    there, tasks = pickle.loads(sent)
    return sorted(
        value
        for task in tasks
        for batch in there.read(task)
        for value in batch.column("percent").to_pylist()
    )


@pytest.mark.timeout(240)
def test_a_table_in_a_bucket_is_read_and_followed(tmp_path: Path, bucket: tuple[str, Any]) -> None:
    lake, _ = bucket
    journal = tmp_path / "journal"
    write(journal, said(0, 20))
    pipeline = Pipeline(lake, str(journal), Here(), CONFIG)
    while pipeline.step().behind:
        pass
    address, mark, query = lake.partition("?")
    source = LakeTableSource({"path": f"{address}/battery{mark}{query}"})
    reader: Any = source.reader(source.schema())
    good = [n for n in range(20) if n % 10 != 9]
    assert percents(reader, reader.partitions()) == good
    assert reader.take_filters([EqualTo(("id",), "1")]) == []
    assert percents(reader, reader.partitions()) == [n for n in good if n % 3 == 1]
    stream: Any = LakeTableSource({"path": lake, "table": "battery"}).streamReader(source.schema())
    start = stream.initialOffset()
    middle = stream.latestOffset(start, ReadAllAvailable())
    assert percents(stream, stream.partitions(start, middle)) == good
    write(journal, said(20, 5))
    while pipeline.step().behind:
        pass
    end = stream.latestOffset(middle, ReadAllAvailable())
    assert percents(stream, stream.partitions(middle, end)) == [20, 21, 22, 23, 24]


@pytest.mark.timeout(240)
def test_a_table_in_a_bucket_is_written_once(tmp_path: Path, bucket: tuple[str, Any]) -> None:
    lake, _ = bucket
    address, mark, query = lake.partition("?")
    place = f"{address}/mine{mark}{query}"
    put(place, things(0, 10), batch=0, partitionBy="name")
    for _ in range(2):
        put(place, things(10, 20), batch=1)
    put(place, things(5, 25), mergeKeys="n")
    source = LakeTableSource({"path": place})
    reader: Any = source.reader(source.schema())
    found = [batch for task in reader.partitions() for batch in reader.read(task)]
    assert sorted(n for one in found for n in one.column("n").to_pylist()) == list(range(25))
    put(place, things(0, 3), overwrite=True)
    assert len(reader.partitions()) == 1

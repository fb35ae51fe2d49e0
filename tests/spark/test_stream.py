"""A stream as Spark drives it, without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from tests.spark.rows import MIDNIGHT, row, write_journal
from zenlake.journal import Journal
from zenlake.spark.offsets import DataLoss, lag
from zenlake.spark.options import STREAM, OptionError, SourceOptions
from zenlake.spark.stream import JournalStream

ALL = ReadAllAvailable()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with a hundred rows in two partitions."""
    append(tmp_path / "robots", 0, 100)
    return tmp_path / "robots"


def append(path: Path, first: int, end: int, **options: Any) -> None:
    rows = [row(f"k/{n % 9}", b"%04d" % n, MIDNIGHT + n) for n in range(first, end)]
    write_journal(path, rows, partitions=2, **options)


def stream(path: Path, **options: str) -> JournalStream:
    given = {"path": str(path), "startingOffsets": "earliest", **options}
    return JournalStream(SourceOptions(given, STREAM), ["value", "offset"])


def rows_between(reader: JournalStream, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    found = []
    for partition in reader.partitions(start, end):
        there, task = pickle.loads(pickle.dumps((reader, partition)))
        for batch in there.read(task):
            found += [int(value) for value in batch.column("value").to_pylist()]
    return sorted(found)


def test_what_is_between_two_offsets_never_changes(path: Path) -> None:
    reader = stream(path)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert rows_between(reader, start, end) == list(range(100))
    append(path, 100, 150)
    assert rows_between(reader, start, end) == list(range(100))
    after = reader.latestOffset(end, ALL)
    assert rows_between(reader, end, after) == list(range(100, 150))
    assert reader.latestOffset(after, ALL) == after
    assert reader.partitions(after, after) == []
    assert list(reader.read(InputPartition(None))) == []
    reader.commit(after)
    reader.stop()
    reader.stop()


def test_a_stream_begins_with_the_latest_unless_told(path: Path) -> None:
    reader = JournalStream(SourceOptions({"path": str(path)}, STREAM), ["value"])
    assert reader.initialOffset() == reader.reportLatestOffset()


@pytest.mark.parametrize("option", ["maxRecordsPerTrigger", "maxOffsetsPerTrigger"])
def test_a_limit_of_rows_makes_small_batches(path: Path, option: str) -> None:
    reader = stream(path, **{option: "30"})
    assert reader.getDefaultReadLimit() == ReadMaxRows(30)
    at = reader.initialOffset()
    sizes, found = [], []
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        rows = rows_between(reader, at, end)
        sizes.append(len(rows))
        found += rows
        at = end
    assert sizes == [30, 30, 30, 10]
    assert sorted(found) == list(range(100))
    assert reader.latestOffset(reader.initialOffset(), ALL) == at


def test_a_limit_of_bytes_makes_small_batches(path: Path) -> None:
    whole = sum(segment.bytes for n in range(2) for segment in Journal.open(path).segments(n))
    reader = stream(path, maxBytesPerTrigger=str(whole // 4))
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxBytes(whole // 4)
    start = reader.initialOffset()
    assert 20 <= len(rows_between(reader, start, reader.latestOffset(start, limit))) <= 25
    both = stream(path, maxBytesPerTrigger=str(whole // 4), maxRecordsPerTrigger="7")
    end = both.latestOffset(start, both.getDefaultReadLimit())
    assert len(rows_between(both, start, end)) == 7


def test_what_is_available_now_is_settled_at_the_start(path: Path) -> None:
    reader = stream(path, minOffsetsPerTrigger="1000")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    append(path, 100, 150)
    assert rows_between(reader, start, reader.latestOffset(start, ALL)) == list(range(100))


def test_small_batches_wait_for_more(path: Path) -> None:
    reader = stream(path, minOffsetsPerTrigger="120")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start
    impatient = stream(path, minOffsetsPerTrigger="120", maxTriggerDelay="0s")
    assert impatient.latestOffset(start, ALL) != start
    append(path, 100, 120)
    assert reader.latestOffset(start, ALL) != start
    with pytest.raises(OptionError, match="no batch can have as many"):
        stream(path, minOffsetsPerTrigger="10", maxRecordsPerTrigger="5")


def test_the_lag_is_what_progress_events_tell(path: Path) -> None:
    reader = stream(path, maxRecordsPerTrigger="30")
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert lag({"endOffset": end, "latestOffset": reader.reportLatestOffset()}) == 70
    assert lag({"endOffset": end, "latestOffset": None}) == 0


def test_rows_that_are_gone_stop_the_stream_or_are_passed_over(path: Path) -> None:
    start = stream(path).initialOffset()
    append(path, 100, 120, segment_bytes=1, retain_bytes=1)
    append(path, 120, 140)
    assert max(Journal.open(path).earliest()) > 0
    with pytest.raises(DataLoss, match="let go by its retention"):
        stream(path).latestOffset(start, ALL)
    brave = stream(path, failOnDataLoss="false")
    end = brave.latestOffset(start, ALL)
    assert rows_between(brave, start, end) == list(range(120, 140))


def test_a_checkpoint_of_another_journal_is_refused(path: Path, tmp_path: Path) -> None:
    end = stream(path).reportLatestOffset()
    append(tmp_path / "other", 0, 10)
    with pytest.raises(DataLoss, match="a new one was made in its place"):
        stream(tmp_path / "other").latestOffset(end, ALL)
    brave = stream(tmp_path / "other", failOnDataLoss="false")
    assert rows_between(brave, end, brave.latestOffset(end, ALL)) == list(range(10))

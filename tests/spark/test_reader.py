"""The readers as Spark calls them, without Spark."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThanOrEqual,
    In,
    InputPartition,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from tests.spark.rows import MIDNIGHT, SECOND, row, write_journal
from zenlake.journal import Journal
from zenlake.spark.offsets import DataLoss
from zenlake.spark.options import READ, OptionError, SourceOptions
from zenlake.spark.position import begin, end
from zenlake.spark.source import JournalReader, ZenohSource


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Three segments of ten rows in each of which one robot speaks, a row a second."""
    path = tmp_path / "robots"
    for robot in range(3):
        rows = [
            row(f"robot/{robot}", b"%d" % n, MIDNIGHT + n * SECOND)
            for n in range(robot * 10, robot * 10 + 10)
        ]
        write_journal(path, rows, segment_bytes=1)
    assert len(Journal.open(path).segments(0)) == 3
    return path


def source(path: Path, **options: str) -> ZenohSource:
    given = CaseInsensitiveDict({"path": str(path), **options})
    return pickle.loads(pickle.dumps(ZenohSource(given)))  # type: ignore[no-any-return]


def values(reader: DataSourceReader) -> list[int]:
    """What a task in another process would read."""
    found = []
    for partition in reader.partitions() or [InputPartition(None)]:
        there, task = pickle.loads(pickle.dumps((reader, partition)))
        for batch in there.read(task):
            found += [int(value) for value in batch.column("value").to_pylist()]
    return found


def read(path: Path, *filters: Filter, **options: str) -> list[int]:
    made = source(path, filterPushdown="true", **options)
    reader = made.reader(made.schema())
    assert isinstance(reader, JournalReader)
    left = list(reader.pushFilters(list(filters)))
    assert not left or not isinstance(left[0], EqualTo | In)
    return values(reader)


def test_all_rows_are_read(journal: Path) -> None:
    assert read(journal) == list(range(30))
    assert read(journal, minPartitions="3") == list(range(30))


def test_segments_without_a_wanted_row_are_no_part_of_the_plan(journal: Path) -> None:
    made = source(journal, filterPushdown="true")
    reader = made.reader(made.schema())
    assert isinstance(reader, JournalReader)
    assert list(reader.pushFilters([EqualTo(("key",), "robot/1")])) == []
    assert [(part.value.start, part.value.end) for part in reader.partitions()] == [(10, 20)]
    assert values(reader) == list(range(10, 20))


def test_filters_and_options_hold_at_once(journal: Path) -> None:
    when = datetime.fromtimestamp(MIDNIGHT // SECOND, UTC) + timedelta(seconds=15)
    late = GreaterThanOrEqual(("time",), when)
    assert read(journal, late) == list(range(15, 30))
    assert read(journal, late, In(("key",), ("robot/0", "robot/1"))) == list(range(15, 20))
    assert read(journal, late, subscribe="robot/1") == list(range(15, 20))
    assert read(journal, late, EqualTo(("key",), "robot/2"), subscribe="robot/1") == []
    assert read(journal, StringStartsWith(("key",), "robot/2")) == list(range(20, 30))
    assert read(journal, StringStartsWith(("key",), "x")) == []
    assert read(journal, EqualTo(("partition",), 1)) == []
    assert read(journal, EqualTo(("offset",), 7)) == [7]
    assert read(journal, EqualTo(("key",), "robot/1"), EqualTo(("key",), "robot/2")) == []


def test_spark_sees_no_filter_method_where_filters_are_switched_off(journal: Path) -> None:
    made = source(journal)
    reader = made.reader(made.schema())
    behind: Any = reader.pushFilters
    assert behind.__func__ is DataSourceReader.pushFilters
    kept = StringEndsWith(("key",), "x")
    assert list(reader.pushFilters([kept])) == [kept]


def test_reads_begin_and_end_where_they_are_told(journal: Path) -> None:
    assert read(journal, startingOffsets='{"0": 28}') == [28, 29]
    assert read(journal, startingOffsets="latest") == []
    assert read(journal, endingOffsets='{"0": 2}') == [0, 1]
    assert read(journal, endingOffsets='{"0": 99}') == list(range(30))
    assert read(journal, startingTimestamp="2026-01-01T00:00:28Z") == [28, 29]
    assert read(journal, endingTimestamp="2026-01-01T00:00:02Z") == [0, 1]
    assert read(journal, startingTimestamp="2027-01-01") == []


def test_offsets_that_cannot_be_are_refused(journal: Path) -> None:
    with pytest.raises(OptionError, match="has 0 to 0"):
        read(journal, startingOffsets='{"3": 1}')
    with pytest.raises(OptionError, match="endingOffsets=earliest"):
        read(journal, endingOffsets="earliest")
    with pytest.raises(DataLoss, match=r"31 is asked for, 0 to 30 are there.*failOnDataLoss=false"):
        read(journal, startingOffsets='{"0": 31}')
    assert read(journal, startingOffsets='{"0": 31}', failOnDataLoss="false") == []


class Forgetful:
    """A journal that has let go of its first rows."""

    name, partitions = "robots", 2

    def earliest(self) -> tuple[int, int]:
        return 5, 0

    def watermark(self) -> Any:
        return type("Watermark", (), {"offsets": (9, 4)})


def test_rows_that_are_gone_are_an_error_or_passed_over() -> None:
    def options(**more: str) -> SourceOptions:
        return SourceOptions({"startingOffsets": '{"0": 2, "1": 3}', **more}, READ)

    with pytest.raises(DataLoss, match="partition 0: 2 is asked for, 5 to 9 are there"):
        begin(options(), Forgetful(), "earliest")
    assert begin(options(failOnDataLoss="false"), Forgetful(), "earliest") == (5, 3)
    assert begin(SourceOptions({}, READ), Forgetful(), "earliest") == (5, 0)
    assert begin(SourceOptions({}, READ), Forgetful(), "latest") == (9, 4)
    assert end(SourceOptions({"endingOffsets": '{"1": 2}'}, READ), Forgetful()) == (9, 2)


def test_retention_that_overtakes_a_task_is_noticed(journal: Path) -> None:
    made = source(journal)
    reader = made.reader(made.schema())
    tasks = reader.partitions()
    write_journal(journal, [row("robot/0", b"30", MIDNIGHT)], segment_bytes=1, retain_bytes=1)
    assert Journal.open(journal).earliest() > (0,)
    with pytest.raises(DataLoss, match="failOnDataLoss=false"):
        list(reader.read(tasks[0]))
    made = source(journal, failOnDataLoss="false")
    patient = made.reader(made.schema())
    assert isinstance(patient, JournalReader)
    assert sum(batch.num_rows for batch in patient.read(tasks[0])) < 30


def test_what_to_read_has_to_be_said_once(journal: Path) -> None:
    def opened(**options: str) -> object:
        made = ZenohSource(CaseInsensitiveDict(options))
        return made.reader(StructType()).partitions()

    with pytest.raises(OptionError, match="say what to read"):
        opened()
    with pytest.raises(OptionError, match="both set"):
        opened(path=str(journal), journal="robots")
    with pytest.raises(OptionError, match="say where the network is"):
        opened(journal="robots")
    with pytest.raises(OptionError, match="get needs to know where"):
        opened(get="robot/**")
    with pytest.raises(OptionError, match="get and path are both set"):
        opened(get="robot/**", path=str(journal))
    with pytest.raises(OptionError, match="get='a//b'"):
        opened(get="a//b", **{"zenoh.connect": "tcp/localhost:1"})


def test_a_schema_is_known_before_it_is_known_to_be_a_stream(journal: Path) -> None:
    assert "key" in source(journal, maxBytesPerTrigger="1m").schema().fieldNames()
    with pytest.raises(OptionError, match="no option"):
        source(journal, nonsense="1").schema()

"""Flows of changes: their tables are what all events say, however these came."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pyspark.pipelines.flow import AutoCdcFlow
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql import functions as f

from zenlake.errors import LocalError
from zenlake.lake.pipelines.auto_cdc import ChangeWriter
from zenlake.lake.pipelines.changes import END_AT, START_AT, ChangeRules, changes_of
from zenlake.lake.pipelines.definitions import PipelineError
from zenlake.lake.spark_source.columns import table_columns
from zenlake.lake.table.data_files import read_table
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "site string, id int, at timestamp, operation string, name string, speed int, note string"
NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)


class Event(NamedTuple):
    """A change of a robot."""

    site: str
    id: int
    at: datetime
    operation: str
    name: str | None
    speed: int | None
    note: str | None


def flow(**told: Any) -> AutoCdcFlow:
    options: dict[str, Any] = {
        "name": "robots",
        "target": "robots",
        "source": "changes",
        "keys": [f.col("site"), f.col("id")],
        "sequence_by": f.col("at"),
        "apply_as_deletes": f.expr("operation = 'DELETE'"),
        "column_list": None,
        "except_column_list": [f.col("operation"), f.col("at")],
        "stored_as_scd_type": 1,
        "track_history_column_list": None,
        "track_history_except_column_list": None,
        "spark_conf": {},
        "source_code_location": SourceCodeLocation("robots.py", 7),
    }
    return AutoCdcFlow(**{**options, **told})


def frame(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    return spark.createDataFrame(list(events), COLUMNS)


class Target:
    """A table, and what applies batches to it."""

    def __init__(
        self, folder: Path, changes: ChangeRules, partitions: tuple[str, ...] = ()
    ) -> None:
        self.place = LakeLocation(folder / "lake")
        columns = table_columns(changes.table_schema)
        Table.create(self.place, "robots", columns, partitions, by_programs=True)
        self.changes = changes
        self.path = (self.place / "robots").uri
        self.checkpoint = folder / "checkpoint"
        self.writer = self.opened()

    def opened(self) -> ChangeWriter:
        """As a lake that was started again opens it."""
        return ChangeWriter(self.changes, self.path, "pipeline/1/0", self.checkpoint)

    def table(self) -> Table:
        table = Table.open(self.place, "robots")
        assert table is not None
        return table

    def rows(self) -> list[tuple[Any, ...]]:
        table = self.table()
        return sorted(
            (
                tuple({**row, **file.partition}[name] for name in table.schema.names)
                for file in table.files()
                for row in read_table(table.place, file.path, table.file_schema).to_pylist()
            ),
            key=repr,
        )


def random_events(chance: random.Random, keys: int) -> list[Event]:
    """Events of many robots: each a history of its own, with duplicates, and in any order."""
    events = []
    for number in range(keys):
        site, id = f"site {number % 7}", number
        minutes = chance.sample(range(20), chance.randint(1, 8))
        for minute in minutes:
            at = NOON + timedelta(minutes=minute)
            event = Event(
                site,
                id,
                at,
                chance.choice(["INSERT", "UPDATE", "UPDATE", "DELETE"]),
                chance.choice(["a", "b", None]),
                chance.choice([1, 2, None]),
                f"at {minute}",
            )
            events += [event] * chance.choice([1, 1, 1, 2])
            if event.operation != "DELETE" and chance.random() < 0.1:
                events.append(event._replace(operation="DELETE"))
    chance.shuffle(events)
    return events


def by_key(events: Iterable[Event]) -> list[list[Event]]:
    """The events of each key in order: one for each time, a delete before an update."""
    keys: dict[tuple[str, int], dict[datetime, Event]] = {}
    for event in events:
        times = keys.setdefault((event.site, event.id), {})
        if event.at not in times or event.operation == "DELETE":
            times[event.at] = event
    return [[times[at] for at in sorted(times)] for times in keys.values()]


def newest(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """What a table of type 1 has, told without Spark."""
    last = [history[-1] for history in by_key(events)]
    rows = [(e.site, e.id, e.name, e.speed, e.note) for e in last if e.operation != "DELETE"]
    return sorted(rows, key=repr)


def history(events: Iterable[Event], tracked: Iterable[str]) -> list[tuple[Any, ...]]:
    """What a table of type 2 has, told without Spark."""
    rows: list[tuple[Any, ...]] = []
    for ordered in by_key(events):
        begun: list[Any] | None = None
        for event in ordered:
            values = [getattr(event, name) for name in tracked]
            if begun is not None:
                if event.operation != "DELETE" and values == begun[0]:
                    begun[2] = event
                    continue
                e = begun[2]
                rows.append((e.site, e.id, e.name, e.speed, e.note, begun[1], event.at))
            begun = None if event.operation == "DELETE" else [values, event.at, event]
        if begun is not None:
            e = begun[2]
            rows.append((e.site, e.id, e.name, e.speed, e.note, begun[1], None))
    return sorted(rows, key=repr)


def cut(chance: random.Random, events: list[Event], batches: int) -> list[list[Event]]:
    places = sorted(chance.sample(range(1, len(events)), batches - 1))
    return [events[a:b] for a, b in zip([0, *places], [*places, len(events)], strict=True)]


@pytest.mark.nightly(day="lake/pipelines/test_auto_cdc.py")
def test_a_table_of_type_1_is_what_all_events_say_however_they_came(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(1)
    events = random_events(chance, 300)
    changes = changes_of(flow(), frame(spark, events[:1]))
    target = Target(tmp_path, changes)
    for number, batch in enumerate(cut(chance, events, 3)):
        target.writer.write(frame(spark, batch), number)
        assert target.table().committed("pipeline/1/0") == number
    assert target.rows() == newest(events)


def test_a_history_is_what_all_events_say_however_they_came_and_whatever_died(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(2)
    events = random_events(chance, 300)
    tracked = ["name", "speed"]
    told = flow(stored_as_scd_type="2", track_history_except_column_list=[f.col("note")])
    changes = changes_of(told, frame(spark, events[:1]))
    assert changes.table_schema.names[-2:] == [START_AT, END_AT]
    target = Target(tmp_path, changes, partitions=("site",))
    batches = cut(chance, events, 3)
    for number, batch in enumerate(batches):
        if number == 1:
            # It dies behind its first commit: a file that the second needs cannot be read.
            file = Path(target.path, target.table().files()[0].path)
            away = file.rename(file.with_suffix(".away"))
            with pytest.raises(Exception, match="is gone"):
                target.writer.write(frame(spark, batch), number)
            away.rename(file)
            assert target.rows() == history(batches[0], tracked)
            target.writer = target.opened()
        target.writer.write(frame(spark, batch), number)
        if number == 1:
            version = target.table().version
            target.writer.write(frame(spark, batch), number)
            assert target.table().version == version
    assert target.rows() == history(events, tracked)
    # Whoever loses the events that count cannot tell what a late one means.
    (target.checkpoint / "events").rename(target.checkpoint / "lost")
    with pytest.raises(LocalError, match="--full-refresh robots"):
        target.opened().write(frame(spark, batches[0]), 4)


def test_of_two_updates_at_the_same_time_the_same_one_counts_whichever_came_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = Event("a", 1, NOON, "UPDATE", "x", 1, None)
    two = one._replace(name="y")
    changes = changes_of(flow(), frame(spark, [one]))
    found = []
    for number, order in enumerate([(one, two), (two, one)]):
        target = Target(tmp_path / str(number), changes)
        for batch, event in enumerate(order):
            target.writer.write(frame(spark, [event]), batch)
        found.append(target.rows())
    assert found[0] == found[1]
    assert len(found[0]) == 1


def test_files_without_a_key_of_the_batch_stay_as_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    def event(site: str) -> Event:
        return Event(site, 1, NOON, "UPDATE", "x", 1, None)

    target = Target(tmp_path, changes_of(flow(), frame(spark, [event("a")])))
    for number, site in enumerate("abc"):
        target.writer.write(frame(spark, [event(site)]), number)
    before = {file.path for file in target.table().files()}
    assert len(before) == 3
    target.writer.write(frame(spark, [event("b")._replace(at=NOON + timedelta(1), name="new")]), 3)
    assert len(before & {file.path for file in target.table().files()}) == 2
    assert [row[2] for row in target.rows()] == ["x", "new", "x"]


def test_an_event_without_a_key_or_a_time_stops_the_flow_and_says_how_many(
    spark: SparkSession, tmp_path: Path
) -> None:
    good = Event("a", 1, NOON, "UPDATE", "x", 1, None)
    target = Target(tmp_path, changes_of(flow(), frame(spark, [good])))
    nothing: Any = None
    no_key = good._replace(id=nothing)
    no_time = good._replace(at=nothing)
    with pytest.raises(LocalError, match="1 of 2 events have no 'id'"):
        target.writer.write(frame(spark, [good, no_key]), 0)
    with pytest.raises(LocalError, match="1 of 2 events have no sequence"):
        target.writer.write(frame(spark, [good, no_time]), 0)
    assert target.rows() == []
    other = changes_of(flow(stored_as_scd_type=2), frame(spark, [good]))
    with pytest.raises(LocalError, match="or its SCD type, have changed"):
        ChangeWriter(other, target.path, "pipeline/1/0", target.checkpoint).write(
            frame(spark, [good]), 0
        )


def test_a_flow_that_cannot_be_says_where_and_what_to_write(
    spark: SparkSession,
) -> None:
    events = frame(spark, [])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"keys": [f.col("idd")]}, "no column 'idd'; did you mean 'id'"),
        ({"keys": [f.upper("site")]}, "keys: .* is no name of a column; compute it in a view"),
        ({"keys": []}, "name the columns"),
        ({"column_list": [f.col("name")]}, "the key 'site' is not among the columns"),
        ({"sequence_by": f.expr("nothing + 1")}, "nothing"),
        ({"sequence_by": f.expr("map('a', at)")}, "none comes before another"),
        ({"apply_as_deletes": f.col("operation")}, "apply_as_deletes is string"),
    ]
    for options, text in wrong:
        with pytest.raises(PipelineError, match=f"robots.py:7: .*{text}"):
            changes_of(flow(**{"except_column_list": None, **options}), events)
    named = events.withColumnRenamed("note", START_AT)
    with pytest.raises(PipelineError, match="need for themselves"):
        changes_of(flow(), named)

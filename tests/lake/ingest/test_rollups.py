from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.lake.crashing import dying
from tests.lake.journals import Here, rows_of, table_of, write
from tests.lake.maintain.test_forget import found_in
from tests.lake.rowsof import START, Row
from zenlake.lake import Pipeline, Retention, open, read_config
from zenlake.lake.ingest.rollups import added, numbers_of

CONFIG = read_config('{tables: {pose: {format: "robot/${id}/pose"}}, rollups: true}')
Said = dict[tuple[str, str, str, float], tuple[int, float, float, float]]


def say(folder: Path, told: list[tuple[str, float, object]]) -> None:
    rows = [
        Row(key, json.dumps({"x": x, "n": "a"}).encode(), at, encoding=5) for key, at, x in told
    ]
    write(folder / "journal", rows)


def opened(folder: Path) -> Pipeline:
    return Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), CONFIG)


def step(folder: Path) -> None:
    pipeline = opened(folder)
    pipeline.step()
    pipeline.finish()


def wanted(told: list[tuple[str, float, object]]) -> Said:
    """What charts must show, counted from what was said."""
    held: dict[tuple[str, str, str, float], list[float]] = defaultdict(list)
    for key, at, x in told:
        if isinstance(x, int | float):
            for width, seconds in (("minute", 60), ("hour", 3600)):
                held["x", key, width, (START + at) // seconds * seconds].append(x)
    return {one: (len(xs), sum(xs), min(xs), max(xs)) for one, xs in held.items()}


def shown(folder: Path) -> Said:
    rows = added(pa.Table.from_pylist(rows_of(folder / "lake", "rollups")))
    return {
        (row["field"], row["key"], row["width"], row["start"].timestamp()): (
            row["count"],
            row["sum"],
            row["min"],
            row["max"],
        )
        for row in rows.to_pylist()
    }


NOW: list[tuple[str, float, object]] = [
    (f"robot/{n % 2}/pose", n * 25.0, n if n % 5 else None) for n in range(40)
]
LATE: list[tuple[str, float, object]] = [
    ("robot/1/pose", 70.0, -4.5),
    ("robot/0/pose", -100_000.0, 2),
    ("robot/1/pose", 2.0, 7),
]


def test_minutes_and_hours_have_every_number_once_late_ones_too(tmp_path: Path) -> None:
    say(tmp_path, NOW)
    step(tmp_path)
    say(tmp_path, LATE)
    step(tmp_path)
    step(tmp_path)
    assert shown(tmp_path) == wanted(NOW + LATE)
    lake = tmp_path / "lake"
    parts = len(rows_of(lake, "rollups"))
    assert open(lake, config=CONFIG).compact(tasks=Here())["rollups"] == 1
    assert len(rows_of(lake, "rollups")) < parts
    assert shown(tmp_path) == wanted(NOW + LATE)
    # What was dropped from the tables because it is old is still counted.
    rules = (Retention("**", 0.0),)
    dropped = open(lake).retain(rules, tasks=Here(), now=START + 1e6)
    assert (dropped["pose"], dropped["rollups"]) == (43, 0)
    assert shown(tmp_path) == wanted(NOW + LATE)


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_question_sees_one_row_for_each_minute(tmp_path: Path, spark: SparkSession) -> None:
    say(tmp_path, NOW)
    step(tmp_path)
    say(tmp_path, LATE)
    step(tmp_path)
    lake = open(tmp_path / "lake", spark, CONFIG)
    query = "SELECT key, start, count, sum, max FROM rollups WHERE field = 'x' AND width = 'hour'"
    rows = lake.sql(f"{query} AND `table` = 'pose' AND max > 5").collect()
    hours = {one: said for one, said in wanted(NOW + LATE).items() if one[2] == "hour"}
    assert sorted((row.key, row["count"], row["sum"], row["max"]) for row in rows) == sorted(
        (key, said[0], said[1], said[3]) for (_, key, _, _), said in hours.items() if said[3] > 5
    )


@pytest.mark.parametrize("after", [False, True])
def test_a_death_in_a_fold_loses_and_doubles_nothing(tmp_path: Path, after: bool) -> None:
    say(tmp_path, NOW)
    with dying(after=after, of=lambda uri: uri.rstrip("/").endswith("rollups")):
        step(tmp_path)
    step(tmp_path)
    assert shown(tmp_path) == wanted(NOW)


def test_a_table_that_is_made_again_is_counted_again(tmp_path: Path) -> None:
    say(tmp_path, NOW)
    step(tmp_path)
    open(tmp_path / "lake", config=CONFIG).rebuild("pose", tasks=Here())
    say(tmp_path, LATE)
    step(tmp_path)
    assert shown(tmp_path) == wanted(NOW + LATE)
    assert table_of(tmp_path / "lake", "rollups").totals().rows == len(wanted(NOW + LATE))


def test_keys_that_are_forgotten_leave_the_minutes_too(tmp_path: Path) -> None:
    say(tmp_path, NOW)
    step(tmp_path)
    gone = open(tmp_path / "lake", config=CONFIG).forget(
        "robot/1/**", tmp_path / "journal", tasks=Here()
    )
    left = wanted([one for one in NOW if one[0] == "robot/0/pose"])
    assert gone["rollups"] == len(wanted(NOW)) - len(left)
    assert shown(tmp_path) == left
    assert found_in(tmp_path / "lake/rollups", "robot/1") == []
    step(tmp_path)
    assert shown(tmp_path) == left


def test_a_number_that_no_double_holds_is_rounded_and_stops_nothing(tmp_path: Path) -> None:
    # As times in nanoseconds are, which every header of ROS 2 has.
    say(tmp_path, [("robot/1/pose", 0.0, 1_794_905_134_246_187_449)])
    step(tmp_path)
    assert {one[1] for one in shown(tmp_path).values()} == {float(1_794_905_134_246_187_449)}


def test_numbers_inside_of_structs_are_fields_too() -> None:
    inner: Any = pa.struct([("x", pa.float64()), ("name", pa.string()), ("n", pa.int8())])
    schema = pa.schema([("key", pa.int64()), ("at", inner), ("ok", pa.bool_()), ("v", pa.int32())])
    assert numbers_of(schema, frozenset({"key"})) == {
        "at.x": ("at", "x"),
        "at.n": ("at", "n"),
        "v": ("v",),
    }

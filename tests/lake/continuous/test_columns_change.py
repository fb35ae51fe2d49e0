"""Views and alerts on a Spark that runs, while the columns of their tables change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lake.continuous.test_views_and_alerts import World, awake
from tests.lake.rowsof import Row
from tests.waiting import until
from zenlake.lake.maintain.definition_store import new_definition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TOTALS = "SELECT id, count(*) AS n, sum(volts) AS total FROM battery GROUP BY id"
WINDOWS = (
    "SELECT id, window(time, '10 seconds') AS w, sum(volts) AS total FROM battery "
    "GROUP BY id, window(time, '10 seconds')"
)


def said(robot: int, second: float, **fields: Any) -> Row:
    return Row(f"robot/{robot}/battery", json.dumps(fields).encode(), at=second, encoding=5)


def states(world: World) -> dict[str, str]:
    every = [*world.continuous.listed("view"), *world.continuous.listed("alert")]
    return {one["name"]: one["state"] for one in every}


def only(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in rows)


def test_views_and_alerts_go_on_when_columns_become_wider_or_more(
    tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "zenlake.lake")
    with awake(tmp_path, spark) as world:
        world.heard(said(1, 1, percent=80, volts=4, amps=1), said(2, 1, percent=80, volts=4))
        create = world.continuous.create
        low = "SELECT id, percent FROM battery WHERE percent < 20"
        few = "SELECT id, volts FROM battery WHERE volts < 2"
        for one in (
            new_definition("low", "alert", low, history=True),
            new_definition("few", "alert", few, history=True),
            new_definition("plain", "view", "SELECT key, time, volts FROM battery", history=True),
            new_definition("every", "view", "SELECT * EXCEPT (day) FROM battery", history=True),
            new_definition("totals", "view", TOTALS, history=True),
            new_definition("many", "alert", f"{TOTALS} HAVING sum(volts) > 12", history=True),
            new_definition(
                "some", "alert", f"{WINDOWS} HAVING sum(volts) > 3", late=5.0, history=True
            ),
            new_definition("windows", "view", WINDOWS, late=5.0, history=True),
        ):
            create(one)
        world.heard(said(1, 31, percent=80, volts=4), said(2, 31, percent=80, volts=4))
        world.until_rows("plain", 5)
        world.until_rows("windows", 2)  # those that are over at 26
        world.until_rows("some", 2)
        began = states(world)

        # A column that only `every` reads becomes double.
        world.heard(said(1, 32, percent=10, volts=4, amps=0.5))
        world.until_rows("low", 1)
        assert [row["amps"] for row in world.until_rows("every", 6)].count(0.5) == 1
        assert [line for line in caplog.messages if "is planned again" in line] == [
            "the view 'every' is planned again: the column 'amps' of 'battery' became double, it "
            "was bigint"
        ]

        # One that the others read too, and a new one.
        world.heard(said(1, 33, percent=80, volts=1.5, colour="red"), said(2, 33, volts=1))
        world.until_rows("few", 2)
        found = world.until_rows("plain", 8)
        assert only([r for r in found if r["volts"] is not None], "key", "volts") == [
            ("robot/1/battery", 1.5),
            *[("robot/1/battery", 4.0)] * 3,
            ("robot/2/battery", 1.0),
            *[("robot/2/battery", 4.0)] * 2,
        ]
        assert len(found) == 8
        every = world.until_rows("every", 8)
        assert (len(every), [row["colour"] for row in every].count("red")) == (8, 1)
        totals = [{"id": "1", "n": 5, "total": 13.5}, {"id": "2", "n": 3, "total": 9.0}]
        until(lambda: world.rows("totals") == totals, "sums are not those of all rows", 120.0)
        # What windows held that were open is not lost, and those that were over are there once.
        world.heard(said(1, 60, volts=2.5))
        windows = world.until_rows("windows", 4)
        assert only(windows, "id", "total") == [("1", 4.0), ("1", 9.5), ("2", 4.0), ("2", 5.0)]

        # What was raised before is not raised again.
        raised = [("1", "raised"), ("2", "raised")]
        until(lambda: only(world.rows("many"), "key", "state") == raised[:1], seconds=120.0)
        assert only(world.rows("some"), "key", "state") == raised

        assert world.continuous.stopped() == {}
        assert states(world) == dict.fromkeys(began, "running")


@pytest.mark.nightly(day="lake/continuous/test_columns_change.py")
def test_rows_that_are_remembered_survive_wider_columns_and_each_result_comes_once(
    tmp_path: Path, spark: SparkSession
) -> None:
    once = "AND s.time BETWEEN b.time AND b.time + INTERVAL 2 SECONDS"
    with awake(tmp_path, spark) as world:
        world.heard(said(1, 11, volts=4), said(2, 11, volts=4))
        for name, sql in (
            (
                "pairs",
                f"SELECT b.id, b.volts FROM battery b JOIN samples s ON s.key = b.key {once}",
            ),
            # Its rows come when time has passed them, without a partner.
            (
                "alone",
                "SELECT b.id, b.volts, s.key AS other FROM battery b "
                f"LEFT JOIN samples s ON s.key = concat('no/', b.id) {once}",
            ),
            ("different", "SELECT DISTINCT id, time, volts FROM battery"),
            (
                "bare",
                "SELECT id, sum(volts) AS total FROM battery "
                "GROUP BY id, window(time, '10 seconds')",
            ),
        ):
            world.continuous.create(new_definition(name, "view", sql, late=5.0, history=True))
        world.heard(said(1, 31, volts=4), said(2, 31, volts=3))
        assert len(world.until_rows("pairs", 5)) == 5
        for name, count in (("alone", 3), ("different", 3), ("bare", 3)):  # those before 26
            assert len(world.until_rows(name, count)) == count

        world.heard(said(1, 32, volts=0.5), said(2, 32, volts=1))
        found = world.until_rows("pairs", 9)  # that of 31 has a partner at 32, too
        assert len(found) == 9
        pairs = [row for row in found if row["volts"] is not None]
        assert only(pairs, "id", "volts") == [
            *[("1", 0.5)], *[("1", 4.0)] * 3, ("2", 1.0), *[("2", 3.0)] * 2, ("2", 4.0),
        ]  # fmt: skip
        world.end()
        world.start()
        world.heard(said(1, 50, volts=2.5))
        for name, count in (("pairs", 10), ("alone", 7), ("different", 7), ("bare", 5)):
            found = world.until_rows(name, count)
            assert len(found) == count
            if name in ("alone", "different"):
                values = [("1", 0.5), ("1", 4.0), ("1", 4.0), ("2", 1.0), ("2", 3.0), ("2", 4.0)]
                assert only([row for row in found if row["volts"] is not None], "id", "volts") == (
                    values
                )
        totals = [row for row in world.rows("bare") if row["total"] is not None]
        assert only(totals, "id", "total") == [("1", 4.0), ("1", 4.5), ("2", 4.0), ("2", 4.0)]
        assert world.continuous.stopped() == {}
        assert set(states(world).values()) == {"running"}


def test_columns_that_changed_while_nothing_ran_are_found_at_the_start(
    tmp_path: Path, spark: SparkSession
) -> None:
    with awake(tmp_path, spark) as world:
        world.heard(said(1, 1, volts=4))
        plain = "SELECT key, time, volts FROM battery WHERE volts IS NOT NULL"
        pairs = (
            "SELECT b.id, b.volts FROM battery b JOIN samples s "
            "ON s.key = b.key AND s.time = b.time WHERE b.volts IS NOT NULL"
        )
        for name, sql in (("plain", plain), ("totals", TOTALS), ("pairs", pairs)):
            world.continuous.create(new_definition(name, "view", sql, history=True))
        world.until_rows("plain", 1)
        world.until_rows("totals", 1)
        world.until_rows("pairs", 1)
        world.end()
        world.heard(said(1, 2, volts=0.5))
        world.start()
        assert only(world.until_rows("plain", 2), "volts") == [(0.5,), (4.0,)]
        until(lambda: only(world.rows("totals"), "n", "total") == [(3, 4.5)], seconds=120.0)
        world.heard(said(1, 3, volts=0.25))
        assert len(world.until_rows("plain", 3)) == 3
        assert only(world.until_rows("pairs", 3), "volts") == [(0.25,), (0.5,), (4.0,)]
        until(lambda: only(world.rows("totals"), "n", "total") == [(4, 4.75)], seconds=120.0)
        assert world.continuous.stopped() == {}


def test_one_that_fails_is_tried_again_and_goes_on_when_it_can(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zenlake.lake.continuous.result_table import ResultTable

    failing: list[str] = []
    append = ResultTable.append

    def full(self: ResultTable, rows: Any, moved: Any) -> None:
        if self.table.name == "plain" and len(failing) < 2:
            failing.append("once more")
            raise OSError(28, "No space left on device", "/lake")
        append(self, rows, moved)

    with awake(tmp_path, spark) as world:
        monkeypatch.setattr(ResultTable, "append", full)
        plain = "SELECT key, time, percent FROM battery"
        world.continuous.create(new_definition("plain", "view", plain, history=True))
        until(lambda: bool(world.continuous.stopped()), "it did not stop", 120.0)
        (why,) = world.continuous.stopped().values()
        assert why == "the view 'plain' has stopped: the disk is full: /lake; tried again in 2 s"
        assert (states(world), len(world.until_rows("plain", 1))) == ({"plain": "stopped"}, 1)
        until(lambda: not world.continuous.stopped(), "it is stopped for good", 120.0)
        assert states(world) == {"plain": "running"}
        assert [line for line in world.throttle if "tried again in 4 s" in line]

"""What a stranger is shown: a fleet, its past asked for in three ways, and its ghosts beside it."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from deltalake import DeltaTable

from tests.api.sessions import where
from tests.cli.programs import command, run, run_alone
from tests.lake.service.test_bus import opened
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.timeout(240)]

#: The predicate of the question, and the same for who has no `_filter`.
SPARK = "CAST(get_json_object(CAST(value AS string), '$.battery') AS double) < 20"
DUCKDB = "CAST(json_extract(decode(value), '$.battery') AS double) < 20"


def instant(at: datetime.datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def test_the_past_of_a_fleet_is_asked_for_and_driven_again(
    tmp_path: Path, spark: SparkSession
) -> None:
    with (
        opened(tmp_path, "robot/**", "replay/**", spark=spark) as world,
        command("demo", "fleet", "--robots", "2", "--rate", "20", "--camera-bytes", "300",
                "-m", "client", "-e", where(world.node)),
    ):  # fmt: skip
        durable = world.recorder.watermark
        until(lambda: sum(durable().offsets) > 50)
        began = now()
        levels = [("robot/a/state", 15), ("robot/b/state", 80), ("robot/a/state", 12)]
        moments = []
        for key, level in levels:
            before = durable()
            world.client.put(key, json.dumps({"battery": level}), encoding="application/json")
            until(lambda before=before: world.rows(f"robot/**?_filter=battery={level}") != [])  # type: ignore[misc]  # noqa: B023
            moments.append(now())
            until(lambda: now() > moments[-1] + datetime.timedelta(milliseconds=5))
        low = [(key, level) for key, level in levels if level < 20]

        # From Eclipse's client, which knows nothing of a lake.
        found = world.rows("robot/**?_time=[now(-60s)..];_filter=battery<20")
        assert [(key, value["battery"]) for key, value in found] == low
        # In SQL at the terminal, and by DuckDB from the files.
        ends = durable().offsets  # the fleet goes on, as fast as a slow machine can follow
        pipeline = world.pipeline
        while any(
            (pipeline.samples.committed(pipeline.app(partition)) or 0) < end
            for partition, end in enumerate(ends)
        ):
            pipeline.step()
        lake = str(tmp_path / "lake")
        code, lines = run_alone(
            "sql", f"SELECT key, value FROM samples WHERE {SPARK} ORDER BY time",
            "--lake", lake, "--format", "json",
        )  # fmt: skip
        assert code == 0, lines
        rows = [json.loads(line) for line in lines]
        assert [(row["key"], json.loads(row["value"])["battery"]) for row in rows] == low
        samples = DeltaTable(f"{lake}/samples").to_pyarrow_dataset()
        duck = duckdb.connect().register("samples", samples)
        answer = duck.execute(
            "SELECT key, value FROM (SELECT * FROM samples WHERE key LIKE '%/state')"
            f" WHERE {DUCKDB} ORDER BY time"
        ).fetchall()
        assert [(key, json.loads(value)["battery"]) for key, value in answer] == low

        # The same key before and after it changed.
        def at(moment: datetime.datetime) -> Any:
            return world.rows(f"robot/a/state?_asof={instant(moment)}")

        assert at(moments[1]) == [("robot/a/state", {"battery": 15})]
        assert at(moments[2]) == [("robot/a/state", {"battery": 12})]
        assert at(began) == []

        # Ghosts, at full speed, beside the fleet that drives on.
        ended = now()
        window = ["--from", instant(began), "--to", instant(ended), "--lake", lake]
        # Each robot is heard in order: what it said before the end has come when more has.
        later = f"robot/*/pose?_filter=time()>'{instant(ended)}'"
        until(lambda: len(world.rows(later)) == 2, "a robot is gone for good")
        ghosts = [0]

        def heard(_: Any) -> None:
            ghosts[0] += 1

        with world.client.declare_subscriber("replay/robot/**", heard):
            code, lines = run(
                "replay", "robot/**", *window, "--prefix", "replay", "--speed", "max", "--json",
                "-m", "client", "-e", where(world.node),
            )  # fmt: skip
            assert code == 0, lines
            played = json.loads(lines[-1])["samples"]
            assert played > len(levels)
            until(lambda: ghosts[0] == played)
        assert world.ask("@journal/j/settled")[0].ok is not None
        code, lines = run_alone("diff", "robot/**", "replay/robot/**", *window)
        assert code == 0, lines
        assert f"{played} same, 0 missing, 0 extra, 0 different" in lines[-1]

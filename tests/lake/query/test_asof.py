from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.lake.journals import Here, rows_of, table_of, write
from tests.lake.rowsof import Row
from tests.waiting import until
from zenlake.errors import ConfigError, LocalError
from zenlake.lake import LakeConfig, Pipeline, open, read_config
from zenlake.lake.query.planner import instant_of
from zenlake.lake.query.referenced_tables import Unanswerable
from zenlake.lake.table.delta import LOG, VersionTooOld

JSON = 5


def moment(lake: Path, name: str) -> datetime:
    """A time between the newest commit of a table and the next."""
    log = sorted((lake / name / LOG).glob("*.json"))[-1].read_text().splitlines()
    told = next(json.loads(line)["commitInfo"] for line in log if "commitInfo" in line)
    until(lambda: time.time() * 1000 > told["timestamp"] + 2)  # of the next commit
    return datetime.fromtimestamp(told["timestamp"] / 1000, UTC) + timedelta(milliseconds=1)


def test_tables_are_read_as_they_were_at_a_time(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    moments = []
    for n in range(3):
        write(journal, [Row(f"robot/{n}", b"x", n)])
        pipeline = Pipeline(str(lake), str(journal), Here(), LakeConfig(history=86400.0))
        pipeline.step()
        moments.append(moment(lake, "samples"))
    opened = open(lake)
    opened.compact(tasks=Here())
    opened.vacuum(age=86400.0)
    for n, when in enumerate(moments):
        found, damaged = opened.catalog.tables_at(instant_of(when))
        assert not damaged
        assert found["samples"].rows == n + 1
        # Its files are there, though compaction has replaced them since.
        path = found["samples"].paths[0]
        assert (lake / "samples" / path).exists()
    assert opened.catalog.tables_at(datetime(2020, 1, 1, tzinfo=UTC))[0] == {}
    with pytest.raises(Unanswerable, match="no table 'samples' at 2020-01-01T00:00:00"):
        opened.ask("SELECT * FROM samples", "2020-01-01T00:00")
    with pytest.raises(LocalError, match="is no time"):
        instant_of("yesterday")
    with pytest.raises(LocalError, match="in the future"):
        instant_of("2999-01-01")


def test_a_time_that_the_log_forgot_is_refused_with_the_first_it_knows(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [Row("robot/1", b"x", 1)])
    Pipeline(str(lake), str(journal), Here()).step()
    DeltaTable(str(lake / "samples")).create_checkpoint()
    (lake / "samples" / LOG / f"{0:020}.json").unlink()
    when = datetime(2020, 1, 1, tzinfo=UTC)
    with pytest.raises(VersionTooOld, match=r"goes back to 20\d\d-.*history: '7d'"):
        table_of(lake, "samples").at_time(when)


def test_history_is_told_to_every_table_and_kept_from_vacuum(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [Row("robot/1", b"x", 1)])
    config = read_config('{history: "7d", tables: {robot: {format: "robot/${id}"}}}')
    assert config.kept == 7 * 86400
    for told, seconds in ((config, 604800), (LakeConfig(), 3600)):
        Pipeline(str(lake), str(journal), Here(), told).step()
        for name in ("samples", "latest", "gaps", "quarantine", "robot"):
            if told is config or name != "robot":
                properties = DeltaTable(str(lake / name)).metadata().configuration
                assert properties["delta.logRetentionDuration"] == f"interval {seconds} seconds"
        # What a reader of the log makes of it.
        DeltaTable(str(lake / "samples")).cleanup_metadata()


TABLE = '{tables: {robot: {format: "robot/${id}", rename: {spd: "speed"}, drop: ["debug"]}}}'


def test_columns_are_renamed_and_dropped_and_a_rebuild_does_it_to_history(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    payload = b'{"spd": 1.5, "debug": "x", "at": {"x": 1}}'
    write(journal, [Row("robot/1", payload, 1, encoding=JSON)])
    before = read_config('{tables: {robot: {format: "robot/${id}"}}}')
    Pipeline(str(lake), str(journal), Here(), before).step()
    now = read_config(TABLE)
    write(journal, [Row("robot/2", payload, 2, encoding=JSON)])
    pipeline = Pipeline(str(lake), str(journal), Here(), now)
    assert [problem.partition(" is renamed")[0] for problem in pipeline.problems] == [
        "robot.spd",
        "robot.debug",
    ]
    pipeline.step()
    rows = {row["id"]: row for row in rows_of(lake, "robot")}
    assert (rows["2"]["speed"], rows["2"]["spd"], rows["2"]["debug"]) == (1.5, None, None)
    open(lake, config=now).rebuild("robot", tasks=Here())
    rows = {row["id"]: row for row in rows_of(lake, "robot")}
    assert [rows[n]["speed"] for n in "12"] == [1.5, 1.5]
    assert not {"spd", "debug"} & set(rows["1"])
    assert rows["1"]["at_x"] == 1
    assert Pipeline(str(lake), str(journal), Here(), now).problems == []


def test_two_fields_that_come_to_one_column_go_to_quarantine(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [Row("robot/1", b'{"spd": 1, "speed": 2}', 1, encoding=JSON)])
    Pipeline(str(lake), str(journal), Here(), read_config(TABLE)).step()
    (bad,) = rows_of(lake, "quarantine")
    assert bad["reason"] == "name"


@pytest.mark.parametrize(
    "wrong",
    [
        'rename: {a: "time"}',
        'rename: {a: "id"}',
        'rename: {a: "b c"}',
        'rename: {a: "x", b: "x"}',
        'rename: {a: "b"}, columns: {a: "double"}',
        'drop: "a"',
        'drop: ["a"], columns: {a: "double"}',
    ],
)
def test_names_that_cannot_be_are_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match="tables/robot"):
        read_config(f'{{tables: {{robot: {{format: "robot/${{id}}", {wrong}}}}}}}')

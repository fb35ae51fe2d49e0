"""Views and alerts on a Spark that runs: what they find, publish and keep, whoever dies when."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import zenoh
from deltalake import DeltaTable

import zenlake
from tests.api.sessions import connected, listening, where
from tests.lake.journals import Here, rows_of, write
from tests.lake.mortal import CONFIG as LAKE
from tests.lake.mortal import Phase, lives, watching
from tests.lake.opened_tables import note_opened_tables
from tests.lake.rowsof import START, Row
from tests.waiting import SECONDS, until
from zenlake.errors import LocalError
from zenlake.lake import Pipeline, read_config
from zenlake.lake.continuous.definitions import create_definition
from zenlake.lake.continuous.manager import ContinuousQueries
from zenlake.lake.continuous.requests import ContinuousRequests
from zenlake.lake.continuous.stall import PATIENCE
from zenlake.lake.maintain.definition_store import new_definition
from zenlake.lake.query.executor import WAITING, SqlExecutor
from zenlake.lake.query.lake import Lake
from zenlake.lake.service.service import Service
from zenlake.lake_client import ask
from zenlake.spark.jvm import java_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

CONFIG = read_config(LAKE)
MEANS = (
    "SELECT id, window(time, '10 seconds') AS w, avg(percent) AS mean, count(*) AS n FROM battery "
    "GROUP BY id, window(time, '10 seconds')"
)
LOW = "SELECT id, percent FROM battery WHERE percent < 20"


def sample(robot: int, second: float, percent: float) -> Row:
    told = json.dumps({"percent": percent}).encode()
    return Row(f"robot/{robot}/battery", told, at=second, encoding=5)


class World:
    """A lake that runs without its loop: a test says when the tables go on."""

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        session: Any = None,
        patience: float = PATIENCE,
    ) -> None:
        self.folder = folder
        self.patience = patience
        self.lake = folder / "lake"
        self.throttle: list[str] = []
        write(folder / "journal", [sample(1, 0, 90.0)])
        self.pipeline = Pipeline(str(self.lake), str(folder / "journal"), Here(), CONFIG)
        self.pipeline.step()
        self._spark = spark
        self.session = session
        self.start()

    def start(self, crowd: Callable[[SqlExecutor], None] = lambda executor: None) -> None:
        """`crowd`: asks before any view is started."""
        lake = Lake(self.pipeline.place, self._spark, CONFIG)
        self.service = Service(lake, [self.pipeline.journal], self.session)
        crowd(self.service.executor)
        self.continuous = ContinuousQueries(self.service, self.throttle.append, self.patience)
        self.service.add(self.continuous)
        self.service.add(ContinuousRequests(self.service, self.continuous))

    def end(self) -> None:
        """As the death of the process: nothing is left in memory, of Python or of Java."""
        self.service.close()
        packages = java_packages(self._spark.sparkContext)
        state = getattr(packages, "org.apache.spark.sql.execution.streaming.state.StateStore$")
        getattr(state, "MODULE$").stop()

    def heard(self, *rows: Row) -> None:
        write(self.folder / "journal", list(rows))
        self.pipeline.step()

    def rows(self, name: str) -> list[dict[str, Any]]:
        found = rows_of(self.lake, name)
        for row in found:
            del row["day"]
        return sorted(found, key=str)

    def until_rows(self, name: str, count: int) -> list[dict[str, Any]]:
        until(lambda: len(self.rows(name)) >= count, f"{name} has no {count} rows", 120.0)
        return self.rows(name)


@contextmanager
def awake(
    folder: Path, spark: SparkSession, session: Any = None, patience: float = PATIENCE
) -> Iterator[World]:
    world = World(folder, spark, session, patience)
    try:
        yield world
    finally:
        world.service.close()


def second(value: Any) -> float:
    return float(value.timestamp()) - START


def tokens(client: zenoh.Session) -> list[str]:
    replies = client.liveliness().get("*/*", timeout=SECONDS)
    return sorted(str(reply.ok.key_expr) for reply in replies if reply.ok is not None)


def test_what_views_and_alerts_find_is_published_kept_and_asked_for(
    tmp_path: Path, spark: SparkSession
) -> None:
    with listening(mode='"router"') as node, connected(node, mode='"client"') as bus:
        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where(node)]))
        with (
            zenoh.open(config) as client,
            client.declare_subscriber("view/**") as views,
            client.declare_subscriber("alert/**") as alerts,
            awake(tmp_path, spark, bus) as world,
        ):
            create = world.continuous.create
            create(new_definition("means", "view", MEANS, late=5.0, history=True))
            joined = (
                "SELECT b.key, b.percent, l.encoding FROM battery b JOIN latest l ON l.key = b.key "
                "WHERE b.percent < 5"
            )
            create(new_definition("empty", "view", joined))
            # Two streams, and a row of one waits for its partner in the other.
            pairs = (
                "SELECT b.key, b.percent, s.encoding FROM battery b JOIN samples s ON "
                "s.key = b.key AND s.time BETWEEN b.time AND b.time + INTERVAL 0 SECONDS "
                "WHERE b.percent < 5"
            )
            create(new_definition("pairs", "view", pairs))
            # Through the socket that the command uses, and refused there.
            request = {"do": "continuous", "as": "operator", "action": "create"}
            request |= {"kind": "alert", "name": "low"}
            asking = ask(world.lake, {**request, "sql": LOW, "for": "10s"})
            assert asking is not None
            with asking:
                assert asking.fact()["state"] == "running"
            for sql, named in (
                ("SELECT reflect('java.lang.Runtime', 'x') AS x FROM samples", "reflect"),
                ("SELECT * FROM csv.`/etc/passwd`", "table"),
                ("SELECT key, count(*) FROM samples GROUP BY key", r"needs a name"),
                ("SELECT key FROM latest", "nothing that grows"),
                ("SELECT id, mean FROM means", "no table of samples"),
                ("SELECT nothing FROM samples", "nothing"),
            ):
                with pytest.raises(LocalError, match=named):
                    create(new_definition("no", "view", sql))
            with pytest.raises(LocalError, match="already"):
                create(new_definition("means", "view", MEANS))
            assert tokens(client) == ["alert/low", "view/empty", "view/means", "view/pairs"]

            # Robot 1 is low from 22 to 36, robot 2 only for a moment; a sample comes late.
            for n in range(1, 60, 20):
                world.heard(
                    *(
                        sample(r, s, 10.0 if (22 <= s < 36 if r == 1 else s == 30) else 90.0)
                        for s in range(n, n + 20)
                        for r in (1, 2)
                    )
                )
                world.heard(sample(1, n + 17, 50.0))
            # Two windows are over; what comes for them now comes too late.
            world.until_rows("means", 4)
            world.heard(sample(3, 1, 50.0))
            world.heard(sample(2, 61, 1.5))
            found = world.until_rows("means", 10)
            until(
                lambda: [row["key"] for row in world.rows("low")].count("robot/1/battery") == 2,
                seconds=120.0,
            )
            for name in ("empty", "pairs"):
                assert world.until_rows(name, 1) == [
                    {"key": "robot/2/battery", "percent": 1.5, "encoding": "application/json"}
                ]

            # What the stream found is what SQL finds in the tables.
            asked = world.service.executor.ask(MEANS, "test").to_pylist()
            whole = {
                (row["id"], row["w"]["start"]): (row["mean"], row["n"])
                for row in asked
                if second(row["w"]["end"]) <= 50 and row["id"] != "3"
            }
            assert len(whole) == 10
            assert {(r["id"], r["w_start"]): (r["mean"], r["n"]) for r in found} == whole
            means = DeltaTable(str(world.lake / "means")).to_pyarrow_table()
            assert means.num_rows == 10
            sql = "SELECT count(*), sum(n) FROM means"
            assert duckdb.execute(sql).fetchall() == [(10, sum(n for _, n in whole.values()))]
            told = world.service.executor.ask("SELECT sum(n) AS n FROM means", "test").to_pylist()
            assert told == [{"n": sum(n for _, n in whole.values())}]

            changes = [row for row in world.rows("low") if row["key"] == "robot/1/battery"]
            assert [
                (second(r["time"]), r["key"], r["state"], second(r["since"])) for r in changes
            ] == [
                (32.0, "robot/1/battery", "raised", 22.0),
                (36.0, "robot/1/battery", "cleared", 22.0),
            ]
            heard = [json.loads(alerts.recv().payload.to_bytes()) for _ in range(2)]
            assert [(one["state"], one["row"]["percent"]) for one in heard] == [
                ("raised", 10.0),
                ("cleared", 90.0),
            ]
            newest = {}
            while (got := views.try_recv()) is not None:
                newest[str(got.key_expr)] = json.loads(got.payload.to_bytes())
            low = "robot/2/battery"
            subjects = {f"view/empty/{low}", f"view/pairs/{low}"}
            assert set(newest) == {"view/means/1", "view/means/2"} | subjects
            assert second(datetime.fromisoformat(newest["view/means/1"]["w_end"])) == 50.0
            # Robot 2 has been low since 61, and time goes on though nothing else comes.
            until(lambda: len(world.rows("low")) == 3, "silence raised nothing", 120.0)
            last = max(world.rows("low"), key=lambda row: row["time"])
            assert (second(last["time"]), last["state"]) == (71.0, "raised")
            (reply,) = client.get("@lake/alerts/*", timeout=SECONDS)
            assert reply.ok is not None
            facts = json.loads(reply.ok.payload.to_bytes())
            assert (facts["state"], facts["raised"]) == ("running", 1)

            # History tells the same.
            moments = {"from": f"{_iso(0)}", "to": f"{_iso(75)}"}
            tried = ask(world.lake, {**request, "action": "test", **moments})
            assert tried is not None
            with tried:
                told = tried.fact()["changes"]
            live = sorted((r["time"].isoformat(), r["state"], r["key"]) for r in world.rows("low"))
            assert [(one["time"], one["state"], one["key"]) for one in told] == live
            (reply,) = client.get(f"@lake/alerts/low?_time=[{_iso(0)}..{_iso(75)}]", timeout=60)
            assert reply.ok is not None
            assert json.loads(reply.ok.payload.to_bytes()) == {"name": "low", "changes": told}
            (reply,) = client.get("@lake/alerts/low?_time=[..now()]", timeout=60)
            assert reply.err is not None
            assert "has no start" in reply.err.payload.to_string()

            # One that fails says so, and the others go on.
            bad = "SELECT key, CAST(percent / (95 - percent) AS tinyint) AS x FROM battery"
            create(new_definition("bad", "view", bad))
            world.heard(sample(3, 80, 95.0))
            until(lambda: bool(world.throttle), "nobody complained", 120.0)
            (problem,) = world.continuous.problems()
            assert problem.startswith("the view 'bad' has stopped: ")
            assert "zero" in problem
            states = {one["name"]: one["state"] for one in world.continuous.listed("view")}
            running = dict.fromkeys(("empty", "means", "pairs"), "running")
            assert states == {"bad": "stopped"} | running

            world.continuous.drop("means", "view")
            assert not (world.lake / "means").exists()
            with pytest.raises(LocalError, match="no view 'means'"):
                world.continuous.drop("means", "view")
            assert tokens(client) == ["alert/low", "view/empty", "view/pairs"]


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + at))


PHASES = {
    "before a view's rows are in its table": Phase("call", "ResultTable.append", "plain"),
    "after that, before they are published": Phase("return", "ResultTable.append", "plain"),
    "when one row of them is published": Phase("return", "ResultPublisher.put", "plain"),
    "before the newest values are replaced": Phase("call", "ResultTable.replace", "counts"),
    "after that": Phase("return", "ResultTable.replace", "counts"),
    "between an alert's memory and its table": Phase("call", "ResultTable.append", "low"),
    "after both, before it is published": Phase("return", "ResultTable.append", "low"),
    "when one change is published": Phase("return", "ResultPublisher.put", "low"),
    "before Spark notes that the batch is done": Phase("return", "RunningQuery._batch", "low"),
}


# One kill of each mechanism by day: the table of rows, that of newest values, the bus.
BY_DAY = [
    "after that, before they are published",
    "before the newest values are replaced",
    "when one change is published",
]


@pytest.mark.parametrize(
    "phases",
    [
        pytest.param(BY_DAY, id="by day"),
        pytest.param(
            list(PHASES),
            id="all",
            marks=pytest.mark.nightly(day="lake/continuous/test_views_and_alerts.py"),
        ),
    ],
)
def test_kill_9_in_any_phase_leaves_every_result_in_its_table_once_and_on_the_bus(
    phases: list[str], tmp_path: Path, spark: SparkSession
) -> None:
    counts = "SELECT id, count(*) AS n, sum(percent) AS total FROM battery GROUP BY id"
    plain = "SELECT key, time, percent FROM battery WHERE percent > 50"
    lake = tmp_path / "lake"
    write(tmp_path / "journal", [sample(1, 0, 90.0)])
    pipeline = Pipeline(str(lake), str(tmp_path / "journal"), Here(), CONFIG)
    pipeline.step()
    opened = Lake(pipeline.place, spark, CONFIG)
    for one in (
        new_definition("plain", "view", plain, history=True),
        new_definition("counts", "view", counts, history=True),
        new_definition("low", "alert", LOW, history=True),
    ):
        create_definition(opened, one)

    def rows(name: str) -> list[dict[str, Any]]:
        found = rows_of(lake, name) if (lake / name).exists() else []
        return sorted(({k: v for k, v in row.items() if k != "day"} for row in found), key=str)

    published: set[tuple[str, ...]] = set()

    def hear(got: zenlake.Sample) -> None:
        found = json.loads(got.payload.to_bytes())
        published.add((str(got.key_expr), found["time"], found.get("state", "")))

    with (
        listening(mode='"router"') as bus,
        bus.declare_subscriber("view/plain/**", hear),
        bus.declare_subscriber("alert/**", hear),
        lives(spark) as begin,
    ):
        at = 0
        for phase in (*phases, None):
            life = begin(tmp_path, where(bus), PHASES.get(phase or ""))
            at += 2
            told = [sample(r, at + s, 10.0 + 80 * s) for s in (0, 1) for r in (1, 2)]
            write(tmp_path / "journal", told)
            pipeline.step()
            if phase is not None:
                life.join(120.0)
                assert life.exitcode == -signal.SIGKILL, phase
        total = 1 + at
        until(lambda: len(rows("plain")) >= total, "a view stands still", 120.0)
        until(lambda: len(rows("low")) >= 2 * at, "an alert stands still", 120.0)
        expected = [{"id": "1", "n": 1 + at, "total": 90.0 + 50 * at}]
        expected.append({"id": "2", "n": at, "total": 50.0 * at})
        until(lambda: rows("counts") == expected, "a view counts wrongly", 120.0)
        assert len(rows("plain")) == total
        changes = [(second(row["time"]), row["key"], row["state"]) for row in rows("low")]
        assert sorted(changes) == sorted(
            (float(s), f"robot/{r}/battery", "cleared" if s % 2 else "raised")
            for s in range(2, at + 2)
            for r in (1, 2)
        )
        results = {(f"view/plain/{r['key']}", r["time"].isoformat(), "") for r in rows("plain")}
        results |= {
            (f"alert/low/{r['key']}", r["time"].isoformat(), r["state"]) for r in rows("low")
        }
        until(lambda: published >= results, "a result was never published")
        assert published == results


def test_one_that_is_started_while_too_many_ask_says_so_and_is_tried_again(
    tmp_path: Path, spark: SparkSession
) -> None:
    over = threading.Event()

    def crowd(executor: SqlExecutor) -> None:
        for number in range(executor.at_once):
            assert executor.submit(number, lambda: (over.wait(), None)[1])
        until(lambda: executor.waiting == 0)
        for number in range(WAITING):
            assert executor.submit(number, lambda: None)

    def facts() -> dict[str, Any]:
        (found,) = world.continuous.listed("view")
        return found

    plain = new_definition("plain", "view", "SELECT key, percent FROM battery", history=True)
    with awake(tmp_path, spark) as world, ExitStack() as last:
        last.callback(over.set)
        world.continuous.create(plain)
        world.until_rows("plain", 1)
        world.end()
        world.start(crowd)
        until(lambda: bool(facts()["why"]), "it does not say that it waits")
        assert (facts()["state"], facts()["why"]) == ("starting", *world.continuous.problems())
        assert facts()["why"] == (
            f"the view 'plain' is not started yet: {WAITING} questions wait already; ask again in "
            "a moment; it is tried again every 1 s"
        )
        # Nobody else waits for it.
        with pytest.raises(LocalError, match="questions wait already"):
            world.continuous.create(new_definition("other", "view", plain.sql))
        assert not (world.lake / ".standing" / "other").exists()
        over.set()
        world.heard(sample(1, 1, 80.0))
        assert len(world.until_rows("plain", 2)) == 2
        assert (facts()["state"], world.continuous.problems()) == ("running", ())


def test_one_opens_the_tables_that_it_names_and_no_others(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with awake(tmp_path, spark) as world:
        plain = "SELECT key, time, percent FROM battery"
        world.continuous.create(new_definition("plain", "view", plain, history=True))
        world.heard(sample(1, 1, 80.0))
        world.until_rows("plain", 2)  # what a lake looks for at its start is over
        opened = note_opened_tables(monkeypatch)
        world.continuous.create(new_definition("low", "alert", LOW))
        # The question reads the table that all share; its stream has one to itself.
        assert sorted(opened) == ["battery", "low"]


def test_one_that_stands_still_is_started_again_and_keeps_everything_once(
    tmp_path: Path,
    spark: SparkSession,
    caplog: pytest.LogCaptureFixture,
) -> None:
    plain = "SELECT key, time, percent FROM battery"
    armed, halted, go = threading.Event(), threading.Event(), threading.Event()
    became: list[str] = []
    before, ended = (
        Phase("call", "ResultTable.append", "plain"),
        Phase("return", "RunningQuery._batch", "plain"),
    )
    stuck: list[int] = []

    def halting(frame: FrameType, event: str, _: Any) -> None:
        # As a disk that does not answer would halt it.
        if before.is_now(frame, event) and armed.is_set() and not stuck:
            stuck.append(threading.get_ident())
            halted.set()
            go.wait(120.0)
        elif ended.is_now(frame, event) and threading.get_ident() in stuck:
            became.append(frame.f_locals["self"].why)

    with watching(halting), awake(tmp_path, spark, patience=5.0) as world:
        world.continuous.create(new_definition("plain", "view", plain, history=True))
        world.until_rows("plain", 1)
        armed.set()
        world.heard(sample(1, 1, 80.0), sample(2, 1, 70.0))
        until(halted.is_set, "no batch came", 120.0)
        assert len(world.until_rows("plain", 3)) == 3
        # Where a machine is slow, others may have been taken for one that stands still before.
        told = next(line for line in world.throttle if "is kept and published" in line)
        assert told.startswith("the view 'plain' stood still for ")
        assert "while batch 1 is kept and published, in wait (threading.py:" in told
        (facts,) = world.continuous.listed("view")
        assert (facts["state"], facts["restarts"]) == ("running", world.continuous.restarts())
        assert world.continuous.restarts() >= 1
        (problem,) = world.continuous.problems()
        assert problem in world.throttle
        (logged,) = [one for one in caplog.messages if told in one]
        assert "in halting" in logged  # Python's stack
        assert "org.apache.spark.sql.execution.streaming" in logged  # and Java's
        # Whoever held it lets go; what it would still write is in the table already.
        go.set()
        until(lambda: bool(became), "the batch that halted never went on", 60.0)
        assert became == ["'plain' was started again meanwhile"]
        world.heard(sample(1, 2, 60.0))
        assert [row["percent"] for row in world.until_rows("plain", 4)] == [90.0, 80.0, 60.0, 70.0]

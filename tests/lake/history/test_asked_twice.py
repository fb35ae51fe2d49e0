"""The same questions to random lakes twice: by an Eclipse client, and in Spark SQL."""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zenoh
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.sessions import connected, listening, where
from tests.lake.journals import Here, write
from tests.lake.rowsof import START, Row
from tests.waiting import SECONDS, until
from zenlake.errors import LocalError
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.query.executor import SqlExecutor, SqlQuestion
from zenlake.lake.query.lake import Lake
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.planner import Planner
from zenlake.lake.service.bus import BusAnswers
from zenlake.lake.service.service import Service

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import zenlake

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

Bus = tuple["zenlake.Session", zenoh.Session]

V = "CAST(get_json_object(CAST(value AS string), '$.v') AS double)"
S = "get_json_object(CAST(value AS string), '$.s')"
NEWEST = "SELECT *, row_number() OVER (PARTITION BY key ORDER BY hlc DESC) AS n FROM samples"

samples = st.lists(
    st.tuples(
        st.sampled_from(("r/1/a", "r/2/a", "r/2/b", "it's/ok")),
        st.fixed_dictionaries(
            {},
            optional={
                "v": st.integers(-5, 5),
                "s": st.sampled_from(["", "x", "x'; DROP TABLE samples", "ü%_", "1"]),
            },
        ),
        st.booleans(),
    ),
    min_size=1,
    max_size=20,
)


@pytest.fixture(scope="module")
def bus() -> Iterator[Bus]:
    with listening(mode='"router"') as node, connected(node, mode='"client"') as session:
        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where(node)]))
        with zenoh.open(config) as client:
            yield session, client


def told(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + at))


def asked(client: zenoh.Session, selector: str) -> list[tuple[str, Any]]:
    found = []
    for reply in client.get(selector, timeout=SECONDS):
        assert reply.ok is not None, reply.err and reply.err.payload.to_string()
        text = reply.ok.payload.to_bytes()
        found.append((str(reply.ok.key_expr), json.loads(text) if text else None))
    return found


def declared(session: zenlake.Session, client: zenoh.Session) -> None:
    """Wait until the router knows all that the session has declared and undeclared so far."""
    last = f"ready/{uuid.uuid4().hex}"
    with session.declare_queryable(last, lambda query: query.reply(last, "1")):
        until(lambda: asked(client, last) != [], "the router does not know of the lake")


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(samples, st.integers(0, 20), st.integers(0, 19), st.integers(-5, 5))
def test_parameters_and_sql_find_the_same(
    spark: SparkSession,
    bus: Bus,
    heard: list[tuple[str, dict[str, Any], bool]],
    committed: int,
    middle: int,
    limit: int,
) -> None:
    rows = [
        Row(key, b"" if gone else json.dumps(value).encode(), at=float(n), kind=int(gone))
        for n, (key, value, gone) in enumerate((k, v, g and n % 4 == 3) for n, (k, v, g) in
                                               enumerate(heard))
    ]  # fmt: skip
    session, client = bus
    with tempfile.TemporaryDirectory() as folder:
        journal, place = Path(folder) / "journal", Path(folder) / "lake"
        write(journal, rows[:committed])
        pipeline = Pipeline(str(place), str(journal), Here(), LakeConfig())
        pipeline.step()
        write(journal, rows[committed:])
        lake = Lake(pipeline.place, spark, LakeConfig())
        service = Service(lake, [pipeline.journal], session, server=False)
        service.add(BusAnswers(service, session, ["**"]))
        try:
            declared(session, client)
            span = f"_time=[{told(2)}..{told(15)}]"
            then = told(middle)
            found = {
                selector: asked(client, selector)
                for selector in (
                    f"**?{span}",
                    f"r/*/a?{span};_filter=v < {limit} OR s LIKE 'x%'",
                    f"**?{span};_filter=chunk(0) = 'it''s' AND s <> ''",
                    f"**?{span};_order=v desc,time();_limit=5;_filter=v IS NOT NULL",
                    f"r/**?{span};_project=v,s,chunk(1)",
                    f"**?{span};_agg=count(v),sum(v),min(v),max(v),avg(v)/5s",
                    f"**?_asof={then}",
                    f"**?_filter=v >= {limit}",
                )
            }
            # The same samples, all of them in tables now.
            pipeline.step()
            inside = f"time >= TIMESTAMP '{told(2)}' AND time <= TIMESTAMP '{told(15)}'"
            value = "CAST(value AS string) AS value"

            def sql(query: str) -> list[tuple[Any, ...]]:
                rows = service.executor.ask(query, "test").to_pylist()
                return [tuple(row.values()) for row in rows]

            def samples_of(query: str) -> list[tuple[str, Any]]:
                return [(key, json.loads(text) if text else None) for key, text in sql(query)]

            plain, filtered, quoted, ordered, projected, grouped, past, newest = found.values()
            assert plain == [
                (row.key, json.loads(row.value) if row.value else None)
                for row in rows
                if 2 <= row.at <= 15
            ]
            assert plain == samples_of(
                f"SELECT key, {value} FROM samples WHERE {inside} ORDER BY hlc"
            )
            assert filtered == samples_of(
                f"SELECT key, {value} FROM samples WHERE {inside} AND key LIKE 'r/%/a' AND "
                f"({V} < {limit} OR {S} LIKE 'x%') ORDER BY hlc"
            )
            assert quoted == samples_of(
                f"SELECT key, {value} FROM samples WHERE {inside} AND "
                f"split(key, '/')[0] = 'it\\'s' AND {S} <> '' ORDER BY hlc"
            )
            assert ordered == samples_of(
                f"SELECT key, {value} FROM samples WHERE {inside} AND {V} IS NOT NULL "
                f"ORDER BY {V} DESC, hlc LIMIT 5"
            )
            # A deletion has nothing to be projected, and comes as it is.
            assert [
                (key, row["v"], row["s"], row["chunk(1)"]) for key, row in projected if row
            ] == sql(
                f"SELECT key, {V}, {S} AS s, split(key, '/')[1] FROM samples WHERE {inside} AND "
                "key LIKE 'r/%' AND kind = 'put' ORDER BY hlc"
            )
            ((_, groups),) = grouped
            counted = sql(
                f"SELECT key, count({V}), sum({V}), min({V}), max({V}), avg({V}) FROM samples "
                f"WHERE {inside} GROUP BY key, window(time, '5 seconds')"
            )
            given = [(row["key"], *list(row.values())[-5:]) for row in groups]
            assert sorted(given, key=str) == sorted(counted, key=str)
            assert sorted(past, key=str) == sorted(
                samples_of(
                    f"SELECT key, value FROM ({NEWEST.replace('*,', f'key, kind, {value},')} "
                    f"WHERE time <= TIMESTAMP '{then}') WHERE n = 1 AND kind = 'put'"
                ),
                key=str,
            )
            assert sorted(newest, key=str) == sorted(
                samples_of(f"SELECT key, {value} FROM latest WHERE {V} >= {limit}"),
                key=str,
            )
        finally:
            service.close()


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("DROP TABLE samples", "SELECT"),
        ("INSERT INTO samples SELECT * FROM samples", "SELECT"),
        ("SELECT * FROM csv.`/etc/passwd`", "/etc/passwd"),
        ("SELECT java_method('java.lang.System', 'exit', 1)", "java_method"),
        ("SET spark.sql.ansi.enabled=false", "SELECT"),
        ("SELECT key FROM samples WHERE key = ''; DELETE FROM samples", "DELETE"),
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "more than 200 brackets inside each other"),
        ("SELECT '" + "x" * 70_000 + "'", "65,536"),
    ],
)
def test_hostile_questions_on_the_bus_are_refused(
    spark: SparkSession, bus: Bus, tmp_path: Path, question: str, named: str
) -> None:
    session, client = bus
    write(tmp_path / "journal", [Row("r/1/a", b'{"v": 1}')])
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), LakeConfig())
    pipeline.step()
    lake = Lake(pipeline.place, spark, LakeConfig())
    service = Service(lake, [pipeline.journal], session, server=False)
    service.add(BusAnswers(service, session, ["**"]))
    try:
        declared(session, client)
        (reply,) = client.get("@lake/sql", payload=question, timeout=SECONDS)
        assert reply.err is not None
        assert named in json.loads(reply.err.payload.to_bytes())["error"]
        (reply,) = client.get("@lake/sql?_sql=SELECT key FROM samples", timeout=SECONDS)
        assert reply.ok is not None
        assert json.loads(reply.ok.payload.to_bytes()) == [{"key": "r/1/a"}]
    finally:
        service.close()


def test_a_question_that_is_planned_for_too_long_is_not_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "journal", [Row("a", b"1", 1.0)])
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), LakeConfig())
    pipeline.step()

    def plan(planner: Planner, query: str, **settings: object) -> DataFrame:
        until(lambda: executor.counts.cancelled == 1, "its time did not end")
        return spark.sql(query)  # which would take hours

    executor = SqlExecutor(Lake(pipeline.place, spark, LakeConfig()))
    monkeypatch.setattr(Planner, "plan", plan)
    try:
        ages = "SELECT sum(a.id * b.id) FROM range(1000000) a, range(1000000) b"
        with pytest.raises(LocalError, match=r"took longer than 0\.1 s"):
            executor.ask(SqlQuestion(ages, QueryLimits(seconds=0.1)), "test")
    finally:
        executor.close()

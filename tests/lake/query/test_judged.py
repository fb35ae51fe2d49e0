"""The gate in front of Spark's SQL: what is let through, and what is not, whoever asks."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import zenoh

import zenlake.lake
from tests.api.sessions import listening, where
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from tests.routing.policies import access_control, applying, rule, subject
from tests.waiting import SECONDS, until
from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.keys.readable import ReadableChoice, ReadableKeys
from zenlake.lake import LakeConfig, Pipeline, read_config
from zenlake.lake.continuous.result_table import ResultTable
from zenlake.lake.maintain.definition_store import new_definition
from zenlake.lake.model.row_access import EVERYTHING, RowAccess
from zenlake.lake.query.allowed_functions import ALLOWED
from zenlake.lake.query.executor import MOST_LOST, SqlExecutor, SqlQuestion
from zenlake.lake.query.lake import Lake
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.plan_policy import Refused
from zenlake.lake.query.referenced_tables import Unanswerable
from zenlake.lake.service.bus import BusAnswers
from zenlake.lake.service.service import Service
from zenlake.lake.table.location import LakeLocation
from zenlake.spark.jvm import frame_of_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = '{tables: {pose: {format: "robot/${id}/pose"}}}'
PATIENT = QueryLimits(seconds=600.0)

# --- which rows, without Spark ------------------------------------------------------------------


def test_what_is_denied_is_not_seen_though_it_is_allowed() -> None:
    access = RowAccess(("robot/**",), ("robot/*/secret", "robot/7/**"))
    seen = [
        k
        for k in ("robot/1/pose", "robot/1/secret", "robot/7/pose", "x")
        if re.fullmatch(access.pattern(), k)
    ]
    assert seen == ["robot/1/pose"]
    assert re.fullmatch(RowAccess(None, ("a/**",)).pattern(), "@/x/y")
    assert not RowAccess(()).unrestricted
    assert re.fullmatch(RowAccess(()).pattern(), "a") is None
    # Spark searches, and a line break at the end is a letter like any other.
    assert re.search(RowAccess(("a",)).pattern(), "a")
    assert re.search(RowAccess(("a",)).pattern(), "a\n") is None
    assert re.search(RowAccess(None, ("a",)).pattern(), "a\n")
    assert EVERYTHING.unrestricted


def test_functions_that_reach_out_are_on_no_list() -> None:
    for name in (
        "reflect",
        "java_method",
        "try_reflect",
        "input_file_name",
        "current_user",
        "raise_error",
        "assert_true",
        "range",
        "read_files",
        "version",
        "uuid",
        "sleep",
    ):
        assert name not in ALLOWED


# --- with Spark ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    rows = [
        Row(f"robot/{k}/pose", json.dumps({"n": n}).encode(), at=n, encoding=5)
        for n in range(5)
        for k in range(4)
    ]
    write(folder / "journal", [*rows, Row("secret/x", b"hidden", at=3)])
    pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), read_config(CONFIG))
    pipeline.step()
    pipeline.finish()
    return folder / "lake"


@pytest.fixture(scope="module")
def executor(lake: Path, spark: SparkSession) -> Iterator[SqlExecutor]:
    executor = SqlExecutor(zenlake.lake.open(lake, spark))
    yield executor
    executor.close()


def patient(text: str, **settings: Any) -> SqlQuestion:
    """A question that has the time that a busy machine takes."""
    return SqlQuestion(text, PATIENT, **settings)


HOSTILE = """
INSERT OVERWRITE DIRECTORY '{tmp}/lake/pose' USING parquet SELECT 1
INSERT INTO samples SELECT * FROM samples
SELECT * FROM csv.`/etc/passwd`
SELECT * FROM text.`{tmp}/lake`
SELECT reflect('java.lang.System', 'getProperty', 'user.home')
SELECT java_method('java.lang.Runtime', 'getRuntime')
SELECT try_reflect('java.lang.System', 'exit', '1')
ADD JAR '/tmp/x.jar'
ADD FILE '/etc/passwd'
SET spark.sql.ansi.enabled=false
RESET
CREATE TEMP VIEW samples AS SELECT 1
CREATE OR REPLACE TEMPORARY VIEW pose AS SELECT 1 AS forged
CREATE TABLE t USING parquet LOCATION '{tmp}/x' AS SELECT 1
CREATE TEMPORARY FUNCTION f AS 'x.Y' USING JAR '/tmp/x.jar'
DROP TABLE samples
DELETE FROM samples
UPDATE samples SET key = 'x'
MERGE INTO samples USING pose ON true WHEN MATCHED THEN DELETE
ALTER VIEW samples AS SELECT 1
SELECT * FROM range(1000000000000)
SELECT * FROM read_files('/etc/passwd')
SELECT * FROM python_udtf(1)
SELECT * FROM sql_keywords()
WITH samples AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM samples
WITH x AS (SELECT 1) INSERT INTO samples SELECT * FROM x
FROM samples INSERT OVERWRITE DIRECTORY '{tmp}/y' USING csv SELECT key
SELECT * FROM (SELECT * FROM (WITH p AS (SELECT * FROM json.`/etc/passwd`) SELECT * FROM p))
SELECT * FROM samples, LATERAL (SELECT * FROM text.`/etc/passwd`)
SELECT key IN (SELECT value FROM text.`/etc/passwd`) FROM samples
SELECT * FROM samples WHERE key = (SELECT max(reflect('a', 'b')) FROM pose)
SELECT TRANSFORM(key) USING 'cat' FROM samples
SELECT * FROM IDENTIFIER('csv.`/etc/passwd`')
SELECT IDENTIFIER('reflect')('java.lang.System', 'exit', '1')
SELECT * FROM samples WITH ('path'='/etc')
SELECT * FROM default.samples
SELECT spark_catalog.default.f(1)
SELECT /*+ REPARTITION(1000000) */ * FROM samples
SELECT repeat('x', 1000000000)
SELECT space(n * 1000000) FROM pose
SELECT sequence(1, 1000000000)
SELECT sequence(1, cast(1e9 AS int))
SELECT array_repeat(1, n * 1000000000) FROM pose
SELECT lpad(key, 2000000000, 'x') FROM samples
SELECT input_file_name() FROM samples
SELECT current_user(), version()
SELECT raise_error('x')
EXPLAIN SELECT 1
SHOW TABLES
DESCRIBE samples
EXECUTE IMMEDIATE 'SELECT 1'
DECLARE VARIABLE x INT DEFAULT 1
CACHE TABLE samples
UNCACHE TABLE samples
REFRESH '/tmp'
CALL x.y()
SELECT * FROM samples VERSION AS OF 1
SELECT * FROM STREAM samples
""".strip().splitlines()


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_whatever_is_no_select_over_tables_is_refused_and_does_nothing(
    executor: SqlExecutor, lake: Path, spark: SparkSession
) -> None:
    before = sorted(str(path) for path in lake.parent.rglob("*"))
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    let_through = []
    for question in HOSTILE:
        try:
            executor.run(patient(question.format(tmp=lake.parent)))
        except Unanswerable:
            continue  # for its plan, for its names before Spark saw it, or not even understood
        except LocalError as error:
            let_through.append(f"{question}: {error}")
            continue
        let_through.append(question)
    assert let_through == []
    assert sorted(str(path) for path in lake.parent.rglob("*")) == before
    assert spark.conf.get("spark.sql.ansi.enabled") == ansi
    assert not spark.catalog.tableExists("samples")  # nor do views stay behind
    assert len(rows_of(lake, "samples")) == 21


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_questions_that_people_ask_are_answered(executor: SqlExecutor) -> None:
    answer = executor.run(
        patient(
            """WITH newest AS (
               SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY time DESC) AS r FROM pose
           )
           SELECT newest.id, max(x.n) AS n, count(*) AS many,
                  get_json_object(CAST(first(s.value) AS string), '$.n') AS first,
                  lpad(newest.id, 3, '0') AS name, transform(array(1, 2), v -> v + 1) AS more
           FROM newest
           JOIN pose AS x ON x.id = newest.id
           JOIN samples AS s ON s.key LIKE concat('robot/', newest.id, '/%')
           WHERE newest.r = 1 AND newest.id IN (SELECT id FROM pose WHERE n BETWEEN 1 AND 3)
             AND EXISTS (SELECT 1 FROM latest)
           GROUP BY newest.id HAVING count(*) > 1 ORDER BY 1 LIMIT 2"""
        )
    )
    first, second = answer.to_pylist()
    assert (first["id"], first["n"], first["many"], first["name"]) == ("0", 4, 25, "000")
    assert (second["id"], second["more"]) == ("1", [2, 3])
    # Bytes that are no text, where one was asked for, spoil no answer.
    mixed = "SELECT CAST(X'ff41' AS string) AS t, array(CAST(X'ff41' AS string)) AS a"
    told = [{"t": "\ufffdA", "a": ["\ufffdA"]}]
    assert executor.ask(patient(mixed), "test").to_pylist() == told


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_rows_of_keys_that_may_not_be_seen_are_not_there_and_leave_no_trace(
    executor: SqlExecutor,
) -> None:
    # A cast that fails would show the value; it must never meet a row that is not to be seen.
    access = RowAccess(("robot/1/**", "robot/2/*"), ("robot/2/pose",))
    found = executor.run(
        patient(
            "SELECT key, count(*) AS n FROM samples WHERE key LIKE 'robot%' "
            "OR CAST(CAST(value AS string) AS int) > 1 GROUP BY key",
            access=access,
        )
    )
    assert found.to_pylist() == [{"key": "robot/1/pose", "n": 5}]


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_results_of_a_view_are_seen_by_those_alone_who_may_read_what_it_publishes(
    tmp_path: Path, spark: SparkSession
) -> None:
    """A view of the operator may join what is secret to a key that everybody may read."""
    place = LakeLocation(str(tmp_path))
    view = new_definition("joined", "view", "SELECT key, value FROM samples")
    columns = pa.schema([("key", pa.string()), ("value", pa.string())])
    rows = {"key": ["robot/1", "secret/1", None], "value": ["S3CRET", "S3CRET", "S3CRET"]}
    ResultTable(place, view, columns, 600.0).append(pa.table(rows, columns), {"b": (None, 1)})
    executor = SqlExecutor(Lake(place, spark, LakeConfig()))

    def seen(*denied: str) -> list[str]:
        access = EVERYTHING.asked_by(ReadableKeys(((ReadableChoice(None, denied),),)))
        asked = patient("SELECT key FROM joined ORDER BY key", access=access)
        return list(executor.run(asked)["key"].to_pylist())

    try:
        with pytest.raises(Unanswerable, match="there is no table 'joined'"):
            seen("secret/**", "view/**")
        assert seen("secret/**", "view/joined/robot/**") == []
        assert seen("secret/**") == ["robot/1"]
        assert seen("view/other/**") == ["robot/1", "secret/1"]
    finally:
        executor.close()


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_table_of_keys_that_may_not_be_seen_is_not_there(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Its columns are members of payloads, and its name is made of keys."""
    config = read_config(
        '{tables: {pose: {format: "robot/${id}/pose"}, pin: {format: "secret/${id}/pin"}}}'
    )
    rows = [Row(f"robot/{n}/pose", b'{"n": 1}', at=n, encoding=5) for n in range(2)]
    secrets = [b'{"pincode": 4711}', b'{"pincode": "S3CRET"}']
    rows += [Row("secret/x/pin", one, at=9, encoding=5) for one in secrets]
    write(tmp_path / "journal", rows)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), config)
    pipeline.step()
    pipeline.finish()
    place = LakeLocation(str(tmp_path / "lake"))
    view = new_definition("of_pins", "view", "SELECT key, pincode FROM pin")
    columns = pa.schema([("key", pa.string()), ("pincode", pa.int64())])
    table = pa.table({"key": ["secret/x/pin"], "pincode": [4711]}, columns)
    ResultTable(place, view, columns, 600.0).append(table, {"b": (None, 1)})
    executor = SqlExecutor(Lake(place, spark, config))
    barred = EVERYTHING.asked_by(ReadableKeys(((ReadableChoice(None, ("secret/**", "view/**")),),)))
    narrow = EVERYTHING.asked_by(ReadableKeys(((ReadableChoice(("robot/1/**",)),),)))
    try:
        for access in (barred, narrow):
            for question in (
                "SELECT * FROM pin",
                "SELECT count(*) FROM pin",
                "SELECT nosuch FROM pin",
                "TABLE pin",
                "FROM pin |> SELECT key",
                "SELECT (SELECT max(key) FROM of_pins)",
                "SELECT * FROM samples JOIN PIN USING (nosuch)",
                "SELECT * FROM nosuch",
                "SELECT nosuch FROM samples",
                "SELECT json:n::int FROM samples WHERE json:n::int / 0 > 1",
                "SELECT variant_get(parse_json(CAST(value AS string)), '$.n', 'date') FROM samples",
            ):
                try:
                    told = str(executor.run(patient(question, access=access)).to_pylist())
                except LocalError as error:
                    told = str(error)
                # What the question says itself stands in the refusal of it.
                told = re.sub(r"no table '(?:pin|PIN|of_pins)'", "", told)
                assert not re.search(r"\bpin\b|of_pins|pincode|S3CRET|4711", told), told
            # Of a table that has some keys that may be seen, those rows.
            seen = executor.run(patient("SELECT key FROM pose ORDER BY key", access=access))
            assert seen["key"].to_pylist()[-1] == "robot/1/pose"
        assert executor.run(patient("SELECT key FROM pin")).num_rows == 1
    finally:
        executor.close()


LONG = "concat(repeat('a', 60), '!')"
ENDLESS = (
    f"""
SELECT regexp_like(repeat('a', 10000), 'a*a*b')
SELECT regexp_like(replace(repeat('a', 10000), 'a', '{"a" * 100}'), 'a*b')
SELECT regexp_like(t, 'a*b') FROM (SELECT concat(r, r) AS t FROM (SELECT repeat('a', 999) AS r))
SELECT transform(array(repeat('a', 9999)), x -> regexp_like(x, 'a*a*b'))
SELECT count(*) FROM samples WHERE regexp_like(hex(repeat('a', 9999)), '6*6*b')
SELECT repeat('a', 10000) LIKE '%a%a%b'
SELECT size(flatten(transform(sequence(1, 10000), x -> sequence(1, 10000))))
SELECT size(flatten(transform(a, x -> a))) FROM (SELECT sequence(1, 10000) AS a)
SELECT CAST(NULL AS {"array<" * 3000}int{">" * 3000})
SELECT regexp_like({LONG}, '^(a+)+\\\\1$')
SELECT {LONG} RLIKE '(a+)+$'
SELECT {LONG} RLIKE concat('(a+)', '+$')
SELECT key FROM samples WHERE regexp_extract({LONG}, '(a*)*b', 1) = ''
SELECT regexp_replace({LONG}, '(a|aa)+$', '') FROM samples
SELECT regexp_extract_all(key, p) FROM samples, (SELECT '(a+)+$' AS p)
SELECT split({LONG}, '(a|aa)+$')
SELECT str_to_map({LONG}, '(a|aa)+$')
SELECT parse_url(concat('http://x/?', {LONG}), 'QUERY', '(a+)+b')
SELECT x FROM (VALUES ('{"a" * 60}!' RLIKE '^(a+)+\\\\1$')) AS t(x)
SELECT count(*) FROM samples LIMIT CAST({LONG} RLIKE '(a+)+$' AS int)
SELECT repeat('a', 5000) LIKE '%a%a%a%a%a%a%b'
SELECT repeat('a', 5000) LIKE p FROM (SELECT concat('%a%a%a%', 'a%a%a%b') AS p)
SELECT repeat('a', 5000) LIKE p FROM VALUES ('%a%a%a%a%a%a%b') AS t(p)
SELECT length(repeat(repeat(repeat('a', 10000), 10000), 10000))
SELECT aggregate(sequence(1, 100), 'a', (a, x) -> concat(a, a))
SELECT aggregate(sequence(1, 10000), 'a', (a, x) -> repeat(a, 10))
SELECT exists(sequence(1, 3000), x -> exists(s, y -> exists(s, z -> x + y + z < 0))) FROM
 (SELECT sequence(1, 3000) AS s)
SELECT levenshtein(repeat('a', 10000), repeat('b', 10000))
SELECT count(*) FROM samples GROUP BY window(time, '10 years', '1 microsecond')
SELECT round(1.5D, 1000000000)
SELECT format_number(1.5, 2000000000)
SELECT format_string('%2000000000d', 1)
SELECT array_insert(array(1), 1000000000, 2)
SELECT approx_count_distinct(key, 0.0000001) FROM samples
SELECT stack(1000000000, 1)
SELECT count(*) FROM samples GROUP BY CUBE({", ".join(f"offset + {n}" for n in range(60))})
SELECT sequence(date'0001-01-01', date'9999-12-31', interval 1 day)
""".replace("\n ", " ")
    .strip()
    .splitlines()
)


def doubled(first: str, step: str, last: str) -> str:
    """A chain of subqueries, each of which names the one before it twice."""
    names = ", ".join(f"a{n} AS ({step.format(f'a{n - 1}')})" for n in range(1, 20))
    return f"WITH a0 AS ({first}), {names} {last.format('a19')}"


ENDLESS += [
    doubled("SELECT 1 AS x", "SELECT * FROM {0} UNION ALL SELECT * FROM {0}", "SELECT * FROM {0}"),
    doubled(
        "SELECT offset AS x FROM samples",
        "SELECT x + x AS x FROM {0}",
        "SELECT count(*) FROM {0} WHERE x = 5",
    ),
    "SELECT count(*) FROM " + ", ".join(f"samples AS s{n}" for n in range(101)),
]
DEEP = "concat(repeat('array<', 3000), 'int', repeat('>', 3000))"
ENDLESS += [
    f"SELECT CAST(NULL AS {'array/**/<' * 3000}int{'>' * 3000})",
    f"SELECT variant_get(parse_json('1'), '$', {DEEP})",
    f"SELECT try_variant_get(json, '$', {DEEP}) FROM samples",
    f"SELECT variant_get(json, '$', '{chr(92)}u0061rray{chr(92)}u003c' || {DEEP}) FROM latest",
    f"SELECT from_json('1', '{(chr(92) + 'u0061rray' + chr(92) + 'u003c') * 3000}int')",
    f"SELECT from_csv('1', concat('a ', {DEEP}))",
    "SELECT from_json('1', schema_of_json(concat(repeat('[', 900), repeat(']', 900))))",
    f"""SELECT from_json('1', schema_of_json('{'{"a":' * 900}1{"}" * 900}'))""",
]


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_what_would_hold_spark_up_while_it_plans_is_refused_with_advice(
    executor: SqlExecutor,
) -> None:
    let_through = []
    for question in ENDLESS:
        try:
            executor.run(SqlQuestion(question, dataclasses.replace(PATIENT, planning=20.0)))
        except Refused as refusal:
            if re.search(r"; |up to|at most|written out", str(refusal)):
                continue
            let_through.append(f"{question}: {refusal}")
        except LocalError as error:
            let_through.append(f"{question}: {error}")
        else:
            let_through.append(question)
    assert let_through == []
    assert executor.lost == 0


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_patterns_and_loops_that_people_write_are_let_through(executor: SqlExecutor) -> None:
    found = executor.run(
        patient(
            r"""SELECT regexp_extract(key, 'robot/([0-9]+)/(\\w+)', 1) AS id,
                      regexp_replace('a1b22', '[0-9]+', '-') AS plain,
                      split('a, b,c', ',\\s*') AS parts,
                      aggregate(sequence(1, 10), 0, (sum, x) -> sum + sum + x) AS total
               FROM samples
               WHERE key LIKE 'robot/%/po_e' AND key RLIKE '^robot/[^/]+/pose$'
               GROUP BY ALL ORDER BY id LIMIT 1"""
        )
    )
    [row] = found.to_pylist()
    assert (row["id"], row["plain"], row["parts"]) == ("0", "a-b-", ["a", "b", "c"])
    assert row["total"] == 2036


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_questions_that_do_not_come_back_are_answered_and_hold_nobody_up(
    lake: Path, spark: SparkSession
) -> None:
    """Whatever Spark does: here its place is taken by a wait that nothing ends."""
    executor = SqlExecutor(zenlake.lake.open(lake, spark), grace=0.0)
    warm = executor.ask(patient("SELECT key FROM samples LIMIT 1"), "warm")
    assert warm.num_rows == 1
    ends = threading.Event()
    short = SqlQuestion("SELECT 1", QueryLimits(seconds=600.0, planning=0.1))
    told = []
    for _ in range(executor.at_once):
        with pytest.raises(Refused, match=r"planning the question took longer than 0\.1 s"):
            executor.judged(short, "a", lambda: ends.wait())
        told.append(executor.lost)
    assert told == [1, 2, 3]
    # All of the places that there are would be taken; others took theirs.
    assert executor.ask(patient("SELECT key FROM samples LIMIT 1"), "a").num_rows == 1
    for _ in range(MOST_LOST - executor.at_once):
        with pytest.raises(Refused):
            executor.judged(short, "a", lambda: ends.wait())
    with pytest.raises(LocalError, match=f"{MOST_LOST} questions before this one do not end"):
        executor.ask(patient("SELECT key FROM samples LIMIT 1"), "a")
    ends.set()
    until(lambda: executor.lost == 0)
    assert executor.ask(patient("SELECT key FROM samples LIMIT 1"), "a").num_rows == 1
    executor.close()


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_tables_are_looked_at_while_spark_plans_a_question(
    lake: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = zenlake.lake.open(lake, spark)
    free = []

    def resolved(session: SparkSession, plan: Any) -> Any:
        with ThreadPoolExecutor(1) as other:
            table = other.submit(opened.catalog.table, "samples").result(SECONDS)
            free.append(table is not None)
        return frame_of_plan(session, plan)

    monkeypatch.setattr("zenlake.spark.jvm.frame_of_plan", resolved)
    opened.judged("SELECT key FROM samples", EVERYTHING)
    assert free == [True]


@contextmanager
def eclipse(bus: zenlake.Session, id: str) -> Iterator[zenoh.Session]:
    """A program of Eclipse's with this id."""
    config = zenoh.Config()
    for key, value in (("id", id), ("mode", "client"), ("connect/endpoints", [where(bus)])):
        config.insert_json5(key, json.dumps(value))
    with zenoh.open(config) as session:
        yield session


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(240)
def test_row_access_on_the_bus_shows_the_rows_of_its_keys_alone(
    lake: Path, spark: SparkSession
) -> None:
    config = read_config(
        '{row_access: {guests: {keys: ["robot/*/pose"], but: ["robot/0/**"]}}, '
        'tables: {pose: {format: "robot/${id}/pose"}}}'
    )
    rules = access_control(
        "deny",
        [
            rule("some", "allow", "robot/*/pose", "@lake/**"),
            rule("not two", "deny", "robot/2/**"),
            rule("some rows", "allow", "@lake/sql/guests"),
        ],
        [subject("ada", zids=["ada"]), subject("bob", zids=["b0b"])],
        [applying(["some", "not two"], ["ada"]), applying(["some rows", "not two"], ["bob"])],
    )
    opened = zenlake.lake.open(lake, spark, config)
    with (
        listening(mode='"router"', access_control=json.dumps(rules)) as bus,
        Journal.open(lake.parent / "journal") as journal,
        eclipse(bus, "ada") as ada,
        eclipse(bus, "b0b") as bob,
    ):
        service = Service(opened, [journal], bus, server=False)
        service.add(BusAnswers(service, bus, ["robot/**"]))
        try:

            def ask(key: str, who: Any = bus) -> list[str]:
                question = "SELECT DISTINCT key FROM samples ORDER BY key"
                (reply,) = who.get(key, payload=question, timeout=200)
                assert reply.ok is not None, reply
                found = json.loads(reply.ok.payload.to_string())
                return [row["key"] for row in (found["rows"] if "_proof" in key else found)]

            everything = [f"robot/{k}/pose" for k in range(4)] + ["secret/x"]
            assert ask("@lake/sql") == everything
            assert ask("@lake/sql/guests") == everything[1:4]
            # Access control on keys applies to rows; row access is granted as such, but for what is
            # denied.
            may = [everything[0], everything[1], everything[3]]
            assert ask("@lake/sql?_proof=true", ada) == may
            assert ask("@lake/sql/guests", bob) == may[1:]
            assert list(bob.get("@lake/sql", payload="SELECT 1", timeout=SECONDS)) == []
            (counted,) = ada.get("@lake/sql?_sql=SELECT count(*) AS n FROM samples", timeout=200)
            assert counted.ok is not None
            assert json.loads(counted.ok.payload.to_bytes()) == [{"n": 15}]
        finally:
            service.close()


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_an_answer_has_at_most_so_many_rows_and_takes_at_most_so_long(
    executor: SqlExecutor,
) -> None:
    few = executor.run(patient("SELECT * FROM samples", first=3))
    assert few.num_rows == 3

    def ask(question: str, **bounds: Any) -> None:
        executor.run(SqlQuestion(question, dataclasses.replace(PATIENT, **bounds)))

    with pytest.raises(LocalError, match="more than 3 rows"):
        ask("SELECT * FROM samples", rows=3)
    # Of a join of all with all Spark cancels the answer, but its loop goes on to its end, some 8 s
    # after it began: the more tables, the longer it takes a core from all other tests.
    values = ", ".join(f"({n})" for n in range(10))
    many = ", ".join(f"samples AS s{n}" for n in range(5)) + f", (VALUES {values}) AS v(x)"
    for seconds in (0.01, 1.0):  # while it is planned, and while it runs
        with pytest.raises(Refused, match=f"took longer than {seconds:g} s and was cancelled"):
            ask(f"SELECT sum(s0.offset + s4.offset + x) FROM {many}", seconds=seconds)
    with pytest.raises(Refused, match="at most 10 are read"):
        ask("SELECT * FROM samples", text=10)
    with pytest.raises(Refused, match="more than 20 parts"):
        ask("SELECT 1" + " + 1" * 30, nodes=20)

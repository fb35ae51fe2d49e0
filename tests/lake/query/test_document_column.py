"""The column `json`: what a question finds in it, and who does not pay for it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cbor2
import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zenlake.lake
from tests.lake.journals import Here, write
from tests.lake.rowsof import START, Row
from zenlake.errors import LocalError
from zenlake.expr.record import implied_value
from zenlake.lake import Pipeline
from zenlake.lake.continuous.planning import judge_definition
from zenlake.lake.decode.document_text import MOST_BYTES
from zenlake.lake.maintain.definition_store import new_definition
from zenlake.lake.model.row_access import RowAccess
from zenlake.lake.query.catalog import Catalog
from zenlake.lake.query.document_column import columns_in_sql, is_document_named, with_document
from zenlake.lake.query.document_files import files_that_may_be_binary, has_binary
from zenlake.lake.query.executor import SqlExecutor, SqlQuestion
from zenlake.lake.query.lake import Lake
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.referenced_tables import Unanswerable, ask
from zenlake.lake.service.bus import json_rows
from zenlake.lake.service.service import described
from zenlake.lake.table.location import LakeLocation
from zenlake.recorded.encoding import recorded_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# --- which questions name it ----------------------------------------------------------------------

SCHEMAS = {"samples": ["key", "value"], "pose": ["key", "x"]}
MARKED = {"samples": ["key", "value"], "pose": ["key", "json"]}


def named(query: str, schemas: dict[str, list[str]] = SCHEMAS) -> bool:
    columns = {name: [*of, "json"] if name == "samples" else of for name, of in schemas.items()}
    question = ask(query, columns)
    own = {name: schemas[name] for name in question.tables}
    return is_document_named(query, question.trees, own)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT key, json:percent::double FROM samples",
        "SELECT json:a FROM samples",
        "SELECT s.JSON:a.b[0] FROM samples s",
        "SELECT key FROM samples WHERE json:['a b']::int > 3",
        "SELECT try_variant_get(json, '$.a', 'double') FROM samples",
        "SELECT json:a AS json FROM samples",
        "SELECT key AS json FROM samples WHERE is_variant_null(json)",
        "SELECT * EXCEPT (json) FROM samples",
        "SELECT a FROM (SELECT json:a AS a FROM samples) WHERE a IS NOT NULL",
    ],
)
def test_a_question_that_names_the_column_gets_it(query: str) -> None:
    assert named(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM samples",
        "SELECT 'json' FROM samples",
        "SELECT x FROM pose -- json",
        "SELECT get_json_object(cast(value AS string), '$.json') FROM samples",
        # An alias of that name was there before the column.
        "SELECT cast(value AS string) AS json, count(*) FROM samples GROUP BY json ORDER BY json",
        "SELECT cast(value AS string) AS json, upper(json) FROM samples",
    ],
)
def test_a_question_that_does_not_name_the_column_has_none(query: str) -> None:
    assert not named(query)


def test_a_column_of_another_table_keeps_its_name() -> None:
    assert not named("SELECT json FROM pose JOIN samples USING (key)", MARKED)
    assert named("SELECT s.json FROM pose JOIN samples s USING (key)", MARKED)


def test_a_question_that_only_spark_can_read_gets_the_column_if_the_word_is_in_it() -> None:
    assert named("SELECT FROM WHERE ( json")
    assert not named("SELECT FROM WHERE ( jsons")


def test_a_path_into_the_column_hides_no_mistake_and_no_table() -> None:
    columns = {"samples": ["key", "json"], "latest": ["key", "json"]}
    assert ask("SELECT json:a.b::double FROM samples", columns).tables == {"samples"}
    with pytest.raises(Unanswerable, match="did you mean 'key'"):
        ask("SELECT kay, json:a.b FROM samples", columns)


def test_a_table_with_a_column_of_that_name_keeps_its_own() -> None:
    own = pa.schema([("json", pa.string())])
    assert columns_in_sql("samples", own) == {"json": "string"}
    assert columns_in_sql("pose", pa.schema([("x", pa.float64())])) == {"x": "double"}
    assert columns_in_sql("latest", pa.schema([("key", pa.string())]))["json"] == "variant"


# --- with Spark -----------------------------------------------------------------------------------

PATIENT = QueryLimits(120, planning=120)
JSON, TEXT, TEXT_JSON, BYTES = "application/json", "text/plain", "text/json", "zenoh/bytes"
CBOR, PACK, CUSTOM = "application/cbor", "application/msgpack", "unknown(65535);"

PAYLOADS: dict[str, tuple[bytes, str, Any]] = {
    "robot/object": (b'{"percent": 42.5, "a": {"b": [1, {"c": "x"}]}}', BYTES, 42.5),
    "robot/declared": (b'{"percent": 7}', JSON, 7.0),
    "robot/text": (b'{"percent": 6}', TEXT_JSON, 6.0),
    "robot/custom": (b'{"percent": 5}', f"{CUSTOM}application/json;utf-8", 5.0),
    "robot/blanks": (b' \r\n\t{"percent": 8}\n ', BYTES, 8.0),
    "robot/array": (b"[1, 2, 3]", BYTES, None),
    "robot/word": (b'{"percent": "full"}', BYTES, None),
    "robot/cbor": (cbor2.dumps({"percent": 4, "raw": b"\xff"}), CBOR, 4.0),
    "robot/cbor/list": (cbor2.dumps([1, {"n": 2}]), f"{CBOR};fleet", None),
    "robot/cbor/custom": (cbor2.dumps({"percent": 3}), CUSTOM + CBOR, 3.0),
    "robot/cbor/infinite": (cbor2.dumps({"percent": float("-inf")}), CBOR, float("-inf")),
    "robot/pack": (msgpack.packb({"percent": 2.5}), PACK, 2.5),
}
"""Payloads that are documents, with their encoding and the number `percent`."""
OTHERS: dict[str, tuple[bytes, str]] = {
    "other/number": (b"42", BYTES),
    "other/declared": (b"42", JSON),
    "other/text": (b"hello", BYTES),
    "other/plain": (b'{"percent": 1}', TEXT),
    "other/cut": (b'{"percent":', JSON),
    "other/twice": (b'{"percent": 1, "percent": 2}', BYTES),
    "other/lines": (b'{"percent": 1}\n{"percent": 2}', BYTES),
    "other/list": (b'{"percent": 1}, {"percent": 2}', BYTES),
    "other/closed": (b"[1, 2]]", BYTES),
    "other/word": (b'{"percent": NaN}', BYTES),
    "other/bytes": (b"\xff\xfe{}", BYTES),
    "other/inside": (b'{"percent": "\xff"}', BYTES),
    "other/cbor": (cbor2.dumps(42), CBOR),
    "other/cbor/cut": (cbor2.dumps({"percent": 1})[:-1], CBOR),
    "other/pack": (msgpack.packb("text"), PACK),
    "other/empty": (b"", BYTES),
    "other/deep": (b"[" * 2000 + b"]" * 2000, BYTES),
    "other/long": (b'{"percent": "' + b"x" * MOST_BYTES + b'"}', BYTES),
}
"""Payloads that are no documents, or none that is parsed."""


def row(key: str, value: bytes, encoding: str, at: float = 0) -> Row:
    id, schema = recorded_parts(encoding)
    return Row(key, value, at=at, encoding=id, schema=schema)


def rows() -> list[Row]:
    said = {key: payload[:2] for key, payload in PAYLOADS.items()} | OTHERS
    return [row(key, value, encoding) for key, (value, encoding) in said.items()]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """Every payload; those of `TAIL` are known to `samples` alone, and one key has gone."""
    folder = tmp_path_factory.mktemp("documents")
    pipeline: Pipeline | None = None
    for n, some in enumerate(
        (
            [*rows(), row("robot/gone", b'{"percent": 1}', JSON)],
            [
                row("tail/later", b'{"percent": 9}', BYTES, 5),
                row("tail/pack", msgpack.packb({"percent": 10}), PACK, 5),
                Row("robot/gone", at=5, kind=1),
            ],
        )
    ):
        write(folder / "journal", some)
        pipeline = pipeline or Pipeline(str(folder / "lake"), str(folder / "journal"), Here())
        pipeline.step()
        if not n:
            pipeline.finish()
    return zenlake.lake.open(folder / "lake", spark)


@pytest.fixture(scope="module")
def executor(lake: Lake) -> Iterator[SqlExecutor]:
    executor = SqlExecutor(lake)
    yield executor
    executor.close()


def answered(executor: SqlExecutor, query: str, **settings: Any) -> list[dict[str, Any]]:
    return list(executor.run(SqlQuestion(query, PATIENT, **settings)).to_pylist())


TAIL = {"tail/later": 9.0, "tail/pack": 10.0}
PERCENT = "try_cast(json:percent AS double)"
EXPECTED = {key: percent for key, (_, _, percent) in PAYLOADS.items()} | TAIL


@pytest.mark.spark
@pytest.mark.timeout(240)
class TestQuestions:
    def test_fields_of_the_newest_values_are_read_with_what_was_heard_since(
        self, executor: SqlExecutor
    ) -> None:
        found = answered(executor, f"SELECT key, {PERCENT} AS p FROM latest WHERE json IS NOT NULL")
        assert {row["key"]: row["p"] for row in found} == EXPECTED
        [one] = answered(
            executor, "SELECT key, json:percent::double FROM latest WHERE key = 'tail/later'"
        )
        assert one == {"key": "tail/later", "percent": 9.0}

    def test_fields_of_all_samples_are_read(self, executor: SqlExecutor) -> None:
        found = answered(
            executor, f"SELECT key, {PERCENT} AS p FROM samples WHERE json IS NOT NULL"
        )
        assert {row["key"]: row["p"] for row in found} == EXPECTED | {"robot/gone": 1.0}
        [inner] = answered(
            executor,
            "SELECT json:a.b[1].c::string AS c, json:a.b[0]::int AS n, json:['a'].b[7] AS none "
            "FROM samples WHERE json:a IS NOT NULL",
        )
        assert inner == {"c": "x", "n": 1, "none": None}

    def test_binary_documents_are_read_without_a_function_of_python(
        self, executor: SqlExecutor
    ) -> None:
        [one] = answered(
            executor,
            "SELECT json:raw::string AS raw, json:percent::int AS percent, encoding, bucket "
            "FROM latest WHERE key = 'robot/cbor'",
        )
        bucket = one.pop("bucket")
        assert isinstance(bucket, int)
        assert one == {"raw": "ff", "percent": 4, "encoding": CBOR}
        [count] = answered(executor, "SELECT count(*) AS n, count(json) AS j FROM samples")
        assert count == {
            "n": len(PAYLOADS) + len(OTHERS) + len(TAIL) + 2, "j": len(PAYLOADS) + len(TAIL) + 1,
        }  # fmt: skip

    def test_what_is_no_document_is_null(self, executor: SqlExecutor) -> None:
        found = answered(executor, "SELECT DISTINCT key FROM samples WHERE json IS NULL")
        assert {row["key"] for row in found} == {*OTHERS, "robot/gone"}

    def test_a_variant_comes_as_text(self, executor: SqlExecutor) -> None:
        text = (
            "SELECT key, json, json AS key, array(json) AS held, json:a.b, 1 AS one FROM samples "
            "WHERE key = 'robot/object'"
        )
        table = executor.run(SqlQuestion(text, PATIENT))
        assert table.column_names == ["key", "json", "key", "held", "b", "one"]
        document = '{"a":{"b":[1,{"c":"x"}]},"percent":42.5}'
        assert [column[0].as_py() for column in table.columns] == [
            "robot/object", document, document, f"[{document}]", '[1,{"c":"x"}]', 1,
        ]  # fmt: skip
        [row] = json.loads(json_rows(executor.run(SqlQuestion(
            "SELECT json FROM latest WHERE key = 'robot/array'", PATIENT
        ))))  # fmt: skip
        assert row == {"json": "[1,2,3]"}

    def test_what_get_json_object_reads_it_still_reads(self, executor: SqlExecutor) -> None:
        inner = "get_json_object(cast(value AS string), '$.percent')"
        [one] = answered(
            executor,
            f"SELECT {inner} AS p, {inner} = json:percent::string AS same FROM latest "
            "WHERE key = 'robot/object'",
        )
        assert one == {"p": "42.5", "same": True}
        [plain] = answered(executor, f"SELECT {inner} AS p FROM latest WHERE key = 'other/plain'")
        assert plain == {"p": "1"}

    def test_rows_that_may_not_be_seen_are_not_there(self, executor: SqlExecutor) -> None:
        access = RowAccess(("robot/declared", "robot/cbor"))
        for table in ("samples", "latest"):
            found = answered(
                executor, f"SELECT key, json:percent::int AS p FROM {table}", access=access
            )
            assert {row["key"]: row["p"] for row in found} == {"robot/declared": 7, "robot/cbor": 4}

    def test_files_that_have_nothing_of_it_are_not_read(self, lake: Lake) -> None:
        def files(query: str) -> int:
            return len(set(lake.sql(query).inputFiles()))

        every = files("SELECT count(*) FROM samples")
        assert every > 1
        for column in ("offset", "json:percent::double"):
            assert files(f"SELECT {column} FROM samples WHERE key = 'tail/later'") == 1
            assert files(f"SELECT {column} FROM samples WHERE key = 'nobody'") == 0
        assert files("SELECT json:a.b FROM samples") == every

    def test_all_columns_are_those_of_the_table_unless_it_is_named(self, lake: Lake) -> None:
        own = lake.tables()["latest"].schema.names
        assert lake.sql("SELECT * FROM latest").columns == own
        assert lake.sql("SELECT * FROM latest WHERE is_variant_null(json:percent)").columns == [
            *own,
            "json",
        ]
        assert lake.sql("SELECT * FROM latest").columns == own
        assert lake.sql("SELECT json FROM latest").dtypes == [("json", "variant")]

    def test_views_have_no_such_column_and_say_so(self, lake: Lake) -> None:
        view = new_definition("low", "view", "SELECT key, is_variant_null(json) AS n FROM samples")
        with pytest.raises(LocalError, match="views and alerts have no column 'json'"):
            judge_definition(lake, view)

    def test_it_stands_among_the_columns_that_are_described(self, lake: Lake) -> None:
        told = described(lake)
        assert told["samples"]["columns"]["json"] == "variant"
        assert told["latest"]["columns"]["json"] == "variant"
        assert "json" not in told["gaps"]["columns"]


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_the_rule_is_that_of_payloads_without_an_encoding(spark: SparkSession) -> None:
    pieces = st.sampled_from(
        [*(b'{ } [ ] , : "a" "b" 1 -0.5e3 null true'.split()), b" ", b"\n", b'{"a": 1}', b"[2]"]
    )
    payloads: list[bytes] = []

    @given(st.lists(pieces, max_size=9).map(b"".join))
    def noted(payload: bytes) -> None:
        payloads.append(payload)

    noted()
    frame = spark.createDataFrame(
        [(n, payload, "zenoh/bytes") for n, payload in enumerate(payloads)],
        "n int, value binary, encoding string",
    )
    found = with_document(frame).selectExpr("n", "to_json(json) AS text").collect()
    assert len(found) == len(payloads)
    for n, text in found:
        implied = implied_value(payloads[n])
        if isinstance(implied, dict | list):
            assert json.loads(text or "0") == implied, payloads[n]
        else:
            assert text is None, payloads[n]


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_document_under_a_wildcard_is_that_of_the_keys_it_means(
    tmp_path: Path, spark: SparkSession
) -> None:
    heard = time.time() - START
    pipeline: Pipeline | None = None
    for some in (
        [("wild/a", b'{"percent": 1}', JSON, 0), ("wild/*", cbor2.dumps({"percent": 12}), CBOR, 3)],
        [("wild/b", b'{"percent": 2}', JSON, 1), ("wild/c", b'{"percent": 3}', JSON, 4)],
    ):
        write(tmp_path / "journal", [replace(row(*one), heard=heard) for one in some])
        if pipeline is None:
            pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here())
            pipeline.step()
            pipeline.finish()
        pipeline.step()
    lake = zenlake.lake.open(tmp_path / "lake", spark)
    found = lake.sql("SELECT key, json:percent::int FROM latest").collect()
    assert {key: percent for key, percent in found} == {"wild/a": 12, "wild/b": 12, "wild/c": 3}


def test_only_files_with_binary_documents_are_read_by_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline: Pipeline | None = None
    for some in (
        [row("a", b"{}", JSON), row("b", b"", BYTES)],
        [row("c", b"{}", JSON), row("d", b"\x80", f"{PACK};x"), row("e", b"", BYTES)],
        [row("f", b"{}", JSON)],
    ):
        write(tmp_path / "journal", some, 1)
        pipeline = pipeline or Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here())
        pipeline.step()
    catalog = Catalog(LakeLocation(tmp_path / "lake"))
    samples = catalog.table("samples")
    assert samples is not None
    paths = samples.paths
    assert len(paths) == 3
    # By statistics alone the first file may have MessagePack, too.
    assert len(list(files_that_may_be_binary(samples.actions))) == 2
    (binary,) = catalog.binary_files(samples, paths)
    assert has_binary(samples, binary)
    assert catalog.binary_files(samples, [path for path in paths if path != binary]) == []
    assert not has_binary(samples, "gone.parquet")
    monkeypatch.setattr("zenlake.lake.query.catalog.MOST_LOOKED_AT", 0)
    assert catalog.binary_files(samples, paths) == [binary]
    assert len(Catalog(LakeLocation(tmp_path / "lake")).binary_files(samples, paths)) == 2

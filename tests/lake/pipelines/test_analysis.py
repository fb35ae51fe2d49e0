"""What Spark finds out about a pipeline before it runs, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lake.pipelines.lakes import HEAD, add_rows, loaded, write_files
from zenlake.lake.pipelines.definitions import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = HEAD.count("\n")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("analysed")
    add_rows(lake, (1, 10.0), (2, 20.0))
    return lake


def test_flows_are_analysed_after_those_that_they_read_in_whatever_file_they_are(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(
        tmp_path / "mine",
        a_py="""
            @dp.materialized_view
            def by_id():
                low = spark.read.table("every_low")
                return low.groupBy("id").agg(f.max("percent").alias("most"))

            dp.create_streaming_table("every_low", partition_cols=["id"])

            @dp.append_flow(target="every_low")
            def from_python():
                return spark.readStream.table("low").select("id", "percent")
        """,
        b_py="""
            import shared

            @dp.table(comment="robots that need a charger")
            def low():
                return spark.readStream.table("battery").where(shared.is_low())
        """,
        shared_py="""
            def is_low():
                return f.col("percent") < 15
        """,
        c_sql="""
            CREATE TEMPORARY VIEW high AS SELECT id, percent FROM STREAM battery WHERE percent > 15;
            CREATE FLOW from_sql AS INSERT INTO every_low BY NAME
            SELECT id, percent FROM STREAM high;
            CREATE MATERIALIZED VIEW newest TBLPROPERTIES ('zenlake.publish' = 'fleet/${id}')
            AS SELECT id, max(time) AS time FROM battery GROUP BY id
        """,
    )

    graph = loaded(folder, lake, spark).graph

    order = [planned.flow.name for planned in graph.flows]
    assert sorted(order) == ["by_id", "from_python", "from_sql", "high", "low", "newest"]
    assert order.index("low") < order.index("from_python") < order.index("by_id")
    assert order.index("high") < order.index("from_sql") < order.index("by_id")
    columns = {name: table.schema.simpleString() for name, table in graph.tables.items()}
    assert columns == {
        "low": "struct<id:bigint,percent:double,time:timestamp>",
        "every_low": "struct<id:bigint,percent:double>",
        "by_id": "struct<id:bigint,most:double>",
        "newest": "struct<id:bigint,time:timestamp>",
    }
    inputs = {planned.flow.name: planned.inputs for planned in graph.flows}
    assert inputs["from_python"] == {"low"}
    assert inputs["from_sql"] == {"battery"}
    assert graph.tables["newest"].output.table_properties == {"zenlake.publish": "fleet/${id}"}
    assert graph.tables["low"].output.comment == "robots that need a charger"


WRONG = {
    "a file that cannot be parsed": ("x = (", 1, "SyntaxError"),
    "a module that is not there": ("import nowhere", 1, "No module named 'nowhere'"),
    "a table that is not there": (
        "@dp.table\ndef t():\n    return spark.readStream.table('batery')",
        3,
        "there is no table 'batery', in the lake or in this pipeline; did you mean 'battery'?",
    ),
    "a column that is not there": (
        "@dp.materialized_view\ndef t():\n    return spark.table('battery').select('nope')",
        3,
        "`nope` cannot be resolved",
    ),
    "a function that fails": (
        "@dp.materialized_view\ndef t():\n    return 1 / 0",
        3,
        "ZeroDivisionError: division by zero",
    ),
    "a function that returns nothing": (
        "@dp.table\ndef t():\n    pass",
        1,
        "'t' returned NoneType; return a DataFrame",
    ),
    "a table of a frame that is no stream": (
        "@dp.table\ndef t():\n    return spark.table('battery')",
        1,
        "its query no stream",
    ),
    "a view of a stream": (
        "@dp.materialized_view\ndef t():\n    return spark.readStream.table('battery')",
        1,
        "a materialized view of a stream",
    ),
    "two of one name": (
        "@dp.materialized_view\ndef t():\n    return spark.table('battery')\n"
        "@dp.table(name='t')\ndef u():\n    return spark.readStream.table('battery')",
        4,
        f"'t' is defined twice, first in wrong.py:{LINES + 1}",
    ),
    "a circle": (
        "@dp.materialized_view\ndef t():\n    return spark.table('u')\n"
        "@dp.materialized_view\ndef u():\n    return spark.table('t')",
        1,
        "the flows t, u wait for each other: 't' reads 'u'",
    ),
    "a flow without a target": (
        "dp.create_streaming_table('every')\n"
        "@dp.append_flow(target='evry')\ndef t():\n    return spark.readStream.table('battery')",
        2,
        "writes to 'evry', which no file defines; did you mean 'every'?",
    ),
    "a table without a flow": (
        "dp.create_streaming_table('every')",
        1,
        "no flow writes to 'every'",
    ),
    "the lake's own table": (
        "@dp.table\ndef samples():\n    return spark.readStream.table('battery')",
        1,
        "'samples' is a table that the lake fills itself",
    ),
    "a table of another program": (
        "@dp.materialized_view\ndef battery():\n    return spark.range(3)",
        1,
        "there is a table 'battery' already",
    ),
    "flows whose columns differ": (
        "dp.create_streaming_table('every')\n"
        "@dp.append_flow(target='every')\ndef t():\n"
        "    return spark.readStream.table('battery').select('id')\n"
        "@dp.append_flow(target='every')\ndef u():\n"
        "    return spark.readStream.table('battery').selectExpr('percent AS id')",
        5,
        "have the column 'id' once as bigint and once as double",
    ),
    "a name that no table has": (
        "@dp.table(name='../up')\ndef t():\n    return spark.readStream.table('battery')",
        1,
        "'../up' cannot be the name of a table",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_pipeline_that_is_wrong_is_refused_with_the_file_and_the_line(
    what: str, lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    text, line, words = WRONG[what]
    folder = write_files(tmp_path / "mine", wrong_py=text)

    with pytest.raises(PipelineError) as refused:
        loaded(folder, lake, spark)

    assert str(refused.value).startswith(f"wrong.py:{LINES + line}: ")
    assert words in str(refused.value)
    assert not (lake / "t").exists()


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("CREATE MATERIALIZED VIEW z AS SELECT nope FROM battery", "wrong.sql:1", "`nope`"),
        ("\n-- fine\nSELECT 1", "wrong.sql:3", "a pipeline has no such statement"),
        ("CREATE MATERIALIZED VIEW z AS\nSELEC id", "wrong.sql", "Syntax error"),
        ("CREATE VIEW z AS SELECT 1", "wrong.sql:1", "CREATE TEMPORARY VIEW or CREATE FLOW"),
    ],
)
def test_sql_that_is_wrong_is_refused_with_the_file_and_the_line(
    text: str, place: str, words: str, lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "wrong.sql").write_text(text, "utf-8")

    with pytest.raises(PipelineError) as refused:
        loaded(folder, lake, spark)

    assert str(refused.value).startswith(f"{place}: ")
    assert words in str(refused.value)

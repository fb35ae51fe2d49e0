from __future__ import annotations

import doctest
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import zenlake
from tests.api.sessions import listening, where
from tests.spark.rows import MIDNIGHT, SECOND, row, write_journal
from zenlake.lake.spark_source.options import TABLE_OPTIONS
from zenlake.spark.options import documented
from zenlake.spark.schema import documented_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "spark.md"


def test_the_page_has_every_option_and_every_column() -> None:
    text = PAGE.read_text("utf-8")
    assert documented() in text
    assert documented_columns() in text
    assert documented(TABLE_OPTIONS) in text


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_examples_of_the_page_do_what_it_says(spark: SparkSession, tmp_path: Path) -> None:
    said = [("1", "1.5"), ("2", "8.0"), ("1", "1.7")]
    rows = [
        row(f"robot/{robot}/pose", value.encode(), MIDNIGHT + n * SECOND, encoding_id=5)
        for n, (robot, value) in enumerate(said)
    ]
    write_journal(tmp_path / "journal", rows)
    levels = pa.table({"id": ["1", "2", "1", "1"], "percent": [44.0, 20.5, 41.5, 97.0]})
    write_deltalake(str(tmp_path / "lake" / "battery"), levels)
    told: list[str] = []
    with listening(mode='"router"') as router:

        def battery(query: zenlake.Query) -> None:
            query.reply("robot/1/battery", b"97")

        text = PAGE.read_text("utf-8").replace("tcp/localhost:7447", where(router))
        for name in (
            *("journal", "checkpoint", "poses"),
            *("lake/battery", "batteries_at", "batteries"),
            *("lake/lowest", "lake/low", "low_at", "lake"),
        ):
            text = text.replace(f'"{name}")', f'"{tmp_path / name}")')
        test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
        with (
            router.declare_queryable("robot/*/battery", battery),
            router.declare_subscriber("robot/*/goto", zenlake.handlers.FifoChannel(9)) as goto,
        ):
            doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
                test, out=told.append
            )
            assert not told, "".join(told)
            kinds = {str(order.key_expr): order.kind for order in (goto.recv(), goto.recv())}
    assert kinds == {
        "robot/1/goto": zenlake.SampleKind.PUT,
        "robot/2/goto": zenlake.SampleKind.DELETE,
    }

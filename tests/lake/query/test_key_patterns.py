"""Key expressions in a column of Spark: the same patterns, and the same keys found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.test_pattern import EXPRESSIONS, KEYS, TOLD
from zenlake.keys import intersects, is_wild
from zenlake.keys.pattern import END, pattern_of, spark_is_wild, spark_pattern_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def test_spark_makes_the_same_pattern_and_finds_the_same_keys(spark: SparkSession) -> None:
    pairs: list[tuple[str, str]] = [(expr, key) for expr, key, _ in TOLD]

    @given(st.lists(st.tuples(EXPRESSIONS, KEYS), min_size=20, max_size=20))
    def draw(more: list[tuple[str, str]]) -> None:
        pairs.extend(more[: max(0, 600 - len(pairs))])

    draw()
    found = (
        spark.createDataFrame(pairs, "expr string, key string")
        .selectExpr("expr", "key", f"{spark_pattern_of('expr')} AS pattern")
        .selectExpr(
            "*",
            f"key RLIKE concat('^', pattern, r'{END}') AS met",
            f"{spark_is_wild('expr')} AS wild",
        )
        .collect()
    )
    assert len(found) == len(pairs)
    for row in found:
        assert row.pattern == pattern_of(row.expr)
        assert row.met == intersects(row.expr, row.key), row
        assert row.wild == is_wild(row.expr), row

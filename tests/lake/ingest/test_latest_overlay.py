"""The order of clocks in SQL is that of the bytes of their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from zenlake.lake.ingest.latest_overlay import MOMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def test_spark_orders_ids_as_their_bytes_are_ordered(spark: SparkSession) -> None:
    # As text the first digit is the most significant, and the first byte of the wire the least.
    ordered = [None, "1", "201", "10001", "2", "f", "10", "ff", "1ff"]
    wire = [b"", b"\x01", b"\x01\x02", b"\x01\x00\x01", b"\x02", b"\x0f", b"\x10", b"\xff"]
    wire.append(b"\xff\x01")
    by_bytes = [id for _, id in sorted(zip(wire, ordered, strict=True), key=lambda pair: pair[0])]
    found = (
        spark.createDataFrame([(id,) for id in reversed(ordered)], "stamp_id string")
        .selectExpr("stamp_id", f"{MOMENT} AS moment")
        .orderBy("moment")
        .collect()
    )
    assert [row.stamp_id for row in found] == by_bytes

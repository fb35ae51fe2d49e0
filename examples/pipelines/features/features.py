"""A table of features to train a model on, computed by a function over batches of Arrow.

The hour is put on a circle, so that a model finds 23:59 beside 00:00.
"""

import math
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()

DAY_MICROS = 86_400_000_000


def with_features(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compute features, a batch at a time."""
    for batch in batches:
        micros = batch["time"].cast(pa.int64())
        days = pc.divide(micros, DAY_MICROS)
        of_day = pc.divide(
            pc.subtract(micros, pc.multiply(days, DAY_MICROS)).cast(pa.float64()), DAY_MICROS
        )
        turn = pc.multiply(of_day, 2 * math.pi)
        yield pa.RecordBatch.from_pydict(
            {
                "id": batch["id"],
                "time": batch["time"],
                "hour_sin": pc.sin(turn),
                "hour_cos": pc.cos(turn),
                "charge": pc.divide(batch["percent"], 100.0),
                "is_charging": batch["charging"].cast(pa.int8()).cast(pa.float64()),
            }
        )


@dp.table(comment="features of batteries")
def features() -> DataFrame:
    """`battery` has id, time, percent and charging."""
    return (
        spark.readStream.table("battery")
        .select("id", "time", "percent", "charging")
        .mapInArrow(
            with_features,
            "id string, time timestamp, hour_sin double, hour_cos double, charge double, "
            "is_charging double",
        )
    )

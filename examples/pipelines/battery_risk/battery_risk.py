"""A model scores a stream, and each score is put on the bus as `fleet/<id>/score`.

The model is a logistic regression; its coefficients are those that a training over the table of
`features` found. The score is the chance that a battery fails within the week.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()

COLUMNS = ["percent", "celsius", "cycles"]
MEAN = np.array([50.0, 30.0, 500.0])
SCALE = np.array([25.0, 10.0, 250.0])
WEIGHTS = np.array([-1.0, 0.5, 2.0])
BIAS = 0.0


def scored(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Score batches of rows."""
    for batch in batches:
        rows = np.column_stack([batch[name].to_numpy(zero_copy_only=False) for name in COLUMNS])
        logits = (rows - MEAN) / SCALE @ WEIGHTS + BIAS
        score = 1 / (1 + np.exp(-logits))
        yield pa.RecordBatch.from_pydict(
            {"id": batch["id"], "time": batch["time"], "score": pa.array(score)}
        )


@dp.table(
    comment="the chance that a battery fails within the week",
    table_properties={"zenlake.publish": "fleet/${id}/score"},
)
def battery_risk() -> DataFrame:
    """`battery` has id, time, percent, celsius and cycles."""
    return (
        spark.readStream.table("battery")
        .select("id", "time", *COLUMNS)
        .mapInArrow(scored, "id string, time timestamp, score double")
    )

"""A program that copies a table by a stream, one file a batch, until there is nothing new.

python -m tests.spark.endless_writer SOURCE TARGET CHECKPOINT
"""

from __future__ import annotations

import sys

from tests.spark.machine import STATE
from zenlake.spark import jvm, spark_session, stop_spark


def copy(source: str, target: str, checkpoint: str) -> None:
    spark = spark_session("writer", "local[2]", state=STATE)
    process = jvm.java_process()
    assert process is not None
    print(process.pid, flush=True)
    query = (
        spark.readStream.format("zenlake")
        .option("maxRowsPerTrigger", "1")
        .load(source)
        .writeStream.format("zenlake")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(target)
    )
    query.awaitTermination()
    stop_spark(spark)


if __name__ == "__main__":
    copy(*sys.argv[1:])

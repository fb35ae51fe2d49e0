"""Asks Delta's own connector: a line of SQL in, a line of JSON out.

This runs in an environment of its own, with the newest Spark that the connector supports; nothing
of zenlake is there. `tests/lake/test_delta_connector.py` makes it.
"""

from __future__ import annotations

import json
import sys

SETTINGS = {
    "spark.jars.packages": sys.argv[1],
    "spark.jars.ivy": sys.argv[2],
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.ui.enabled": "false",
}


def main() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        try:
            rows = [list(row) for row in spark.sql(line).collect()]
            print(json.dumps(rows, default=str), flush=True)
        except Exception as error:
            print(json.dumps({"error": str(error)[:1000]}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()

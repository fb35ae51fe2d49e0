"""The energy that each robot takes in each hour.

An hour is in the table once, when it is over: reports that come up to ten minutes late count.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table(comment="watt hours of each robot by hour")
def energy() -> DataFrame:
    """`power` has a row for each report: the mean watts of the seconds before it."""
    return (
        spark.readStream.table("power")
        .withWatermark("time", "10 minutes")
        .groupBy(f.window("time", "1 hour").alias("hour"), "id")
        .agg(
            (f.sum(f.col("watts") * f.col("seconds")) / 3600).alias("watt_hours"),
            f.count("*").alias("reports"),
        )
        .select(f.col("hour.start").alias("hour"), "id", "watt_hours", "reports")
    )

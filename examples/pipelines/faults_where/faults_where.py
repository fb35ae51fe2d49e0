"""Faults with the newest pose before them: where was the robot?

Of the poses in the minute before a fault the newest is taken. A fault is in the table once, when no
earlier pose can come any more; a fault without a pose is there without a place.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table(comment="faults, and where their robots were")
def faults_where() -> DataFrame:
    """`fault` and `pose` have an id and a time each."""
    faults = spark.readStream.table("fault").withWatermark("time", "10 seconds")
    poses = (
        spark.readStream.table("pose")
        .withWatermark("time", "10 seconds")
        .select(f.col("id").alias("robot"), f.col("time").alias("seen"), "x", "y")
    )
    before = f.expr("robot = id AND seen <= time AND seen > time - INTERVAL 1 MINUTE")
    return (
        faults.join(poses, before, "leftOuter")
        .groupBy("id", "time", "code")
        .agg(f.max_by(f.struct("seen", "x", "y"), "seen").alias("pose"))
        .select("id", "time", "code", "pose.seen", "pose.x", "pose.y")
    )

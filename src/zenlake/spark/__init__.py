"""Spark: a session that starts anywhere, and `format("zenoh")` to read and write by it.

Needs the extra: `pip install 'zenlake[spark]'`.
"""

from __future__ import annotations

from zenlake.spark.java import Java, JavaError, find_java
from zenlake.spark.offsets import DataLoss, lag
from zenlake.spark.session import SparkError, spark_session, stop_spark

__all__ = [
    "DataLoss",
    "Java",
    "JavaError",
    "SparkError",
    "find_java",
    "lag",
    "spark_session",
    "stop_spark",
]

"""Found by Spark through its name: `spark.read.format("zenlake")` needs no registration.

Spark looks for modules called `pyspark_…` and takes their `DefaultSource`. All of it is in
`zenlake.lake.spark_source`.
"""

from __future__ import annotations

from zenlake.lake.spark_source.source import LakeTableSource as DefaultSource

__all__ = ["DefaultSource"]

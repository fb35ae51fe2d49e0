"""Found by Spark through its name: `spark.read.format("zenoh")` needs no registration.

Spark looks for modules called `pyspark_…` and takes their `DefaultSource`. All of it is in
`zenlake.spark`.
"""

from __future__ import annotations

from zenlake.spark.source import ZenohSource as DefaultSource

__all__ = ["DefaultSource"]

"""The Spark of the other tests, on a machine that has no Java of its own."""

from __future__ import annotations

from tests.spark.conftest import STATE, machine, no_java, spark

__all__ = ["STATE", "machine", "no_java", "spark"]

"""A machine that has no Java of its own, for the lake of `zenlake up`."""

from __future__ import annotations

from tests.spark.conftest import machine, no_java

__all__ = ["machine", "no_java"]

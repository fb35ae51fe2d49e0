"""Programs that bring their own Java are tested as on a machine that has none."""

from __future__ import annotations

from tests.spark.conftest import machine, no_java

__all__ = ["machine", "no_java"]

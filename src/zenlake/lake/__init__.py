"""The lake: what was heard, in open tables that Spark writes and anybody reads."""

from __future__ import annotations

from zenlake.lake.config import LakeConfig, Retention, read_config
from zenlake.lake.lake import Lake, open
from zenlake.lake.pipeline import Pipeline, Step

__all__ = ["Lake", "LakeConfig", "Pipeline", "Retention", "Step", "open", "read_config"]

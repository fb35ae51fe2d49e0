"""The lake: what was heard, in open tables that Spark writes and all readers of Delta read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zenlake.lake.config import LakeConfig, Retention, read_config
    from zenlake.lake.lake import Lake, open
    from zenlake.lake.pipeline import Pipeline, Step

__all__ = ["Lake", "LakeConfig", "Pipeline", "Retention", "Step", "open", "read_config"]

# Imported when they are asked for: `zenlake.lake.status` is for programs without the extra.
_HOMES = {
    "Lake": "lake",
    "LakeConfig": "config",
    "Pipeline": "pipeline",
    "Retention": "config",
    "Step": "pipeline",
    "open": "lake",
    "read_config": "config",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

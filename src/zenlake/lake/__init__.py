"""The lake: what was heard, in open tables that Spark writes and all readers of Delta read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zenlake.lake.decode.config_file import read_config
    from zenlake.lake.ingest.pipeline import Pipeline, Step
    from zenlake.lake.model.config import LakeConfig, Retention
    from zenlake.lake.model.decoder import DecodedRows, PayloadBatch, Reason, Undecodable
    from zenlake.lake.model.status import read_status
    from zenlake.lake.query.lake import Lake, open

__all__ = [
    "DecodedRows",
    "Lake",
    "LakeConfig",
    "PayloadBatch",
    "Pipeline",
    "Reason",
    "Retention",
    "Step",
    "Undecodable",
    "open",
    "read_config",
    "read_status",
]

# Imported when they are asked for: `read_status` is for programs without the extra.
_HOMES = {
    "DecodedRows": "model.decoder",
    "Lake": "query.lake",
    "LakeConfig": "model.config",
    "PayloadBatch": "model.decoder",
    "Pipeline": "ingest.pipeline",
    "Reason": "model.decoder",
    "Retention": "model.config",
    "Step": "ingest.pipeline",
    "Undecodable": "model.decoder",
    "open": "query.lake",
    "read_config": "decode.config_file",
    "read_status": "model.status",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

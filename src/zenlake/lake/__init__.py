"""The lake: what was heard, in open tables that Spark writes and all readers of Delta read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.lazy import lazy_names

if TYPE_CHECKING:
    from zenlake.lake.decode.config_file import read_config
    from zenlake.lake.ingest.pipeline import Pipeline
    from zenlake.lake.ingest.step import Step
    from zenlake.lake.maintain.status_file import read_status
    from zenlake.lake.model.config import LakeConfig, Retention
    from zenlake.lake.model.decoder import DecodedRows, PayloadBatch, Reason, Undecodable
    from zenlake.lake.query.lake import Lake, open
    from zenlake.lake.spark_source.named_tables import register_tables

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
    "register_tables",
]

# Imported when they are asked for: `read_status` is for programs without the extra.
__getattr__ = lazy_names(
    __name__,
    {
        "DecodedRows": "model.decoder",
        "Lake": "query.lake",
        "LakeConfig": "model.config",
        "PayloadBatch": "model.decoder",
        "Pipeline": "ingest.pipeline",
        "Reason": "model.decoder",
        "Retention": "model.config",
        "Step": "ingest.step",
        "Undecodable": "model.decoder",
        "open": "query.lake",
        "read_config": "decode.config_file",
        "read_status": "maintain.status_file",
        "register_tables": "spark_source.named_tables",
    },
)

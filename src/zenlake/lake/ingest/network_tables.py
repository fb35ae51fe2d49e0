"""The tables `network` and `metrics`: what they hold; a running lake fills them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from zenlake.journal.schema import INSTANT
from zenlake.lake.model.sample_rows import DAY
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["METRICS", "NETWORK", "OBSERVED", "observed_tables"]

NETWORK: Final = pa.schema(
    [
        ("time", INSTANT),
        ("node", pa.string()),
        ("whatami", pa.string()),
        ("what", pa.string()),
        ("key", pa.string()),
        ("peer", pa.string()),
        ("state", pa.string()),
        ("detail", pa.string()),
        (DAY, pa.date32()),
    ]
)
METRICS: Final = pa.schema(
    [
        ("time", INSTANT),
        ("node", pa.string()),
        ("whatami", pa.string()),
        ("name", pa.string()),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("value", pa.float64()),
        (DAY, pa.date32()),
    ]
)
OBSERVED: Final = {"network": NETWORK, "metrics": METRICS}


def observed_tables(place: LakeLocation) -> dict[str, Table]:
    """Both tables, made if they are not there."""
    return {name: Table.create(place, name, schema, DAY) for name, schema in OBSERVED.items()}

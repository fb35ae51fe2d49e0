"""Rows of a journal, written down one by one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from zenlake.clock import NTP64
from zenlake.journal.schema import UNNUMBERED
from zenlake.recorded.time_bounds import HLC_BIAS

ZID = b"\x0a\x0b"
OTHER = b"\x0c"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """One sample as it was heard."""

    key: str = "a"
    sn: int | None = None
    zid: bytes | None = ZID
    eid: int | None = 7
    hlc: int = 0
    stamp_id: bytes = ZID
    stamped: bool = False
    value: bytes = b"x"
    kind: int = 0
    attachment: bytes | None = None
    origin: int = 0
    encoding_id: int = 0
    encoding_schema: str | None = None


def batch_of(rows: list[Row]) -> Any:
    """The rows as a batch without offsets."""
    numbered = [row.sn is not None for row in rows]
    columns = {
        "key": pa.array([row.key for row in rows]).dictionary_encode(),
        "value": [row.value for row in rows],
        "kind": [row.kind for row in rows],
        "encoding_id": [row.encoding_id for row in rows],
        "encoding_schema": [row.encoding_schema for row in rows],
        "hlc": [row.hlc for row in rows],
        "time": [NTP64.from_raw(row.hlc + HLC_BIAS).to_datetime() for row in rows],
        "stamp_id": [row.stamp_id for row in rows],
        "stamped": [row.stamped for row in rows],
        "attachment": [row.attachment for row in rows],
        "source_zid": [
            row.zid if there else None for row, there in zip(rows, numbered, strict=True)
        ],
        "source_eid": [
            row.eid if there else None for row, there in zip(rows, numbered, strict=True)
        ],
        "source_sn": [row.sn for row in rows],
        "priority": [5] * len(rows),
        "congestion": [0] * len(rows),
        "express": [False] * len(rows),
        "reliable": [True] * len(rows),
        "received": [NOW] * len(rows),
        "origin": [row.origin for row in rows],
    }
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for field, column in ((field, columns[field.name]) for field in UNNUMBERED)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=UNNUMBERED)


def ros(number: int, gid: bytes = bytes(range(16)), time: int = 0) -> bytes:
    """The attachment of a ROS 2 publisher."""
    head = number.to_bytes(8, "little", signed=True) + time.to_bytes(8, "little")
    return head + bytes([len(gid)]) + gid


def beat(number: int, key: str = "a", zid: str = "b0a", eid: int = 7) -> Row:
    """What a publisher on `key` says: that this is the last number it used."""
    return Row(f"{key}/@adv/pub/{zid}/{eid}/_", sn=number, zid=None, eid=None, origin=3)

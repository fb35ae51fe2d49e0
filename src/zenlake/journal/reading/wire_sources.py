"""Who published rows, as messages of the wire say it."""

from __future__ import annotations

from typing import Any

from zenlake.wire.codec_zenoh import SourceInfo

__all__ = ["wire_source", "wire_sources"]


def wire_source(zid: bytes | None, eid: int | None, sn: int | None) -> SourceInfo | None:
    """Return the source that three columns make; None for a sample that does not name one."""
    return None if zid is None or sn is None else SourceInfo(zid=zid, eid=eid or 0, sn=sn)


def wire_sources(zids: Any, eids: Any, sns: Any) -> list[SourceInfo | None] | None:
    """Return the source of each row of three columns; None if no row names one."""
    if zids.null_count == len(zids):
        return None
    columns = (zids.to_pylist(), eids.to_pylist(), sns.to_pylist())
    return [wire_source(*row) for row in zip(*columns, strict=True)]

"""The file `status.json` in a lake's folder: what a running lake says of itself.

The pipeline writes it at most once a second, by renaming, so that a reader sees all of it or the
one before. On a full disk it is written over the one before, and says that the disk is full.
Reading it needs neither Spark nor a table format:

    status = read_status("zenlake-data/lake")
    if status is not None:
        print(status.rows, status.lag, status.freshness, status.quarantine)
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Final

from zenlake.lake.model.status import LakeStatus

__all__ = ["STATUS", "read_status", "write_status"]

STATUS: Final = "status.json"
"""The name of the file in the lake's folder."""


def read_status(lake: str | Path) -> LakeStatus | None:
    """The status in a lake's folder; None where no pipeline ever wrote one."""
    try:
        plain = json.loads(_page(lake))
        return LakeStatus.of(plain) if isinstance(plain, dict) else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _page(lake: str | Path) -> bytes:
    if "://" not in str(lake):
        return (Path(lake) / STATUS).read_bytes()
    from zenlake.lake.table.location import LakeLocation

    return LakeLocation(lake).read(STATUS)


def write_status(lake: str | Path, status: LakeStatus) -> None:
    """Put a status in the place of the one before; raises OSError where that cannot be."""
    if "://" in str(lake):
        from zenlake.lake.table.location import LakeLocation

        LakeLocation(lake).write(STATUS, json.dumps(status.plain()).encode())
        return
    path = Path(lake) / STATUS
    page = json.dumps(status.plain()).encode()
    fresh = path.with_name(f".{STATUS}.{os.getpid()}")
    try:
        fresh.write_bytes(page)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        if error.errno != errno.ENOSPC or not path.exists():
            raise
        _overwrite(path, page)


def _overwrite(path: Path, page: bytes) -> None:
    """Write over a status: a disk without inodes, or without bytes, has no room for another file.

    It is never shorter than the one before, which has its room already; spaces mean nothing.
    """
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        file.write(page.ljust(size))

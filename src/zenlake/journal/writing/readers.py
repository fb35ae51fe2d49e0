"""Who reads a journal and how far: pages in its folder, for its retention.

    {"lake": {"<id of the journal>": [<offset of partition 0>, …]}}

Below these offsets the reader has everything safely. A reader that does not know the journal yet
has read nothing. `zenlake up` writes `readers.json` for its lake (`supervise/readers`), also before
that has begun; every lake that runs writes a page of its own, `readers-….json`, by
`lake/service/read_position`; `zenlake journal ship` writes `shipped.json`, for what arrived.
"""

from __future__ import annotations

import json
from typing import Final

from zenlake.journal.disk.files import JournalFiles
from zenlake.journal.disk.layout import JournalInfo

__all__ = ["READERS", "SHIPPED", "read_by_all"]

READERS: Final = "readers.json"
SHIPPED: Final = "shipped.json"


def read_by_all(files: JournalFiles, info: JournalInfo) -> tuple[int, ...] | None:
    """Of each partition, the offset below which every reader has all; None if there is no reader.

    A page that cannot be read means that nothing was read: rows are rather kept.
    """
    pages = [name for name in files.list("") if name in (READERS, SHIPPED) or _is_of_lake(name)]
    read = [one for name in pages if (one := _read(files, info, name)) is not None]
    return tuple(min(ends) for ends in zip(*read, strict=True)) if read else None


def _is_of_lake(name: str) -> bool:
    return name.startswith("readers-") and name.endswith(".json")


def _read(files: JournalFiles, info: JournalInfo, name: str) -> tuple[int, ...] | None:
    nothing = (0,) * info.partitions
    try:
        page = json.loads(files.read(name))
        if not page:
            return None
        offsets = [one.get(info.id, nothing) for one in page.values()]
        return tuple(min(int(one[n]) for one in offsets) for n in range(info.partitions))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return nothing

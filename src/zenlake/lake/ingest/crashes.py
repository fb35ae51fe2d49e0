"""Rows whose decoding killed workers, by table: `.crashes.json` in the lake's folder.

They go to quarantine undecoded, whenever they are read again: by a pipeline whose commit was taken
back, and by `rebuild`. `samples` decodes nothing, but payloads of keys without a table are looked
at when it is filled: that survey passes over a row that a worker dies of, and the row is in
`samples`. A row that cannot be written to `samples` either goes to quarantine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.model.decoder import Reason, Undecodable
from zenlake.lake.model.typed_table import quarantined
from zenlake.lake.table.location import LakeLocation

__all__ = ["MOST_CRASHES", "MOST_SURVEYED", "SURVEY", "Crashes", "Skips", "without_crashed"]

FILE: Final = ".crashes.json"

MOST_CRASHES: Final = 1000
"""Rows of a table that may crash; of one with more the decoder is to blame, and it stops."""

SURVEY: Final = ".keys"
"""Stands where the name of a table does, for the survey of keys that have none."""

MOST_SURVEYED: Final = 10
"""Rows that the survey may crash of; with more it stops, and keys get no tables by themselves."""

DETAIL: Final = "a worker died each time it read this sample; the value was not decoded"

Skips = Mapping[str, tuple[int, ...]]
"""Offsets of rows by `journal/partition`."""


def without_crashed(
    table: str, rows: pa.Table, app: str, skips: Skips
) -> tuple[pa.Table, pa.Table | None]:
    """Split rows of one partition: those to decode, and the quarantine's of those that crash."""
    offsets = skips.get(app)
    if not offsets:
        return rows, None
    crash = pc.is_in(rows["offset"], pa.array(offsets, pa.int64()))
    bad = rows.filter(crash)
    if not bad.num_rows:
        return rows, None
    why = [Undecodable(DETAIL, Reason.CRASH)] * bad.num_rows
    return rows.filter(pc.invert(crash)), quarantined(table, bad, why)


@final
class Crashes:
    """The rows that are known to crash."""

    def __init__(self, lake: LakeLocation) -> None:
        """Read what is known; a page that cannot be read is found out again."""
        self._lake = lake
        self._known: dict[str, dict[str, list[int]]] = {}
        self._load()

    def of(self, table: str) -> dict[str, tuple[int, ...]]:
        """Return the rows of a table."""
        apps = self._known.get(table, {})
        return {app: tuple(offsets) for app, offsets in apps.items() if offsets}

    def count(self, table: str) -> int:
        """Return how many rows of a table crash."""
        return sum(map(len, self._known.get(table, {}).values()))

    def add(self, table: str, app: str, offset: int) -> None:
        """Remember a row."""
        self._load()
        offsets = self._known.setdefault(table, {}).setdefault(app, [])
        if offset not in offsets:
            offsets.append(offset)
        self._save()

    def forget(self, table: str, app: str | None = None, offset: int | None = None) -> None:
        """Forget a row, or all of a table: they can be read after all."""
        self._load()
        if app is None:
            had = self._known.pop(table, None)
        else:
            offsets = self._known.get(table, {}).get(app, [])
            had = {app: [offset]} if offset in offsets else None
            offsets[:] = [one for one in offsets if one != offset]
        if had is not None:
            self._save()

    def _load(self) -> None:
        """Read the page: another process may have written it."""
        try:
            plain = json.loads(self._lake.read(FILE))
            self._known = {
                str(table): {
                    str(app): [int(one) for one in offsets] for app, offsets in apps.items()
                }
                for table, apps in plain.items()
            }
        except FileNotFoundError:
            self._known = {}
        except (OSError, ValueError, TypeError, AttributeError):
            return

    def _save(self) -> None:
        known = {table: apps for table, apps in self._known.items() if apps}
        self._lake.write(FILE, json.dumps(known).encode())

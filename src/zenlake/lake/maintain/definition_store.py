"""The definitions of views and alerts, kept in the lake's folder.

One file each, `.standing/NAME.json`, written whole or not at all; beside it, in `.standing/NAME/`,
what Spark notes of how far it is.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, final

from zenlake.errors import LocalError
from zenlake.lake.model.continuous_query import ContinuousQuery, Kind, demand_share
from zenlake.lake.model.owner import OwningUser
from zenlake.lake.table.location import LakeLocation

__all__ = ["ContinuousQueryStore", "begin_anew", "new_definition"]

FOLDER: Final = ".standing"
"""Its name on disks since the first release: lakes that were made then keep their queries."""


def new_definition(
    name: str,
    kind: Kind,
    sql: str,
    late: float = 10.0,
    hold: float = 0.0,
    history: bool = False,
    owner: OwningUser | None = None,
) -> ContinuousQuery:
    """Return a definition that is made now."""
    fresh, now = uuid.uuid4().hex, time.time()
    return ContinuousQuery(name, kind, sql, late, hold, history, owner=owner, id=fresh, created=now)


@final
class ContinuousQueryStore:
    """The views and alerts of a lake, as files."""

    def __init__(self, place: LakeLocation) -> None:
        """Of the lake in this place."""
        if "://" in place.uri:
            raise LocalError(
                f"views and alerts are kept in a folder of this machine, and {place.uri} is none"
            )
        self._folder = Path(place.uri) / FOLDER
        #: Held while folders beside definitions are made or taken away.
        self._lock = threading.Lock()

    def all(self) -> dict[str, ContinuousQuery]:
        """Those that there are, by name; what cannot be read is not one."""
        by_name: dict[str, ContinuousQuery] = {}
        for file in sorted(self._folder.glob("*.json")):
            try:
                one = ContinuousQuery.of(json.loads(file.read_text("utf-8")))
            except (OSError, ValueError, TypeError, AttributeError, LocalError):
                continue
            by_name[one.name] = one
        return by_name

    def adopt(self) -> list[str]:
        """Make those the operator's that were made before there were owners; gives their names."""
        adopted = []
        for one in self.all().values():
            page = json.loads((self._folder / f"{one.name}.json").read_text("utf-8"))
            if "owner" not in page:
                self.write(one)
                adopted.append(one.name)
        return adopted

    def find(self, name: str, kind: Kind) -> ContinuousQuery:
        """One of them; raises `LocalError` if there is none."""
        every = self.all()
        definition = every.get(name)
        if definition is None or definition.kind != kind:
            names = [one.name for one in every.values() if one.kind == kind]
            raise LocalError(f"there is no {kind} '{name}'; there are {', '.join(names) or 'none'}")
        return definition

    def write(self, one: ContinuousQuery) -> None:
        """Keep it, over a loss of power too."""
        every = self.all()
        if one.name not in every:
            demand_share(one, every.values())
        self._folder.mkdir(mode=0o700, exist_ok=True)
        fresh = self._folder / f".{one.name}.{os.getpid()}"
        with fresh.open("w", encoding="utf-8") as page:
            page.write(json.dumps(one.plain(), indent=1))
            page.flush()
            os.fsync(page.fileno())
        fresh.replace(self._folder / f"{one.name}.json")
        self._sync()

    def remove(self, name: str) -> None:
        """Forget it, and how far it was."""
        (self._folder / f"{name}.json").unlink(missing_ok=True)
        self._sync()
        self.clear(name)

    def clear(self, name: str) -> None:
        """Take away what was noted beside a definition."""
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def aside(self, one: ContinuousQuery) -> Path:
        """The folder of what is noted beside a definition."""
        folder = self._folder / one.name / one.id
        with self._lock:
            for part in (self._folder, folder.parent, folder):
                part.mkdir(mode=0o700, exist_ok=True)
        return folder

    def discard(self, one: ContinuousQuery) -> None:
        """Take away what was noted beside a definition that is not kept."""
        folder = self._folder / one.name / one.id
        with self._lock:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # another of this name has notes there
                folder.parent.rmdir()

    def _sync(self) -> None:
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def begin_anew(place: LakeLocation) -> None:
    """Take away what all views and alerts have found and noted; they begin as if made now.

    One that began with what tables have does so again, the others with what comes.
    """
    definitions = ContinuousQueryStore(place)
    for one in definitions.all().values():
        # The new one first: a table that is of no definition is swept up when a lake starts.
        definitions.write(replace(one, id=uuid.uuid4().hex))
        definitions.clear(one.name)
        place.remove_folder(one.name)

"""What a view or an alert is: a question with a name, kept in the lake's folder.

One file each, `.standing/NAME.json`, written whole or not at all; beside it, in `.standing/NAME/`,
what Spark notes of how far it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, final

from zenlake.errors import LocalError
from zenlake.lake.model.config import FIXED
from zenlake.lake.model.location import LakeLocation
from zenlake.lake.model.owner import OPERATOR, OwningUser, access_of, owner_in, words_of
from zenlake.lake.model.row_access import RowAccess

__all__ = [
    "MOST",
    "MOST_OF_USER",
    "ContinuousQuery",
    "ContinuousQueryStore",
    "begin_anew",
    "demand_name",
]

MOST: Final = 16
"""Views and alerts that a lake has at most: each is a query of Spark that always runs."""

MOST_OF_USER: Final = 4
"""Those of them that one user may have from whom access control keeps some keys."""

FOLDER: Final = ".standing"
"""Its name on disks since the first release: lakes that were made then keep their queries."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

Kind = Literal["view", "alert"]


@dataclass(frozen=True, slots=True)
class ContinuousQuery:
    """One view or alert."""

    name: str
    kind: Kind
    sql: str
    late: float = 10.0
    """Seconds that data of a window may come late."""
    hold: float = 0.0
    """Seconds that the condition of an alert must hold."""
    history: bool = False
    """Whether it begins with all that the tables have, and not with what comes from now on."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Another one for each that is made, also under a name that there was before."""
    created: float = field(default_factory=time.time)
    owner: OwningUser | None = None
    """Whose rights it has; None: the operator's, who sees everything."""

    @property
    def access(self) -> RowAccess:
        """The rows that it may see."""
        return access_of(self.owner)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> ContinuousQuery:
        """What `plain` wrote; facts of another release that are not known here are left out."""
        known = {f.name: plain[f.name] for f in fields(cls) if f.name in plain}
        return cls(**{**known, "owner": owner_in(plain)})

    def plain(self) -> dict[str, Any]:
        """As JSON can write it."""
        facts = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**facts, "owner": OPERATOR if self.owner is None else self.owner.plain()}

    def shown(self) -> dict[str, Any]:
        """As it is shown to the operator: its owner in words."""
        return {**self.plain(), "owner": words_of(self.owner)}


def demand_name(name: str, taken: set[str]) -> None:
    """Refuse a name that no table of the lake can have, or that one has."""
    if not _NAME.fullmatch(name):
        raise LocalError(
            f"'{name}' cannot be a name: it has lower-case letters, digits and _, and begins with "
            "a letter"
        )
    if name in FIXED or name in taken:
        raise LocalError(f"the lake has a table '{name}' already; choose another name")


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
        if one.name not in every and len(every) >= MOST:
            raise LocalError(
                f"the lake has {MOST} views and alerts already, and each needs a part of its "
                "Spark; drop one"
            )
        if one.name not in every:
            _demand_share(one, every.values())
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


def _demand_share(one: ContinuousQuery, every: Iterable[ContinuousQuery]) -> None:
    """Refuse one more of a user who has as many as one user may have."""
    owner = one.owner
    if owner is None or owner.rights.unrestricted:
        return
    mine = [other for other in every if other.owner and other.owner.user == owner.user]
    if len(mine) >= MOST_OF_USER:
        raise LocalError(
            f"{words_of(owner)} has {MOST_OF_USER} views and alerts already; drop one, or have the "
            "operator of the lake make this one"
        )


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

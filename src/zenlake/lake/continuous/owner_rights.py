"""Whether a view or an alert of a user may run now: the decision, and what it is made from.

The router that decides over users tells the lake every second what the owners of views and alerts
may read and write (`rest/owner_rights`). What it said counts for `LEASE_SECONDS`. A view runs only
while its owner may read exactly what it was planned with, and may put all that it publishes.

Pure: the time is an argument. For any number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final, final

from zenlake.errors import LocalError
from zenlake.keys.readable import ReadableKeys
from zenlake.keys.rights import Rights, in_order
from zenlake.lake.model.continuous_query import ContinuousQuery, Kind
from zenlake.lake.model.owner import OwningUser, words_of
from zenlake.lake.query.visibility import published_by

__all__ = [
    "LEASE_SECONDS",
    "MOST_ROUTERS",
    "ROOTS",
    "SUPERSEDED_SECONDS",
    "OwnerRights",
    "may_drop",
    "may_try",
]

LEASE_SECONDS: Final = 30.0
"""Seconds that the word of a router counts; a busy machine says it again within them."""
SUPERSEDED_SECONDS: Final = 5.0
"""Seconds of silence after which the word of another router takes the place of an older one.

So a router that was started again, as another, speaks for itself alone.
"""
MOST_ROUTERS: Final = 16
"""Routers beside one lake whose word counts at once."""

ROOTS: Final[Mapping[Kind, str]] = {"view": "@lake/views", "alert": "@lake/alerts"}
"""Below which key definitions are made, listed and dropped."""


@final
class OwnerRights:
    """What routers last said of users."""

    def __init__(self) -> None:
        """Nothing was said yet."""
        self._lock = threading.Lock()
        self._said: dict[str, dict[str | None, tuple[float, Rights | None]]] = {}

    def tell(self, router: str, users: Iterable[Mapping[str, Any]], now: float) -> None:
        """Take what a router says of users: `{"user": NAME, "readable": …, "writable": …}`.

        A user without rights is one whom the router does not know. Raises `LocalError`.
        """
        said: dict[str | None, tuple[float, Rights | None]] = {}
        for plain in users:
            if "readable" in plain:
                owner = OwningUser.of(plain)
                said[owner.user] = (now, owner.rights)
            else:
                name = plain.get("user")
                said[None if name is None else str(name)] = (now, None)
        with self._lock:
            for name, users_said in list(self._said.items()):
                if all(at < now - LEASE_SECONDS for at, _ in users_said.values()):
                    del self._said[name]
            if router not in self._said and len(self._said) >= MOST_ROUTERS:
                raise LocalError(f"{MOST_ROUTERS} routers tell this lake of rights already")
            for other, others_said in self._said.items():
                for name in said.keys() & others_said.keys() if other != router else ():
                    if others_said[name][0] < now - SUPERSEDED_SECONDS:
                        del others_said[name]
            self._said.setdefault(router, {}).update(said)

    def hindrance(self, definition: ContinuousQuery, now: float) -> str:
        """Return why a view or an alert may not run now, in a sentence; empty: it may."""
        owner = definition.owner
        if owner is None:
            return ""
        who, kind = words_of(owner), definition.kind
        said = self._of(owner.user, now)
        if not said:
            return (
                f"no router has said for {LEASE_SECONDS:.0f} s what {who} may read; it goes on "
                "when one does: `plugins/rest/lake` of a router names the folder of this lake"
            )
        known = [rights for rights in said if rights is not None]
        if not known:
            return f"{who} is not known to the router any more; drop it, or let the user log in"
        rights = reduce(Rights.both, known)
        for keys in (f"{ROOTS[kind]}/{definition.name}", published_by(kind, definition.name)):
            if not rights.writable.lets(keys):
                return f"{who} may not put '{keys}' any more; it goes on when the rules allow it"
        if in_order(rights.readable) != in_order(owner.rights.readable):
            return (
                f"the rights of {who} changed: the keys that may be read are not those that it was "
                f"made with; drop the {kind} and create it again, and it sees what may be read now"
            )
        return ""

    def may_put(self, owner: OwningUser | None, key: str, now: float) -> bool:
        """Whether an owner may put a key now."""
        if owner is None:
            return True
        known = [rights for rights in self._of(owner.user, now) if rights is not None]
        return bool(known) and all(rights.writable.lets(key) for rights in known)

    def _of(self, user: str | None, now: float) -> list[Rights | None]:
        """What is said of a user by each router whose word still counts."""
        with self._lock:
            found = [users.get(user) for users in self._said.values()]
        return [one[1] for one in found if one is not None and now - one[0] <= LEASE_SECONDS]


def may_drop(asker: OwningUser | None, definition: ContinuousQuery) -> bool:
    """Whether somebody may take a view or an alert away: what is theirs, or all if unrestricted."""
    if asker is None or asker.rights.unrestricted:
        return True
    owner = definition.owner
    return owner is not None and owner.user == asker.user


def may_try(readable: ReadableKeys, definition: ContinuousQuery) -> bool:
    """Whether an asker who may read these keys may see what an alert would have found.

    All that its owner may read must be readable to the asker, and so must what it publishes.
    """
    if not readable.lets(published_by(definition.kind, definition.name)):
        return False
    owner = definition.owner
    sees = () if owner is None else in_order(owner.rights.readable).demands
    return {*in_order(readable).demands} <= {*sees}

"""Tells the lake beside a node what the owners of its views and alerts may do, as rules change.

Every second a request goes to the lake's socket with the rights of those users for whom the lake
acts, and its reply names these users. A lake that hears nothing for a while (`LEASE_SECONDS` of
`lake/continuous/owner_rights`) stops what it does for users.
"""

from __future__ import annotations

import logging
import threading
from typing import Final, final

from zenlake.errors import LocalError
from zenlake.http.users import Users
from zenlake.lake_client import ask
from zenlake.rest.continuous import told_of_user

__all__ = ["OwnerRightsTeller"]

log = logging.getLogger("zenlake.rest")

EVERY_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 5.0
"""Seconds between two while the lake acts for no user: one that makes a view tells, too."""
MOST_OWNERS: Final = 64
"""Users that are told of at once; a lake has fewer views and alerts."""


@final
class OwnerRightsTeller:
    """A thread that tells a lake of rights until it is closed."""

    def __init__(self, folder: str, zid: str, users: Users) -> None:
        """Begin; `folder` is the lake's, `zid` names the node."""
        self._folder = folder
        self._zid = zid
        self._users = users
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="zenlake rights", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tell no more."""
        self._over.set()
        self._thread.join(1.0)

    def _follow(self) -> None:
        owners: tuple[str | None, ...] = ()
        while True:
            try:
                told: tuple[str | None, ...] | None = None
                while told != owners:  # at once of those that the lake has just named
                    told = owners
                    owners = self._tell(told)
            except (OSError, LocalError, ValueError, KeyError, TypeError) as error:
                log.debug("the lake in %s was not told of rights: %s", self._folder, error)
            if self._over.wait(EVERY_SECONDS if owners else IDLE_SECONDS):
                return

    def _tell(self, owners: tuple[str | None, ...]) -> tuple[str | None, ...]:
        """Tell of the rights of these users; gives those that the lake wants to know of."""
        told = [told_of_user(name, self._users.rights_of(name)) for name in owners]
        asking = ask(self._folder, {"do": "rights", "router": self._zid, "users": told})
        if asking is None:
            return owners
        with asking:
            listed = asking.fact()["owners"][:MOST_OWNERS]
        return tuple(name for name in listed if name is None or isinstance(name, str))

"""Requests of HTTP to the socket of the lake beside a node, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, final

from zenlake.http.shares import Shares
from zenlake.http.users import User
from zenlake.lake_client import ask
from zenlake.rest.requests import RequestRefused

__all__ = ["AT_ONCE", "LakeRequests"]

AT_ONCE: Final = 4
"""Requests that the lake works on; it takes seconds to start a question, and each has a thread.

One user, or one address where there are no users, has three of them.
"""


@final
class LakeRequests:
    """Asks the lake of a folder."""

    def __init__(self, folder: str | None) -> None:
        """`folder`: None if there is no lake beside this node."""
        self._folder = folder
        self._places = Shares(AT_ONCE)

    async def ask(self, request: Mapping[str, Any], user: User, address: str) -> dict[str, Any]:
        """Return the answer of the lake; `address`: where the request came from."""
        places, holder = self._places, user.asker(address)
        why = places.refusal(holder)
        if why:
            number = places.taken if why == "all" else places.most_of_one
            whose = "" if why == "all" else " of yours"
            raise RequestRefused(503, f"the lake works on {number} requests{whose}; try again")
        places.take(holder)
        try:
            reply = await asyncio.to_thread(self._asked, request)
        finally:
            places.give_back(holder)
        if reply is None:
            raise RequestRefused(503, "no lake runs beside this node: `zenlake up` starts one")
        return reply

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        if self._folder is None:
            return None
        asking = ask(self._folder, request)
        if asking is None:
            return None
        with asking:
            return asking.fact()

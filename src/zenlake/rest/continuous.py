"""Views and alerts of the lake beside a node, over HTTP: PUT makes one, DELETE drops it.

    PUT    /@lake/views/busy      SELECT key, count(*) AS n FROM samples GROUP BY key
    PUT    /@lake/alerts/low      {"sql": "SELECT …", "for": "10s", "late": "10s", "history": false}
    DELETE /@lake/alerts/low

They go to the socket that `zenlake lake view` uses too, so the same gate judges them. Every request
says there which user it is made for, and what access control lets that user read and write: a view
belongs to its user, and sees no more.
While the node runs, `OwnerRightsTeller` tells the lake of every change.

To make one a user needs the right to put that key, and all keys that the view or alert publishes.
The bus cannot make any: every program that may publish on it could then keep Spark busy for good.
Listing and back-testing are queries, which the lake answers itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, final

from zenlake.errors import LocalError
from zenlake.http.users import User
from zenlake.keys.rights import Rights
from zenlake.rest.lake_requests import LakeRequests
from zenlake.routing.policy.messages import DELETE, INGRESS, PUT
from zenlake.values import Encoding

__all__ = ["ContinuousByHttp", "definition_of", "is_continuous", "told_of_user"]

ROOTS: Final = {"@lake/views/": "view", "@lake/alerts/": "alert"}
LONGEST: Final = 1 << 16
"""Bytes of a definition."""


def is_continuous(key: str) -> bool:
    """Whether a key names a view or an alert."""
    return key.startswith(tuple(ROOTS))


def _named(key: str) -> dict[str, str]:
    for root, kind in ROOTS.items():
        if key.startswith(root):
            return {"kind": kind, "name": key.removeprefix(root)}
    raise LocalError(f"'{key}' names neither a view nor an alert")


def _published(key: str) -> str:
    """The keys of what a view or an alert publishes, for everybody who may read them."""
    named = _named(key)
    return f"{named['kind']}/{named['name']}/**"


def told_of_user(name: str | None, rights: Rights | None) -> dict[str, Any]:
    """What the lake is told of a user; without rights if there is none of this name."""
    return {"user": name, **({} if rights is None else rights.plain())}


def definition_of(key: str, body: bytes, encoding: Encoding | str | None) -> dict[str, Any]:
    """The request that makes what a PUT describes; raises `LocalError` for what is none."""
    if len(body) > LONGEST:
        raise LocalError(f"a view or an alert has at most {LONGEST} bytes")
    try:
        text = body.decode()
        definition = json.loads(text) if encoding == "application/json" else {"sql": text}
    except (ValueError, RecursionError) as error:
        raise LocalError(f"send SQL, or JSON with the member sql: {error}") from None
    if not isinstance(definition, dict) or not isinstance(definition.get("sql"), str):
        raise LocalError('send SQL, or JSON like {"sql": "SELECT …", "for": "10s"}')
    unknown = definition.keys() - {"sql", "for", "late", "history"}
    if unknown:
        raise LocalError(f"'{min(unknown)}' is no member; there are sql, for, late and history")
    return {"action": "create", **_named(key), **definition}


@final
class ContinuousByHttp:
    """Asks the lake for views and alerts."""

    def __init__(self, lake: LakeRequests, zid: str) -> None:
        """`zid` names the node."""
        self._lake = lake
        self._zid = zid

    async def create(
        self, key: str, body: bytes, encoding: Encoding | str | None, user: User, address: str
    ) -> dict[str, Any]:
        """Make a view or an alert; what it is and how it is. Raises `Denied`.

        `address`: where the request came from.
        """
        user.demand(INGRESS, PUT, key)
        request = definition_of(key, body, encoding)
        user.demand(INGRESS, PUT, _published(key))
        return await self._ask(request, user, address)

    async def drop(self, key: str, user: User, address: str) -> dict[str, Any]:
        """Take one away, with its table. Raises `Denied`."""
        user.demand(INGRESS, DELETE, key)
        return await self._ask({"action": "drop", **_named(key)}, user, address)

    async def _ask(self, definition: Mapping[str, Any], user: User, address: str) -> dict[str, Any]:
        request = {
            "do": "continuous",
            **definition,
            "router": self._zid,
            "as": told_of_user(user.name, user.rights),
        }
        return await self._lake.ask(request, user, address)

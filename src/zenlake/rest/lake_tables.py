"""Typed tables of the lake beside a node, over HTTP: PUT makes or changes one, DELETE removes it.

    PUT    /@lake/tables/climate    {"format": "home/${room}/temp", "columns": {"number": "double"}}
    DELETE /@lake/tables/climate

They go to the socket that `zenlake lake table` uses. A user needs the right to put or delete that
key, and to read all keys: a table is for everybody, and the answer counts rows of all its keys.
"""

from __future__ import annotations

import json
from typing import Any, Final, final

from zenlake.errors import LocalError
from zenlake.http.users import Denied, User
from zenlake.rest.lake_requests import LakeRequests
from zenlake.routing.policy.messages import DELETE, INGRESS, PUT

__all__ = ["TablesByHttp", "is_lake_table"]

ROOT: Final = "@lake/tables/"
LONGEST: Final = 1 << 16
"""Bytes of a definition."""


def is_lake_table(key: str) -> bool:
    """Return True if a key names a table of the lake."""
    return key.startswith(ROOT)


@final
class TablesByHttp:
    """Asks the lake for typed tables."""

    def __init__(self, lake: LakeRequests) -> None:
        """Ask this lake."""
        self._lake = lake

    async def put(self, key: str, body: bytes, user: User, address: str) -> dict[str, Any]:
        """Make or change a table; return what it is then. Raises `Denied`."""
        user.demand(INGRESS, PUT, key)
        _demand_all_keys(key, user)
        if len(body) > LONGEST:
            raise LocalError(f"a table is described by at most {LONGEST} bytes")
        try:
            table = json.loads(body)
        except ValueError as error:
            raise LocalError(f"send JSON such as {_EXAMPLE}: {error}") from None
        if not isinstance(table, dict):
            raise LocalError(f"send an object such as {_EXAMPLE}")
        return await self._ask("put", key, user, address, table=table)

    async def remove(self, key: str, user: User, address: str) -> dict[str, Any]:
        """Remove a table with its rows. Raises `Denied`."""
        user.demand(INGRESS, DELETE, key)
        _demand_all_keys(key, user)
        return await self._ask("rm", key, user, address)

    async def _ask(
        self, action: str, key: str, user: User, address: str, **more: Any
    ) -> dict[str, Any]:
        request = {"do": "table", "action": action, "name": key.removeprefix(ROOT), **more}
        return await self._lake.ask(request, user, address)


_EXAMPLE: Final = '{"format": "robot/${id}/pose"}'


def _demand_all_keys(key: str, user: User) -> None:
    if not user.rights.readable.unrestricted:
        who = "without credentials" if user.name is None else f"for user '{user.name}'"
        why = f"'{key}' is denied {who}: tables are made by those who may read all keys"
        raise Denied(403, why, key, user.name or "")

"""Typed tables of the lake beside a node, over HTTP: PUT makes or changes one, DELETE removes it.

    PUT    /@lake/tables/climate    {"format": "home/${room}/temp", "columns": {"number": "double"}}
    PUT    /@lake/tables/climate    {"from": "temp"}              renames the table `temp`
    PUT    /@lake/tables/climate    {"merge": "home_temp"}        takes the keys of `home_temp`, too
    DELETE /@lake/tables/climate

They go to the socket that `zenlake lake table` uses. A user needs the right to put or delete that
key, and to read all keys: a table is for everybody, and the answer counts rows of all its keys. Who
renames or merges needs the right to delete the key of the table that goes. No request names a
decoder, which the lake would import and call.
"""

from __future__ import annotations

import json
from typing import Any, Final, final

from zenlake.errors import LocalError
from zenlake.http.users import Denied, User
from zenlake.keys import check, is_wild
from zenlake.rest.lake_requests import LakeRequests
from zenlake.routing.policy.messages import DELETE, INGRESS, PUT

__all__ = ["TablesByHttp", "is_lake_table"]

ROOT: Final = "@lake/tables/"
DECODER: Final = "decoder"
FROM: Final = "from"
MERGE: Final = "merge"
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
        """Make, change, rename or merge a table; return what it is then. Raises `Denied`."""
        user.demand(INGRESS, PUT, key)
        _demand_all_keys(key, user)
        if len(body) > LONGEST:
            raise LocalError(f"a table is described by at most {LONGEST} bytes")
        try:
            table = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise LocalError(f"send JSON such as {_EXAMPLE}: {error}") from None
        if not isinstance(table, dict):
            raise LocalError(f"send an object such as {_EXAMPLE}")
        if table.get(DECODER) is not None:
            raise LocalError(
                "a decoder is a program, which no request over HTTP may name: write it into "
                "lake.json5, or say `zenlake lake table` on the machine of the lake"
            )
        for member in (FROM, MERGE):
            if member in table:
                return await self._join(member, key, table, user, address)
        return await self._ask("put", key, user, address, table=table)

    async def _join(
        self, member: str, key: str, given: dict[str, Any], user: User, address: str
    ) -> dict[str, Any]:
        """Let a table be what another one is now, or have its keys too; the other one goes."""
        other, form = given[member], given.get("format")
        members = {FROM} if member == FROM else {MERGE, "format"}
        if not isinstance(other, str) or is_wild(other) or given.keys() - members:
            raise LocalError(
                'send the name of a table, and nothing else: {"from": "temp"} renames it, '
                '{"merge": "temp"} takes its keys, also with the "format" of the keys of both'
            )
        gone = ROOT + other
        check(gone)
        user.demand(INGRESS, DELETE, gone)
        if member == FROM:
            return await self._ask("rename", gone, user, address, to=_name_in(key))
        return await self._ask("merge", key, user, address, other=other, format=form)

    async def remove(self, key: str, user: User, address: str) -> dict[str, Any]:
        """Remove a table with its rows. Raises `Denied`."""
        user.demand(INGRESS, DELETE, key)
        _demand_all_keys(key, user)
        return await self._ask("rm", key, user, address)

    async def _ask(
        self, action: str, key: str, user: User, address: str, **more: Any
    ) -> dict[str, Any]:
        request = {"do": "table", "action": action, "name": _name_in(key), **more}
        return await self._lake.ask(request, user, address)


def _name_in(key: str) -> str:
    return key.removeprefix(ROOT)


_EXAMPLE: Final = '{"format": "robot/${id}/pose"}'


def _demand_all_keys(key: str, user: User) -> None:
    if not user.rights.readable.unrestricted:
        who = "without credentials" if user.name is None else f"for user '{user.name}'"
        why = f"'{key}' is denied {who}: tables are made by those who may read all keys"
        raise Denied(403, why, key, user.name or "")

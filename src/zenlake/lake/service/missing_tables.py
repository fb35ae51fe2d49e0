"""The keys that have no table of their own, on the bus.

    @lake/without_table       {"waiting": 2, "without_table": [{"reason", "count", "examples"}]}

`waiting` counts new keys that wait for their siblings. The rest is what `status.json` says, for the
keys that the asker may read.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, final

from zenlake.ext.parameter_check import demand_understood
from zenlake.ext.query_service import JSON, QueryService
from zenlake.keys.readable import ReadableKeys
from zenlake.lake.model.key_families import MOST_EXAMPLES, Refusal

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.api.session import Session
    from zenlake.lake.decode.table_store import FoundTables

__all__ = ["MissingTables"]

ROOT: Final = "@lake/without_table"


@final
class MissingTables:
    """Answers which keys have no table, until it is closed."""

    def __init__(self, session: Session, found: FoundTables) -> None:
        """`found`: the tables of the running lake, and the keys without one."""
        self._session = session
        self._found = found
        self._service = QueryService("missing tables", threads=1)
        self._queryable = session.declare_queryable(ROOT, self._asked)

    def close(self) -> None:
        """Answer no more."""
        self._service.close([self._queryable], self._session)

    def _asked(self, query: Query) -> None:
        self._service.later(query, self._answer)

    def _answer(self, query: Query) -> None:
        demand_understood(query.parameters, ROOT)
        readable = ReadableKeys.in_parameters(query.parameters)
        found = self._found
        if readable.unrestricted:
            waiting, refusals = found.waiting, found.refusals
        else:
            waiting = sum(readable.lets(key) for key in found.pending)
            refusals = _readable_refusals(found.refused, readable)
        document = {"waiting": waiting, "without_table": [asdict(one) for one in refusals]}
        query.reply(ROOT, json.dumps(document), encoding=JSON)


def _readable_refusals(
    refused: dict[str, tuple[str, ...]], readable: ReadableKeys
) -> tuple[Refusal, ...]:
    """Return the refusals of the keys that somebody may read."""
    own = {reason: [key for key in keys if readable.lets(key)] for reason, keys in refused.items()}
    return tuple(
        Refusal(reason, len(keys), tuple(keys[:MOST_EXAMPLES]))
        for reason, keys in own.items()
        if keys
    )

"""Queryables: they reply to queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from zenlake.api.core import SessionCore, open_runtime
from zenlake.api.entity import H, KeyedReceiving, forgotten, receiver_of
from zenlake.api.options import locality
from zenlake.api.query import Query
from zenlake.engine.handlers import QueryQueue
from zenlake.keys import IntoKeyExpr, KeyExpr
from zenlake.node.entities import IncomingQuery
from zenlake.values import Locality

__all__ = ["Queryable", "declare_queryable_of"]


class Queryable(KeyedReceiving[Query, H]):
    """Replies to queries on a key expression."""

    WHAT: ClassVar[str] = "queryable"

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)


def declare_queryable_of(
    session: SessionCore,
    key_expr: IntoKeyExpr,
    handler: object,
    query: Callable[[IncomingQuery], object],
    complete: bool | None = None,
    allowed_origin: Locality | None = None,
) -> Queryable[Any]:
    """Declare a queryable whose handler is given what `query` makes of each query."""
    key = KeyExpr.of(key_expr)
    runtime = open_runtime(session)
    receiver = receiver_of(session, handler, "Query", key)
    with runtime.locked() as node:
        sink = QueryQueue(receiver.channel, query)
        entity = node.local.queryable(str(key), sink, bool(complete), locality(allowed_origin))
        return Queryable(session, receiver, entity)

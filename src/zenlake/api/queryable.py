"""Queryables: they reply to queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from zenlake.api.core import SessionCore, open_runtime
from zenlake.api.entity import H, Receiving, entity_id, forgotten, receiver_of
from zenlake.api.options import locality
from zenlake.api.query import Query
from zenlake.engine.handlers import QueryQueue, Receiver
from zenlake.keys import IntoKeyExpr, KeyExpr
from zenlake.node.entities import IncomingQuery, LocalQueryable
from zenlake.values import EntityGlobalId, Locality

if TYPE_CHECKING:
    from zenlake.node.programs.local import Local

__all__ = ["Queryable", "declare_queryable_of"]


class Queryable(Receiving[H]):
    """Replies to queries on a key expression."""

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    WHAT: ClassVar[str] = "queryable"

    def __init__(self, session: SessionCore, receiver: Receiver, entity: LocalQueryable) -> None:
        """Made by `Session.declare_queryable`."""
        super().__init__(session, receiver)
        self._entity: LocalQueryable = entity

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        self._check()
        return entity_id(self._runtime.zid, self._entity.eid)

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression that it replies to queries on."""
        self._check()
        return KeyExpr.trusted(self._entity.key)

    def recv(self, /) -> Query:
        """The next query; waits for it."""
        query: Query = self._handler().recv()
        return query

    def try_recv(self, /) -> Query | None:
        """The next query if it is here, else None."""
        query: Query | None = self._handler().try_recv()
        return query

    def __iter__(self) -> Iterator[Query]:
        """All queries, until it is undeclared."""
        return self._iterate()

    def _withdraw(self, local: Local) -> None:
        local.unqueryable(self._entity)

    def __repr__(self) -> str:
        """The key expression that it replies to queries on."""
        self._check()
        return f"<Queryable {self._entity.key}>"


def declare_queryable_of(
    session: SessionCore,
    key_expr: IntoKeyExpr,
    handler: object,
    query: Callable[[IncomingQuery], object],
    complete: bool | None,
    allowed_origin: Locality | None,
) -> Queryable[Any]:
    """Declare a queryable whose handler is given what `query` makes of each query."""
    key = KeyExpr.of(key_expr)
    runtime = open_runtime(session)
    receiver = receiver_of(session, handler, "Query", key)
    with runtime.locked() as node:
        sink = QueryQueue(receiver.channel, query)
        entity = node.local.queryable(str(key), sink, bool(complete), locality(allowed_origin))
        return Queryable(session, receiver, entity)

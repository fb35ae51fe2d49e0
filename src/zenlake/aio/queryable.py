"""Queryables: they reply to queries."""

from __future__ import annotations

from typing import Any

from zenlake.aio.entity import Receiving
from zenlake.aio.query import Query
from zenlake.api.queryable import Queryable as SyncQueryable
from zenlake.keys import KeyExpr
from zenlake.values import EntityGlobalId

__all__ = ["Queryable"]


class Queryable(Receiving[SyncQueryable[Any], Query]):
    """Replies to queries on a key expression."""

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        return self._inner.id

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression that it replies to queries on."""
        return self._inner.key_expr

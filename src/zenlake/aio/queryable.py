"""Queryables: they reply to queries."""

from __future__ import annotations

from typing import Any

from zenlake.aio.entity import KeyedReceiving
from zenlake.aio.query import Query
from zenlake.api.queryable import Queryable as SyncQueryable

__all__ = ["Queryable"]


class Queryable(KeyedReceiving[SyncQueryable[Any], Query]):
    """Replies to queries on a key expression."""

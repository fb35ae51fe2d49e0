"""Subscribers."""

from __future__ import annotations

from typing import Any

from zenlake.aio.entity import Receiving
from zenlake.api.subscribe import Subscriber as SyncSubscriber
from zenlake.keys import KeyExpr
from zenlake.node.sample import Sample
from zenlake.values import EntityGlobalId

__all__ = ["Subscriber"]


class Subscriber(Receiving[SyncSubscriber[Any], Sample]):
    """A declared subscription: take its samples, iterate over them, or be called.

    When its channel is full, the links that feed it are read no more until a task has caught up.
    """

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        return self._inner.id

    @property
    def key_expr(self) -> KeyExpr:
        """What it subscribes to."""
        return self._inner.key_expr

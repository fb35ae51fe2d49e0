"""Subscribers."""

from __future__ import annotations

from typing import Any

from zenlake.aio.entity import KeyedReceiving
from zenlake.api.subscribe import Subscriber as SyncSubscriber
from zenlake.node.sample import Sample

__all__ = ["Subscriber"]


class Subscriber(KeyedReceiving[SyncSubscriber[Any], Sample]):
    """A declared subscription: take its samples, iterate over them, or be called.

    When its channel is full, the links that feed it are read no more until a task has caught up.
    """

"""Subscribers."""

from __future__ import annotations

from typing import ClassVar

from zenlake.api.entity import H, KeyedReceiving, forgotten
from zenlake.node.sample import Sample

__all__ = ["Subscriber"]


class Subscriber(KeyedReceiving[Sample, H]):
    """A declared subscription: take its samples, iterate over them, or be called."""

    WHAT: ClassVar[str] = "subscriber"

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

"""Subscribers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from zenlake.api.core import SessionCore
from zenlake.api.entity import H, Receiving, entity_id, forgotten
from zenlake.engine.handlers import Receiver
from zenlake.keys import KeyExpr
from zenlake.node.entities import LivelinessSubscriber, LocalSubscriber
from zenlake.node.sample import Sample
from zenlake.values import EntityGlobalId

if TYPE_CHECKING:
    from zenlake.node.programs.local import Local

__all__ = ["Hearing", "Subscriber"]


class Hearing(Receiving[H]):
    """Something declared that hears the samples of a key expression."""

    WHAT: ClassVar[str] = "subscriber"

    def __init__(
        self,
        session: SessionCore,
        receiver: Receiver,
        entity: LocalSubscriber | LivelinessSubscriber,
    ) -> None:
        """`entity`: what it is to the node."""
        super().__init__(session, receiver)
        self._entity: LocalSubscriber | LivelinessSubscriber = entity

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        self._check()
        return entity_id(self._runtime.zid, self._entity.eid)

    @property
    def key_expr(self) -> KeyExpr:
        """What it subscribes to."""
        self._check()
        return KeyExpr.trusted(self._entity.key)

    def recv(self, /) -> Sample:
        """The next sample; waits for it, and raises `ZError` when there will be none."""
        sample: Sample = self._handler().recv()
        return sample

    def try_recv(self, /) -> Sample | None:
        """The next sample if it is here, else None."""
        sample: Sample | None = self._handler().try_recv()
        return sample

    def __iter__(self) -> Iterator[Sample]:
        """All samples, until it is undeclared."""
        return self._iterate()

    def __repr__(self) -> str:
        """What it subscribes to."""
        self._check()
        return f"<{type(self).__name__} {self._entity.key}>"

    def _withdraw(self, local: Local) -> None:
        entity = self._entity
        if isinstance(entity, LocalSubscriber):
            local.unsubscribe(entity)
        else:
            local.liveliness.unwatch(entity)


class Subscriber(Hearing[H]):
    """A declared subscription: take its samples, iterate over them, or be called."""

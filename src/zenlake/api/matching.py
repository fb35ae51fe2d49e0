"""Matching status: whether a publisher has subscribers, a querier queryables; its listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, final, overload

from mypy_extensions import mypyc_attr

from zenlake.api.core import SessionCore
from zenlake.api.entity import (
    Beside,
    Called,
    Declared,
    H,
    Queued,
    Receiving,
    entity_id,
    forgotten,
    receiver_of,
)
from zenlake.engine.handlers import Handler, Receiver, StatusQueue
from zenlake.keys import KeyExpr
from zenlake.node.entities import LocalQuerier, Publication
from zenlake.values import EntityGlobalId

if TYPE_CHECKING:
    from zenlake.node.programs.local import Local

__all__ = ["Matched", "MatchingListener", "MatchingStatus", "watch_matching"]


@final
class MatchingStatus:
    """Whether a publisher has matching subscribers, or a querier matching queryables."""

    __slots__ = ("_matching",)

    def __init__(self, matching: bool) -> None:
        """True: there is at least one."""
        self._matching: bool = matching

    @property
    def matching(self) -> bool:
        """Whether a node matches."""
        return self._matching

    def __bool__(self) -> bool:
        """Whether a node matches."""
        return self._matching

    def __eq__(self, other: object) -> bool:
        """Equal to the same status."""
        return isinstance(other, MatchingStatus) and self._matching == other._matching

    def __hash__(self) -> int:
        """Equal statuses have equal hashes."""
        return hash(self._matching)

    def __repr__(self) -> str:
        """How to write it."""
        return f"MatchingStatus({self._matching})"


@final
class MatchingListener(Receiving[MatchingStatus, H]):
    """Tells when the first that matches comes, and when the last one leaves."""

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    WHAT: ClassVar[str] = "matching listener"

    def __init__(
        self,
        session: SessionCore,
        receiver: Receiver,
        entity: Publication | LocalQuerier,
        sink: StatusQueue,
    ) -> None:
        """Made by `declare_matching_listener`."""
        super().__init__(session, receiver)
        self._entity: Publication | LocalQuerier = entity
        self._sink: StatusQueue = sink

    def _withdraw(self, local: Local) -> None:
        local.matching.unwatch(self._entity, self._sink)

    def __repr__(self) -> str:
        """What it watches."""
        self._check()
        return f"<MatchingListener {self._entity.key}>"


def watch_matching(
    session: SessionCore, entity: Publication | LocalQuerier, handler: object
) -> MatchingListener[Any]:
    """Begin to listen; the handler hears at once of a status that is true already."""
    receiver = receiver_of(session, handler, "MatchingStatus", entity.key)
    sink = StatusQueue(receiver.channel, MatchingStatus)
    with session.runtime.locked() as node:
        listener: MatchingListener[Any] = MatchingListener(session, receiver, entity, sink)
        node.local.matching.watch(entity, sink)
    return listener


@mypyc_attr(allow_interpreted_subclasses=True)
class Matched(Declared):
    """A publisher or a querier: it knows whether the other side is there."""

    def __init__(self, session: SessionCore, entity: Publication | LocalQuerier) -> None:
        """`entity`: what it is to the node."""
        super().__init__(session)
        #: For the awaiting entity around it.
        self.entity: Publication | LocalQuerier = entity

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        self._check()
        return entity_id(self._runtime.zid, self.entity.eid)

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression that it is declared on."""
        self._check()
        return KeyExpr.trusted(self.entity.key)

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether it has a matching subscriber, or queryable, now."""
        self._check()
        with self._runtime.locked() as node:
            return MatchingStatus(node.local.matching.of(self.entity))

    @overload
    def declare_matching_listener(
        self, /, handler: Queued[MatchingStatus] = None
    ) -> MatchingListener[Handler[MatchingStatus]]: ...
    @overload
    def declare_matching_listener(
        self, /, handler: Beside[MatchingStatus, H]
    ) -> MatchingListener[H]: ...
    @overload
    def declare_matching_listener(
        self, /, handler: Called[MatchingStatus]
    ) -> MatchingListener[None]: ...
    def declare_matching_listener(self, /, handler: object = None) -> MatchingListener[Any]:
        """Be told when the first subscriber or queryable comes, and when the last one leaves.

        Args:
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
        """
        self._check()
        return watch_matching(self._session, self.entity, handler)

    def _withdraw(self, local: Local) -> None:
        entity = self.entity
        if isinstance(entity, Publication):
            local.unpublish(entity)
        else:
            local.unquerier(entity)

    def __repr__(self) -> str:
        """What it is, and its key expression."""
        self._check()
        return f"<{type(self).__name__} {self.entity.key}>"

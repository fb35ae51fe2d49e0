"""Matching status: whether a publisher has subscribers, a querier queryables; its listener."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, final

from zenlake.api.core import SessionCore
from zenlake.api.entity import H, Receiving, forgotten, receiver_of
from zenlake.engine.handlers import Receiver, StatusQueue
from zenlake.node.entities import LocalQuerier, Publication

if TYPE_CHECKING:
    from zenlake.node.programs.local import Local

__all__ = ["MatchingListener", "MatchingStatus", "watch_matching"]


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


class MatchingListener(Receiving[H]):
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

    def recv(self, /) -> MatchingStatus:
        """The next change; waits for it."""
        status: MatchingStatus = self._handler().recv()
        return status

    def try_recv(self, /) -> MatchingStatus | None:
        """The next change if it is here."""
        status: MatchingStatus | None = self._handler().try_recv()
        return status

    def __iter__(self) -> Iterator[MatchingStatus]:
        """All changes, until it is undeclared."""
        return self._iterate()

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

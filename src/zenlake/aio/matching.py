"""Listeners to the matching status of publishers and queriers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zenlake.aio.entity import Declaring, Given, Receiving, on_this_loop
from zenlake.api.matching import MatchingListener as SyncMatchingListener
from zenlake.api.matching import MatchingStatus

if TYPE_CHECKING:
    from zenlake.aio.session import Session
    from zenlake.node.entities import LocalQuerier, Publication

__all__ = ["MatchingListener"]


class MatchingListener(Receiving[SyncMatchingListener[Any], MatchingStatus]):
    """Tells when the first that matches comes, and when the last one leaves."""


def watch(
    session: Session, entity: Publication | LocalQuerier, given: Given[MatchingStatus]
) -> Declaring[MatchingListener]:
    """Begin to listen; told at once if the status is true already."""

    async def declare() -> MatchingListener:
        inner = SyncMatchingListener._watch(session._inner, entity, on_this_loop(given))
        return MatchingListener(session, inner, given)

    return Declaring(declare())

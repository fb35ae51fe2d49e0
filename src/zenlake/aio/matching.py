"""Listeners to the matching status of publishers and queriers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zenlake.aio.core import AwaitingCore
from zenlake.aio.entity import Declaring, Given, Receiving, on_this_loop
from zenlake.api.matching import MatchingListener as SyncMatchingListener
from zenlake.api.matching import MatchingStatus, watch_matching

if TYPE_CHECKING:
    from zenlake.node.entities import LocalQuerier, Publication

__all__ = ["MatchingListener"]


class MatchingListener(Receiving[SyncMatchingListener[Any], MatchingStatus]):
    """Tells when the first that matches comes, and when the last one leaves."""


def watch(
    session: AwaitingCore, entity: Publication | LocalQuerier, given: Given[MatchingStatus]
) -> Declaring[MatchingListener]:
    """Begin to listen; told at once if the status is true already."""

    async def declare() -> MatchingListener:
        inner = watch_matching(session.core, entity, on_this_loop(given))
        return MatchingListener(session, inner, given)

    return Declaring(declare())

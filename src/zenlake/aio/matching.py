"""Listeners to the matching status of publishers and queriers."""

from __future__ import annotations

from typing import Any, TypeVar

from zenlake.aio.entity import Declared, Declaring, Given, Receiving, on_this_loop
from zenlake.api.entity import check_declared
from zenlake.api.matching import Matched as SyncMatched
from zenlake.api.matching import MatchingListener as SyncMatchingListener
from zenlake.api.matching import MatchingStatus, watch_matching
from zenlake.keys import KeyExpr
from zenlake.values import EntityGlobalId

__all__ = ["Matched", "MatchingListener"]

M = TypeVar("M", bound=SyncMatched)


class MatchingListener(Receiving[SyncMatchingListener[Any], MatchingStatus]):
    """Tells when the first that matches comes, and when the last one leaves."""


class Matched(Declared[M]):
    """A publisher or a querier: it knows whether the other side is there."""

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        return self._inner.id

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression that it is declared on."""
        return self._inner.key_expr

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether it has a matching subscriber, or queryable, now."""
        return self._inner.matching_status

    def declare_matching_listener(
        self, /, handler: Given[MatchingStatus] = None
    ) -> Declaring[MatchingListener]:
        """Be told when the first subscriber or queryable comes, and when the last one leaves.

        Parameters as of `zenlake.Publisher.declare_matching_listener`.
        """
        check_declared(self._inner)

        async def declare() -> MatchingListener:
            inner = watch_matching(self._session.core, self._inner.entity, on_this_loop(handler))
            return MatchingListener(self._session, inner, handler)

        return Declaring(declare())

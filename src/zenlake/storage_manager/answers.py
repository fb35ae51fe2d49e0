"""The answers of a storage: values, history, and acknowledged puts.

The value of one key that lies in memory is answered at once; whatever may wait for a volume, or
for a reader that is slow, is answered by threads of its own (`ext/query_service`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from zenlake.engine.claims import HISTORY, NEWEST
from zenlake.errors import LocalError, ZError
from zenlake.ext.ack_duty import DURABLE, LAST, VOLATILE, AckDuty
from zenlake.ext.parameter_check import demand_understood
from zenlake.ext.query_service import QueryService, acknowledge, is_quick
from zenlake.keys import includes
from zenlake.keys.query_parameters import ACK_PUT
from zenlake.newest import Entry
from zenlake.recorded.time_bounds import ALL_TIME, TimeBounds
from zenlake.storage_manager.stored_replies import reply_entries

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.api.session import Session
    from zenlake.clock import Timestamp
    from zenlake.storage_manager.storage import Storage

__all__ = ["StorageReplies"]


#: How many threads answer for one storage, and how many of them for one asker.
THREADS: Final = 16
SHARE: Final = 4


class StorageReplies:
    """The queryable of a storage."""

    def __init__(self, storage: Storage, session: Session) -> None:
        """Begin to answer."""
        self._storage = storage
        self._session = session
        self._service = QueryService(f"storage {storage.name}", THREADS, SHARE)
        past = HISTORY if storage.settings.history == "all" else NEWEST
        self._claims = session.runtime.claims
        self._claim = self._claims.claim(storage.key_expr, HISTORY, past)
        # One that is read only comes after all others: it can only say no.
        rank = LAST if storage.read_only else VOLATILE if storage.volatile else DURABLE
        self._duty = AckDuty(session, storage.key_expr, rank, complete=storage.settings.complete)
        self._queryable = session.declare_queryable(
            storage.key_expr, self._asked, complete=storage.settings.complete
        )

    @property
    def refused(self) -> int:
        """How many queries were answered with an error."""
        return self._service.refused.total()

    def close(self) -> None:
        """Answer no more; who is in the middle of many values gets no more of them."""
        self._service.closed = True
        self._claims.release(self._claim)
        self._duty.close()
        self._service.close([self._queryable], self._session)

    def _asked(self, query: Query) -> None:
        self._storage.counts.queries += 1
        try:
            if not query.incoming.body.parameters and self._at_once(query):
                self._reply_value(query)
                query.drop()
            elif not self._is_mine(query):
                query.drop()
            elif query.parameters.flag(ACK_PUT):
                if self._duty.is_here(str(query.key_expr)):
                    self._service.later(query, self._acknowledge)
            elif self._at_once(query):
                self._answer(query)
                query.drop()
            else:
                self._service.later(query, self._answer)
        except ZError as error:
            self._service.refuse(query, error)

    def _is_mine(self, query: Query) -> bool:
        """Return False if a lake answers; raise `SelectorError` for what a storage refuses."""
        parameters = query.parameters
        if parameters.asks_lake() and any(
            self._claims.left_to_lake(expr) for expr in (query.incoming.key, self._storage.key_expr)
        ):
            return False
        demand_understood(parameters, "storage")
        return True

    def _at_once(self, query: Query) -> bool:
        """Whether nothing of an answer has to wait: neither for a volume nor for its reader."""
        return self._storage.in_memory and is_quick(query)

    def _reply_value(self, query: Query) -> None:
        """Reply with the value of one key: most queries ask for that, and for nothing else."""
        key = query.incoming.key
        self._storage.settle()
        entry = self._storage.value(key)
        if entry is not None and self._claims.is_first(self._claim, key, past=False):
            reply_entries(query, [entry])
            self._storage.counts.replies += 1

    def _answer(self, query: Query) -> None:
        storage = self._storage
        parameters = query.parameters
        asked = parameters.time_range()
        limit = parameters.limit()
        expr = str(query.key_expr)
        past = asked is not None
        batches: Iterable[list[Entry]]
        storage.settle()
        is_mine = self._is_mine_of(past, parameters.asks_lake())
        if asked is None:
            batches = storage.values(expr, ALL_TIME.first, ALL_TIME.last, limit, is_mine)
        else:
            bounds = TimeBounds.of(asked.resolve(time.time_ns()))
            everything = storage.settings.history == "all"
            read = storage.samples if everything else storage.values
            first, last = bounds.first, bounds.last
            batches = [] if bounds.nothing else read(expr, first, last, limit, is_mine)
        counts = storage.counts
        for entries in batches:
            if self._service.is_over(query):
                return
            reply_entries(query, entries)
            counts.replies += len(entries)

    def _is_mine_of(self, past: bool, lake: bool) -> Callable[[str], bool] | None:
        """Return the predicate of the keys that no other service answers; None if it is all.

        A limit counts only what is answered here, so keys are judged before it is applied.
        """
        claims, claim = self._claims, self._claim
        if claims.has_one() and not lake:
            return None
        return lambda key: (
            claims.is_first(claim, key, past=past) and not (lake and claims.left_to_lake(key))
        )

    # ---------------------------------------------------------------------- acknowledged puts

    def _acknowledge(self, query: Query) -> None:
        """Put the payload of a query under its key, and reply when the volume has it."""
        acknowledge(self._session, query, self._stored)

    def _stored(self, key: str, stamp: Timestamp, publish: Callable[[], None]) -> dict[str, object]:
        storage = self._storage
        if storage.read_only:
            raise LocalError(f"storage '{storage.name}' is read_only")
        if not includes(storage.key_expr, key):
            raise LocalError(f"storage '{storage.name}' stores '{storage.key_expr}', not '{key}'")
        publish()
        storage.await_put(key, stamp)
        return {"storage": storage.name}

"""A journal on the bus: its rows by offset, and the past and present of the keys it records.

    @journal/<name>/manifest                  what the journal is, and the segments it has
    @journal/<name>/watermark                 how far it is durable; published as it moves
    @journal/<name>/settled                   the same, when all that was heard so far is durable
    @journal/<name>/ledger                    what came of each source, and what did not
    @journal/<name>/stats                     how the recorder is doing
    @journal/<name>/rows/**?partition=0;start=10;end=20     rows, as Arrow IPC streams
    @journal/<name>/segments/<partition>/<first>/**         a sealed segment, byte by byte
    @/<zid>/<whatami>/journal/<name>/*        the first four again, in the admin space of the node
    robot/**                                  the latest value of each key
    robot/**?_time=[now(-1h)..]               all samples of the last hour

Queries with `_time`, `_filter` and the like are left to a lake while one serves this journal: it
says so by the liveliness token `@lake/<name>`.
"""

from __future__ import annotations

import json
import logging
import threading
import time as clock
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from zenlake.clock.zid import ZenohId
from zenlake.engine.claims import JOURNAL, LAKE, NOTHING, Claim
from zenlake.errors import SelectorError, ZError
from zenlake.ext import ack_duty
from zenlake.ext.ack_duty import AckDuty
from zenlake.ext.parameter_check import demand_understood
from zenlake.ext.query_service import JSON, QueryService, acknowledge, is_quick
from zenlake.journal.reading.lists import holds_of_each
from zenlake.journal.serving.documents import Documents, admin_root, root_of, watermark_json
from zenlake.journal.serving.offsets import OffsetReplies
from zenlake.journal.serving.past import COLUMNS, ordered, reply_latest, reply_rows
from zenlake.journal.serving.readers import demand_all_keys, readable_ledger, readable_manifest
from zenlake.keys import intersects, is_wild
from zenlake.keys.query_parameters import ACK_PUT
from zenlake.keys.readable import ReadableKeys
from zenlake.node.incidents import DENIED
from zenlake.node.inspection.view import is_within
from zenlake.recorded.time_bounds import TimeBounds
from zenlake.routing.resources import TOKEN

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.api.queryable import Queryable
    from zenlake.api.session import Session
    from zenlake.api.subscribe import Subscriber
    from zenlake.clock import Timestamp
    from zenlake.journal.reading.reader import Journal
    from zenlake.journal.serving.acknowledge import Place
    from zenlake.journal.serving.latest import LatestValue
    from zenlake.node.sample import Sample

__all__ = ["JournalReplies"]

log = logging.getLogger("zenlake.journal")

THREADS: Final = 4
"""How many queries are answered from disk, or with many values, at once."""

Matching = Callable[[str], "list[tuple[str, int, bytes, LatestValue]]"]


class JournalReplies:
    """Replies for a journal until it is closed."""

    def __init__(
        self,
        session: Session,
        journal: Journal,
        documents: Documents,
        matching: Matching | None,
        settle: Callable[[], None],
        exprs: list[str],
        *,
        is_ready: Callable[[], bool],
        acknowledge: Callable[[str, Timestamp, Callable[[], None]], Place] | None = None,
        time: bool,
        complete: bool,
    ) -> None:
        """`matching` gives latest values; without it keys are not answered.

        `is_ready`: whether `matching` has them at hand, or waits until they are read. `settle`
        makes durable what was heard before a query about the past. `acknowledge` publishes a put,
        and tells where its row lies when that is durable.
        """
        self._session = session
        self._journal = journal
        self._documents = documents
        self._matching = matching
        self._is_ready = is_ready
        self._settle = settle
        self._acknowledged = acknowledge
        self._time = time
        self._root = root_of(journal.name)
        self._offsets = OffsetReplies(journal, self._root)
        self._exprs = exprs
        self._service = QueryService(f"journal {journal.name}", THREADS)
        self._lake = False
        self._claims = session.runtime.claims
        self._claiming = threading.Lock()
        self._claimed: list[Claim] = []
        self._keys: list[Queryable[None]] = []
        self._lakes: Subscriber[None] = session.liveliness().declare_subscriber(
            f"@lake/{journal.name}", self._lake_changed, history=True
        )
        self._declared: list[Queryable[None]] = [
            session.declare_queryable(f"{self._root}/**", self._received)
        ]
        admin = admin_root(session)
        if admin is not None:
            root = f"{admin}/journal/{journal.name}"
            self._declared.append(
                session.declare_queryable(f"{root}/*", lambda query: self._shown(query, root))
            )
        self._complete = complete
        self._duties: list[AckDuty] = []
        self.answer_keys()
        self._watermark = session.declare_publisher(f"{self._root}/watermark", encoding=JSON)

    @property
    def answers_keys(self) -> bool:
        """Whether keys are answered at this moment."""
        return bool(self._keys)

    def answer_keys(self) -> None:
        """Reply for the keys that are recorded, if that is wanted at all."""
        # Without replies there is nothing to claim.
        if self._matching is None or self._keys or self._service.closed:
            return
        self._duties = [
            AckDuty(self._session, expr, ack_duty.JOURNAL, complete=self._complete)
            for expr in self._exprs
        ]
        self._keys = [
            self._session.declare_queryable(
                expr,
                lambda query, number=number: self._received_key(query, number),  # type: ignore[misc]
                complete=self._complete,
            )
            for number, expr in enumerate(self._exprs)
        ]
        self._claim()

    def withdraw_keys(self) -> None:
        """Reply for no keys: others are asked. The journal still tells of itself."""
        keys, self._keys = self._keys, []
        self._claim()
        if keys and not self._session.is_closed():
            for duty in self._duties:
                duty.close()
            for queryable in keys:
                queryable.undeclare()

    @property
    def lake(self) -> bool:
        """Whether a lake replies for the past."""
        return self._lake

    def tell_watermark(self) -> None:
        """Publish how far the journal is durable."""
        try:
            self._watermark.put(watermark_json(self._documents.watermark()))
        except ZError as error:
            log.debug("the watermark was not told: %s", error)

    def close(self) -> None:
        """Reply no more."""
        self._service.closed = True
        self._offsets.close()
        self.withdraw_keys()
        self._service.close()
        if self._session.is_closed():
            return
        for queryable in self._declared:
            queryable.undeclare()
        self._lakes.undeclare()
        self._watermark.undeclare()

    def _lake_changed(self, token: Sample) -> None:
        self._lake = token.kind.name == "PUT" and self._claimed_here(str(token.key_expr))
        self._claim()

    def _claimed_here(self, key: str) -> bool:
        """Whether a token was declared on this machine: a stranger's would silence us."""
        runtime = self._session.runtime
        with runtime.locked() as node:
            holders = node.tables.holders(TOKEN, key, node.face)
            if any(is_within(node, face.zid) for face in holders):
                return True
            if not holders:
                return True  # this very node declared it
            node.incidents.add(
                DENIED,
                node.now,
                peer=", ".join(str(ZenohId(face.zid)) for face in holders[:3]),
                key=key,
                reason="a lake is believed only over links within this machine",
            )
        log.warning("a lake that is not on this machine claims %s: it is not believed", key)
        return False

    def _claim(self) -> None:
        """Say what is replied to here, or by a lake for this journal."""
        with self._claiming:
            before = self._claimed
            past = LAKE if self._lake else JOURNAL if self._time else NOTHING
            # Without answers there is nothing to claim.
            exprs = self._exprs if self._keys else ()
            self._claimed = [self._claims.claim(expr, JOURNAL, past) for expr in exprs]
            for claim in before:
                self._claims.release(claim)

    # ------------------------------------------------------------------------------ queries

    def _received(self, query: Query) -> None:
        """Reply to a query for the journal's own documents."""
        selector = str(query.key_expr)
        try:
            demand_understood(query.parameters, "@journal")
            if selector.startswith(f"{self._root}/rows"):
                self._service.later(query, self._offsets.rows)
            elif selector.startswith(f"{self._root}/segments/"):
                demand_all_keys(query, "segments have the rows of all keys; read rows/** instead")
                self._service.later(query, self._offsets.segment)
            elif selector == f"{self._root}/settled":
                self._service.later(query, self._settled)
            else:
                self._service.later(query, lambda query: self._show(query, self._root))
        except ZError as error:
            self._service.refuse(query, error)

    def _settled(self, query: Query) -> None:
        self._settle()
        watermark = watermark_json(self._documents.watermark())
        query.reply(f"{self._root}/settled", watermark, encoding=JSON)

    def _shown(self, query: Query, root: str) -> None:
        """Show the documents to an operator whose query for the admin space names journals."""
        if "/journal" in str(query.key_expr):
            # What is not understood is refused by the node's own admin space, once.
            with suppress(SelectorError):
                demand_understood(query.parameters, "@")
                self._service.later(query, lambda query: self._show(query, root))

    def _show(self, query: Query, root: str) -> None:
        selector = str(query.key_expr)
        readable = ReadableKeys.in_parameters(query.parameters)
        made: dict[str, Callable[[], str]] = {
            "manifest": lambda: json.dumps(readable_manifest(self._journal, readable)),
            "watermark": lambda: watermark_json(self._documents.watermark()),
            "ledger": lambda: json.dumps(readable_ledger(self._documents.ledger(), readable)),
            "stats": lambda: json.dumps(self._documents.stats()),
        }
        for name, text in made.items():
            key = f"{root}/{name}"
            if intersects(selector, key):
                query.reply(key, text(), encoding=JSON)

    def _received_key(self, query: Query, number: int) -> None:
        """Reply to a query for keys that are recorded."""
        try:
            parameters = query.parameters
            if self._lake and parameters.asks_lake():
                return
            demand_understood(parameters, "recorder")
            if parameters.flag(ACK_PUT):
                if self._duties[number].is_here(str(query.key_expr)):
                    self._service.later(query, self._acknowledge)
                return
            if parameters.time_range() is None:
                if self._is_ready() and is_quick(query):
                    self._reply_latest(query, number)
                else:
                    self._service.later(query, lambda query: self._reply_latest(query, number))
            elif self._time:
                self._service.later(query, lambda query: self._past(query, number))
        except ZError as error:
            self._service.refuse(query, error)

    # ---------------------------------------------------------------------------------- keys

    def _is_mine(self, key: str, number: int, *, past: bool) -> bool:
        """Return False if another expression, or a storage, replies for the key."""
        claimed = self._claimed  # empty as soon as keys are withdrawn
        return (
            number < len(claimed)
            and intersects(self._exprs[number], key)
            and self._claims.is_first(claimed[number], key, past=past)
        )

    def _reply_latest(self, query: Query, number: int) -> None:
        assert self._matching is not None
        found = [
            latest
            for latest in self._matching(str(query.key_expr))
            if self._is_mine(latest[0], number, past=False)
        ]
        limit = query.parameters.limit()
        if limit is not None:
            found = sorted(found, key=lambda latest: (latest[1], latest[0]))[:limit]
        reply_latest(query, found, lambda: self._service.is_over(query))

    def _acknowledge(self, query: Query) -> None:
        """Put the payload of a query under its key, and reply when the journal has it."""
        acknowledge(self._session, query, self._recorded)

    def _recorded(self, key: str, stamp: Timestamp, publish: Callable[[], None]) -> dict[str, Any]:
        assert self._acknowledged is not None
        partition, offset = self._acknowledged(key, stamp, publish)
        return {"journal": self._journal.name, "partition": partition, "offset": offset}

    def _past(self, query: Query, number: int) -> None:
        """Reply with all samples in a range of time, in the order of time."""
        parameters = query.parameters
        time_range = parameters.time_range()
        assert time_range is not None
        limit = parameters.limit()
        bounds = TimeBounds.of(time_range.resolve(clock.time_ns()))
        self._settle()
        rows = ordered(self._rows(str(query.key_expr), bounds, number), limit)
        if rows is not None:
            reply_rows(query, rows, lambda: self._service.is_over(query))

    def _rows(self, keys: str, bounds: TimeBounds, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a range of time that are answered under one expression."""
        for batch in self._journal.scan(keys=keys, time=bounds, columns=COLUMNS):
            mine = holds_of_each(
                batch.column("key"),
                lambda key: not is_wild(key) and self._is_mine(key, number, past=True),
            )
            yield batch if mine.all() else batch.filter(pa.array(mine))

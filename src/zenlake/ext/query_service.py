"""Answers queries on a bounded pool of threads, askers in turn; refuses with words.

    service = QueryService("journal", threads=4)
    session.declare_queryable("robot/**", lambda query: service.later(query, answer))

Recorders, storages, lakes, views and the admin space give it what they answer. It decides whose
query is next (`engine/asker_lanes`), tells an asker what is wrong (a reply with `{"error": …}`),
counts what it answered and refused, and makes acknowledged puts. What it answers is no longer sent
when the asker has gone.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Final

from zenlake.api.options import encoding_parts
from zenlake.engine.asker_lanes import MOST, AskerLanes
from zenlake.errors import JournalGap, LocalError, SelectorError, ZError
from zenlake.keys import is_wild
from zenlake.keys.asker import ASKER, named_asker
from zenlake.node.queries.replies import is_over, would_wait
from zenlake.routing.regions import LOCAL, ROUTER
from zenlake.wire.codec_zenoh import Err

if TYPE_CHECKING:
    from zenlake.api.entity import Declared
    from zenlake.api.query import Query
    from zenlake.api.session import Session
    from zenlake.clock import Timestamp

__all__ = ["JSON", "QueryService", "acknowledge", "asker_of", "is_quick"]

log = logging.getLogger("zenlake.ext")

JSON: Final = "application/json"
TOO_MANY: Final = LocalError("too many queries wait already; ask again")
Submit = Callable[[Hashable, Callable[[], None]], bool]


class QueryService:
    """The pool of one service, until it is closed."""

    def __init__(
        self,
        name: str,
        threads: int,
        share: int | None = None,
        *,
        most: int = MOST,
        expected: tuple[type[Exception], ...] = (ZError, OSError),
    ) -> None:
        """Answer on so many `threads`, of which one asker has `share` at once.

        `most`: queries that may wait. `expected`: errors that are the asker's business alone; all
        others are logged too.
        """
        self._lanes = AskerLanes(f"zenlake {name}", threads, share, most=most)
        self._expected = expected
        self.closed = False
        self.answered = 0
        self.refused: Counter[str] = Counter()
        """Refusals by reason: `busy`, `invalid` (the query), `failed` (answering it)."""

    def close(self, declared: Iterable[Declared] = (), session: Session | None = None) -> None:
        """Answer no more, and wait for the answers that have begun.

        `declared`: what is undeclared first, unless its `session` is closed.
        """
        self.closed = True
        if session is not None and not session.is_closed():
            for one in declared:
                one.undeclare()
        self._lanes.close()

    def end(self) -> None:
        """Answer no more, without waiting: the caller may hold the node's lock."""
        self.closed = True
        self._lanes.end()

    def later(
        self, query: Query, answer: Callable[[Query], None], submit: Submit | None = None
    ) -> None:
        """Answer on a thread of the pool: a disk, or the asker, may be slow.

        `submit`: of another pool, where the answer needs what that one bounds.
        """
        if not self._enqueue(query, answer, submit):
            self.refuse(query, TOO_MANY)

    def later_locked(self, query: Query, answer: Callable[[Query], None]) -> None:
        """Do the same for a caller that holds the node's lock."""
        if not self._enqueue(query, answer):
            incoming = query.incoming
            encoding, schema = encoding_parts(JSON)
            error = Err(encoding=encoding, schema=schema, payload=self._refusal(TOO_MANY))
            incoming.replying.reply(incoming, incoming.key, error)
            incoming.replying.finish_query(incoming)

    def _enqueue(
        self, query: Query, answer: Callable[[Query], None], submit: Submit | None = None
    ) -> bool:
        """Have a query answered in its asker's turn; return False if it has to be refused."""

        def run() -> None:
            try:
                with query:
                    try:
                        if not self.is_over(query):
                            answer(query)
                            self.answered += 1
                    except self._expected as error:
                        self.refuse(query, error)
                    except Exception as error:
                        log.exception("a query failed: %s", query)
                        self.refuse(query, error)
            except ZError as error:
                log.debug("an answer to %s was lost: %s", query, error)

        return (submit or self._lanes.submit)(asker_of(query), run) or self.closed

    def is_over(self, query: Query) -> bool:
        """Return True if nobody waits for the answer any more."""
        incoming = query.incoming
        deadline = incoming.branch.query.deadline
        return self.closed or is_over(incoming) or time.monotonic() > deadline

    def refuse(self, query: Query, error: Exception) -> None:
        """Count a refusal, and reply with what is wrong."""
        try:
            query.reply_err(self._refusal(error), encoding=JSON)
        except ZError as again:
            log.debug("%s was not answered: %s", query, again)

    def _refusal(self, error: Exception) -> bytes:
        """Count a refusal; return what is replied."""
        if error is TOO_MANY:
            self.refused["busy"] += 1
        else:
            self.refused["invalid" if isinstance(error, ZError) else "failed"] += 1
        refusal: dict[str, object] = {"error": str(error)}
        if isinstance(error, JournalGap):
            refusal |= {"partition": error.partition, "earliest": error.earliest}
        return json.dumps(refusal).encode()


def is_quick(query: Query) -> bool:
    """Return True for one key whose reply need not wait until the asker reads others.

    What lies in memory may be answered at once then, without a thread of the pool. The reply waits
    for nobody: other answers may fill what the asker has not read in the same moment.
    """
    quick = not is_wild(query.incoming.key) and not would_wait(query.incoming)
    query.incoming.may_wait = not quick
    return quick


def acknowledge(
    session: Session,
    query: Query,
    store: Callable[[str, Timestamp, Callable[[], None]], dict[str, object]],
) -> None:
    """Put the payload of a query under its key, and reply when it is stored.

    `store` is given the key, the time of the put and what publishes it; it waits until the put is
    stored, and returns what the asker is told of it.
    """
    key, payload = str(query.key_expr), query.payload
    if is_wild(key):
        raise SelectorError(f"'{key}' has wildcards: an acknowledged put is for one key")
    stamp = session.new_timestamp()

    def publish() -> None:
        session.put(
            key,
            b"" if payload is None else payload,
            encoding=query.encoding,
            attachment=query.attachment,
            timestamp=stamp,
        )

    receipt = {**store(key, stamp, publish), "timestamp": str(stamp)}
    query.reply(key, json.dumps(receipt), encoding=JSON, timestamp=stamp)


def asker_of(query: Query) -> tuple[object, ...]:
    """Return who asked, as far as a query tells: the neighbour, unless others ask through it.

    Others ask through a router, and over HTTP through this very node. Their askers have names
    (`keys/asker`) where a lake may answer. A query without one that a router passed on has the
    asker of its source info. Without that, what is asked for stands for the asker: queries about
    the same keys wait behind one another.
    """
    incoming = query.incoming
    face = incoming.branch.query.source
    if face.role not in (ROUTER, LOCAL):
        return (face.zid,)
    asker = named_asker(incoming.body.parameters)
    if asker:
        return (face.zid, ASKER, asker)
    if face.role == LOCAL:
        return (face.zid,)
    source = incoming.body.source_info
    if source is not None:
        return (source.zid, source.eid)
    return (face.zid, incoming.key)

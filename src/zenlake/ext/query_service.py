"""Answers queries on a bounded pool of threads, askers in turn; refuses with words.

    service = QueryService("journal", threads=4)
    session.declare_queryable("robot/**", lambda query: service.later(query, answer))

Recorders, storages, lakes and views give it what they answer. It decides whose query is next
(`engine/asker_lanes`), tells an asker what is wrong (a reply with `{"error": …}`), and makes
acknowledged puts. What it answers is no longer sent when the asker has gone.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

from zenlake.engine.asker_lanes import AskerLanes
from zenlake.errors import JournalGap, LocalError, SelectorError, ZError
from zenlake.keys import is_wild
from zenlake.node.queries.replies import is_over
from zenlake.routing.regions import ROUTER

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.api.session import Session
    from zenlake.clock import Timestamp

__all__ = ["JSON", "QueryService", "acknowledge", "asker_of"]

log = logging.getLogger("zenlake.ext")

JSON: Final = "application/json"
Submit = Callable[[Hashable, Callable[[], None]], bool]


class QueryService:
    """The pool of one service, until it is closed."""

    def __init__(
        self,
        name: str,
        threads: int,
        share: int | None = None,
        *,
        expected: tuple[type[Exception], ...] = (ZError, OSError),
    ) -> None:
        """Answer on so many `threads`, of which one asker has `share` at once.

        `expected`: errors that are the asker's business alone; all others are logged too.
        """
        self._lanes = AskerLanes(f"zenlake {name}", threads, share)
        self._expected = expected
        self.closed = False
        self.answered = 0
        self.refused = 0

    def close(self) -> None:
        """Answer no more, and wait for the answers that have begun."""
        self.closed = True
        self._lanes.close()

    def later(
        self, query: Query, answer: Callable[[Query], None], submit: Submit | None = None
    ) -> None:
        """Answer on a thread of the pool: a disk, or the asker, may be slow.

        `submit`: of another pool, where the answer needs what that one bounds.
        """

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

        waits = (submit or self._lanes.submit)(asker_of(query), run)
        if not waits and not self.closed:
            self.refuse(query, LocalError("too many queries wait already; ask again"))

    def is_over(self, query: Query) -> bool:
        """Return True if nobody waits for the answer any more."""
        incoming = query.incoming
        deadline = incoming.branch.query.deadline
        return self.closed or is_over(incoming) or time.monotonic() > deadline

    def refuse(self, query: Query, error: Exception) -> None:
        """Reply with what is wrong."""
        self.refused += 1
        refusal: dict[str, object] = {"error": str(error)}
        if isinstance(error, JournalGap):
            refusal |= {"partition": error.partition, "earliest": error.earliest}
        try:
            query.reply_err(json.dumps(refusal), encoding=JSON)
        except ZError as again:
            log.debug("%s was not answered: %s", query, again)


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
    """Return who asked, as far as a query tells: the neighbour, unless that is a router.

    Routers pass queries on without the name of the asker. Where the source info does not tell it
    either, what is asked for stands for it: queries about the same keys wait behind one another.
    """
    incoming = query.incoming
    face = incoming.branch.query.source
    if face.role != ROUTER:
        return (face.zid,)
    source = incoming.body.source_info
    if source is not None:
        return (source.zid, source.eid)
    return (face.zid, incoming.key)

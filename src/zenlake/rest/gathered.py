"""The replies to one query of HTTP, gathered where they come in: its answer is given whole.

The loop of HTTP is woken once, when all have come or the bounds of an answer are reached.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Final, final

from zenlake.api.options import encoding_parts
from zenlake.api.plain_get import QOS
from zenlake.api.reply import Reply
from zenlake.http.shares import Holding
from zenlake.node.entities import ReplySink
from zenlake.node.queries.gets import LATEST, NONE
from zenlake.rest.asking import Asked
from zenlake.wire.codec_zenoh import Del, Err, QueryBody

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime
    from zenlake.node.sample import Sample
    from zenlake.values import Encoding
    from zenlake.wire.codec_network import Responder
    from zenlake.wire.codec_zenoh import Put

__all__ = ["Gathered", "gather"]

ROW_BYTES: Final = 500
"""Bytes that a reply takes beside its key and its payload, or so."""
STEP_BYTES: Final = 1 << 16
"""Bytes of replies that are kept before any are held, and that are held more than there are."""


@final
class Gathered(ReplySink):
    """What was replied to a query, within bounds."""

    def __init__(
        self,
        most: int,
        most_bytes: int,
        lets: Callable[[str], bool] | None,
        held: Holding,
    ) -> None:
        """For a task of the running loop.

        Args:
            most: how many replies are kept.
            most_bytes: how many bytes of payloads.
            lets: says of which keys replies may be seen.
            held: what has come is held here, and goes on to be when all has.
        """
        self._most = most
        self._most_bytes = most_bytes
        self._lets = lets
        self._held = held
        self._room = STEP_BYTES
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._size = 0
        self._kept = 0
        self._is_judged = False
        self._cut = ""
        self._left_out = ""
        self.items: list[Sample | Reply] = []
        #: Whether nobody waits for it any more.
        self.abandoned = False
        #: Done when there will be no more.
        self.over: asyncio.Future[None] = self._loop.create_future()

    @property
    def cut(self) -> str:
        """What there was too much of, if not all is here.

        "rows" or "bytes" of this answer, "memory" of all answers together.
        """
        return self._cut or self._left_out

    def keeps(self, key: str, many: int, size: int) -> bool:
        """Return whether the node keeps a reply until all have come; then it passes them on."""
        self._is_judged = True
        if self._cut or self.abandoned or (self._lets is not None and not self._lets(key)):
            return False
        kept = self._kept + size
        if many > self._most or kept > self._most_bytes:
            self._left_out = "rows" if many > self._most else "bytes"
            return False
        weight = kept + many * ROW_BYTES
        if weight > self._room and not self._has_room(weight):
            return False
        self._kept = kept
        return True

    def push(self, key: str, body: Put | Del | Err, responder: Responder | None, qos: int) -> None:
        """One reply."""
        size = 0 if isinstance(body, Del) else len(body.payload)
        lets = self._lets
        # What the node kept was judged then; errors it passes on at once.
        judged = self._is_judged and not isinstance(body, Err)
        if lets is None or judged or lets(key):
            self._add(Reply(key, body, responder, qos), size)

    def value(self, sample: Sample, responder: Responder | None) -> None:
        """One reply that is an ordinary value."""
        lets = self._lets
        if lets is None or self._is_judged or lets(str(sample.key_expr)):
            self._add(sample, sample.size())

    def _add(self, item: Sample | Reply, size: int) -> None:
        if self._cut or self.abandoned:
            return
        self._size += size
        if len(self.items) >= self._most:
            self._cut = "rows"
            self.end()
        elif self._size > self._most_bytes:
            self._cut = "bytes"
            self.end()
        else:
            weight = self._size + (len(self.items) + 1) * ROW_BYTES
            if weight <= self._room or self._has_room(weight):
                self.items.append(item)

    @property
    def weight(self) -> int:
        """Bytes that the replies take, or so, and the one for which there was no room."""
        return self._room

    def _has_room(self, weight: int) -> bool:
        """Hold the bytes of the replies, some more at a time than they have; or end."""
        self._room = weight + STEP_BYTES
        if self._held.hold(self._room):
            return True
        self._cut = "memory"
        self.end()
        return False

    def end(self) -> None:
        """There will be no more, or no more is taken."""
        if get_ident() == self._thread:
            self._end()
            return
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
            self._loop.call_soon_threadsafe(self._end)

    def abandon(self) -> None:
        """Wait no more: who asked has gone."""
        self.abandoned = not self.over.done()
        self._end()

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


async def gather(
    runtime: Runtime,
    wanted: Asked,
    parameters: str,
    gathered: Gathered,
    timeout: float,
    value: tuple[bytes, Encoding | None] | None = None,
) -> None:
    """Send a query and wait for its replies.

    Args:
        runtime: The node.
        wanted: What is asked for.
        parameters: The parameters of the selector, with what was added to them.
        gathered: Where replies go.
        timeout: How long they may take, in seconds.
        value: A payload that travels with the query, and its encoding.
    """
    body: QueryBody | None = None
    if value is not None:
        id, schema = encoding_parts(value[1])
        body = QueryBody(encoding=id, schema=schema, payload=value[0])
    with runtime.locked() as node:
        get = node.local.get(
            wanted.key,
            parameters,
            gathered,
            consolidation=NONE if wanted.timed else LATEST,
            any_key=wanted.any_key,
            timeout=timeout,
            qos=QOS,
            body=body,
            timed=wanted.timed,
        )
    try:
        await gathered.over
    finally:
        if not get.over and not runtime.closed:
            with runtime.locked() as node:
                node.local.cancel(get)

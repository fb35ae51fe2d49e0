"""The replies to one query of HTTP, gathered where they come in: its answer is given whole.

The loop of HTTP is woken once, when all have come or the bounds of an answer are reached.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, final

from zenlake.api.options import encoding_parts
from zenlake.api.plain_get import QOS
from zenlake.api.reply import Reply
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


@final
class Gathered(ReplySink):
    """What was replied to a query, within bounds."""

    def __init__(self, most: int, most_bytes: int, lets: Callable[[str], bool] | None) -> None:
        """For a task of the running loop; `lets` says of which keys replies may be seen."""
        self._most = most
        self._most_bytes = most_bytes
        self._lets = lets
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._size = 0
        self.items: list[Sample | Reply] = []
        #: What there was too much of, "rows" or "bytes", if not all is here.
        self.cut = ""
        #: Whether nobody waits for it any more.
        self.abandoned = False
        #: Done when there will be no more.
        self.over: asyncio.Future[None] = self._loop.create_future()

    def push(self, key: str, body: Put | Del | Err, responder: Responder | None, qos: int) -> None:
        """One reply."""
        size = 0 if isinstance(body, Del) else len(body.payload)
        self._add(Reply(key, body, responder, qos), key, size)

    def value(self, sample: Sample, responder: Responder | None) -> None:
        """One reply that is an ordinary value."""
        self._add(sample, str(sample.key_expr), sample.size())

    def _add(self, item: Sample | Reply, key: str, size: int) -> None:
        if self.cut or (self._lets is not None and not self._lets(key)):
            return
        self._size += size
        if len(self.items) >= self._most:
            self.cut = "rows"
            self.end()
        elif self._size > self._most_bytes:
            self.cut = "bytes"
            self.end()
        else:
            self.items.append(item)

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

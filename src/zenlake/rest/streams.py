"""Streams of events: those who read the same key expression share a subscriber.

A sample wakes the loop of HTTP once and is written as text once, however many read it. Each reader
has a queue of its own, so that one who is slow misses samples alone, and is told how many. What
waits in it is bounded by number and by bytes, and is held among the answers that are not sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from zenlake.engine.handlers import RingChannel
from zenlake.errors import ZError
from zenlake.http.shares import Holding
from zenlake.rest.samples import Row, event, row_of
from zenlake.transport.drops import EVENTS, DropLog

if TYPE_CHECKING:
    from zenlake.aio.session import Session
    from zenlake.aio.subscribe import Subscriber
    from zenlake.node.sample import Sample

__all__ = ["EventReader", "EventStream", "SampleEvent", "Streams"]

ALIVE: Final = 15.0
"""Seconds after which a silent stream says that it is alive."""
BATCH: Final = 256
"""Samples that a reader is given at a time, or a feed passes on before others have their turn."""
BATCH_BYTES: Final = 1 << 16
"""Bytes of samples that a reader is given at a time, and one sample more."""
WAITING_BYTES: Final = 1 << 20
"""Bytes of samples that wait for a reader that is slow; one sample may have more."""
SAMPLE_BYTES: Final = 300
"""Bytes that a sample takes beside its key and its payload, or so."""


class SampleEvent:
    """A sample as an event, written as text once for all readers."""

    __slots__ = ("_texts", "row", "weight")

    def __init__(self, row: Row) -> None:
        """Nothing is written yet."""
        self.row = row
        #: The bytes that it takes, or so.
        self.weight = len(row.key) + len(row.payload) + SAMPLE_BYTES
        self._texts: dict[bool, bytes] = {}

    def text(self, most: int | None) -> bytes:
        """The event; without its payload if that has more bytes than `most`."""
        size = len(self.row.payload)
        cut = most is not None and size > most
        text = self._texts.get(cut)
        if text is None:
            text = event(replace(self.row, payload=b"", cut=size) if cut else self.row)
            self._texts[cut] = text
        return text


class EventReader:
    """Who reads a stream: what waits for it, and how much it has missed."""

    def __init__(self, feed: EventFeed, most: int, held: Holding) -> None:
        """At most `most` samples wait, and are held; of more the oldest are missed."""
        self.feed = feed
        self._most = most
        self._held = held
        self._waiting: deque[SampleEvent] = deque()
        self._bytes = 0
        #: Bytes of the samples that it was given last, which are being sent.
        self._sending = 0
        self._wake: asyncio.Future[None] | None = None
        self.missed = 0
        self.ended = False

    def offer(self, sample: SampleEvent) -> None:
        """One more sample."""
        waiting = self._waiting
        while waiting and (
            len(waiting) >= self._most or self._bytes + sample.weight > WAITING_BYTES
        ):
            oldest = waiting.popleft()
            self._bytes -= oldest.weight
            self._drop(oldest)
        if self._held.hold(self._bytes + sample.weight + self._sending):
            self._bytes += sample.weight
            waiting.append(sample)
        else:
            self._drop(sample)
        self.wake()

    def _drop(self, sample: SampleEvent) -> None:
        self.feed.lost.one(EVENTS, sample.row.key)
        self.miss(1)

    def miss(self, many: int) -> None:
        """So many samples were not kept for it."""
        self.missed += many
        self.feed.missed += many

    def wake(self) -> None:
        """Have `take` return."""
        wake = self._wake
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def take(self) -> list[SampleEvent] | None:
        """The samples that wait; none if there were none for long, None when none will come."""
        waiting = self._waiting
        self._sending = 0
        if not waiting:
            self._held.force(0)
        if not waiting and not self.ended:
            loop = asyncio.get_running_loop()
            self._wake = loop.create_future()
            timer = loop.call_later(ALIVE, self.wake)
            try:
                await self._wake
            finally:
                timer.cancel()
                self._wake = None
        if self.ended and not waiting:
            return None
        batch: list[SampleEvent] = []
        while waiting and len(batch) < BATCH and self._sending < BATCH_BYTES:
            told = waiting.popleft()
            batch.append(told)
            self._sending += told.weight
        self._bytes -= self._sending
        self._held.force(self._bytes + self._sending)
        return batch

    def close(self) -> None:
        """Hold nothing any more."""
        self._held.close()


class EventFeed:
    """A subscriber of one key expression, and all who read what it hears."""

    def __init__(self, key: str, lost: DropLog) -> None:
        """Not subscribed yet; `lost` counts what readers miss."""
        self.key = key
        self.lost = lost
        #: Whether it hears no more.
        self.ended = False
        self.readers: set[EventReader] = set()
        self.subscriber: Subscriber | None = None
        self.running: asyncio.Task[None] | None = None
        self._lost = 0
        #: What its readers missed, all together.
        self.missed = 0

    async def run(self, subscriber: Subscriber) -> None:
        """Pass on what the subscriber hears, until it hears no more; then its readers end too."""
        try:
            with contextlib.suppress(ZError):
                while True:
                    sample: Sample | None = await subscriber.recv()
                    many = 0
                    while sample is not None:
                        heard = SampleEvent(row_of(sample))
                        for reader in self.readers:
                            reader.offer(heard)
                        many += 1
                        sample = subscriber.try_recv() if many < BATCH else None
                    self._count(sum(subscriber.stats.dropped.values()))
                    await asyncio.sleep(0)
        finally:
            self.ended = True
            for reader in self.readers:
                reader.ended = True
                reader.wake()

    def _count(self, lost: int) -> None:
        """What came faster than it was passed on is missed by all."""
        if lost > self._lost:
            for reader in self.readers:
                reader.miss(lost - self._lost)
            self._lost = lost


class Streams:
    """The streams that are open."""

    def __init__(self, session: Session, most: int) -> None:
        """`most`: samples that wait for a reader."""
        self._session = session
        self._most = most
        self._feeds: dict[str, EventFeed] = {}
        self._lost = DropLog(session.runtime.node.drops)
        #: How many are open.
        self.open = 0
        self._missed = 0
        self._opening = asyncio.Lock()

    @property
    def missed(self) -> int:
        """Samples that slow readers did not get."""
        return self._missed + sum(feed.missed for feed in list(self._feeds.values()))

    async def join(self, key: str, held: Holding) -> EventReader:
        """One who reads a key expression from now on; must `leave`. Raises `ZError`.

        What waits for the reader is `held`.
        """
        async with self._opening:
            feed = self._feeds.get(key)
            if feed is None or feed.ended:
                feed = EventFeed(key, self._lost)
                feed.subscriber = await self._session.declare_subscriber(
                    key, RingChannel(self._most)
                )
                feed.running = asyncio.create_task(feed.run(feed.subscriber))
                self._feeds[key] = feed
            reader = EventReader(feed, self._most, held)
            feed.readers.add(reader)
            self.open += 1
            return reader

    async def leave(self, reader: EventReader) -> None:
        """Read no more; the last one ends the subscriber."""
        feed = reader.feed
        if reader not in feed.readers:
            return
        feed.readers.discard(reader)
        reader.close()
        self.open -= 1
        if feed.readers:
            return
        if self._feeds.get(feed.key) is feed:
            del self._feeds[feed.key]
        self._missed += feed.missed
        if feed.running is not None:
            feed.running.cancel()
        if feed.subscriber is not None:
            with contextlib.suppress(ZError):
                await feed.subscriber.undeclare()


class EventStream(StreamingResponse):
    """An answer that goes on; what it needs is let go of however it ends, also before it began."""

    def __init__(
        self, events: AsyncGenerator[bytes, None], leave: Callable[[], Awaitable[None]]
    ) -> None:
        """`leave` is called at its end."""
        # Not as a media type: to that of a text the library adds a charset.
        headers = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
        super().__init__(events, headers=headers)
        self._events = events
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._leave()
            await self._events.aclose()

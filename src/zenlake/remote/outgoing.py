"""What waits to be sent to one client: bounded in bytes, with a count of what found no room."""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from zenlake.http.shares import Holding
from zenlake.transport.drops import WEBSOCKET, DropLog

__all__ = ["Outgoing"]


class Outgoing:
    """Messages for one client, in order.

    A sample that finds no room is dropped and counted. What must not be lost waits for room; the
    client is not read meanwhile, so that what it asks for is bounded too.
    """

    def __init__(self, most: int, lost: DropLog, held: Holding) -> None:
        """At most `most` bytes, and one message more.

        Args:
            most: Bytes.
            lost: Counts by key what was dropped.
            held: The part of this client in what waits for all of them.
        """
        self._most = most
        self._held = held
        self._waiting: deque[bytes] = deque()
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.size = 0
        self.closed = False
        self.sent = 0
        #: Messages that found no room, by kind.
        self.dropped: Counter[str] = Counter()
        self._lost = lost

    def offer(self, kind: str, message: bytes, key: str) -> bool:
        """Add a message about a key that may be lost; False if it was."""
        full = self.size + len(message) > self._most and self._waiting
        if full or not self.try_add(message):
            self.drop(kind, key)
            return False
        return True

    def drop(self, kind: str, key: str) -> None:
        """Count a message about a key that found no room."""
        self.dropped[kind] += 1
        self._lost.one(WEBSOCKET, key)

    def try_add(self, message: bytes) -> bool:
        """Add a message unless what waits for all clients is too much already."""
        if self.closed or not self._held.hold(self.size + len(message)):
            return False
        self.add(message)
        return True

    def add(self, message: bytes) -> None:
        """Add a message, whether or not there is room."""
        self._waiting.append(message)
        self.size += len(message)
        self._held.force(self.size)
        self._some.set()
        if self.size >= self._most:
            self._room.clear()

    async def room(self) -> None:
        """Wait until there is room."""
        await self._room.wait()

    async def take(self) -> bytes | None:
        """The next message; None at the end."""
        while not self._waiting:
            if self.closed:
                return None
            self._some.clear()
            await self._some.wait()
        return self._waiting.popleft()

    def done(self, message: bytes) -> None:
        """A message was sent."""
        self.sent += 1
        self.size -= len(message)
        self._held.force(self.size)
        if self.size < self._most:
            self._room.set()

    def close(self) -> None:
        """Send nothing more, and release what waits for room."""
        self.closed = True
        self._waiting.clear()
        self.size = 0
        self._held.close()
        self._some.set()
        self._room.set()

"""What the tests of links look through: a link that remembers what happened to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.waiting import SECONDS
from zenlake.links import LinkListener, UnicastLink, connect, listen
from zenlake.values.locator import EndPoint

PATIENCE = SECONDS


class Watched:
    """A started link, with all that arrived on it."""

    def __init__(self, link: UnicastLink, start: bool = True) -> None:
        self.link = link
        self.datagrams: list[bytes] = []
        self.size = 0
        self.lost: list[Exception | None] = []
        self._changed = asyncio.Event()
        if start:
            link.start(self._on_data, self._on_lost)

    @property
    def data(self) -> bytes:
        return b"".join(self.datagrams)

    def _on_data(self, data: bytes) -> None:
        self.datagrams.append(data)
        self.size += len(data)
        self._changed.set()

    def _on_lost(self, error: Exception | None) -> None:
        self.lost.append(error)
        self._changed.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    async def send_all(self, data: bytes) -> int:
        """Send everything; how often the system was full."""
        full = 0
        view = memoryview(data)
        while view:
            taken = self.link.send(bytes(view[:1_000_000]))
            view = view[taken:]
            if not taken:
                full += 1
                writable = asyncio.Event()
                self.link.when_writable(writable.set)
                async with asyncio.timeout(PATIENCE):
                    await writable.wait()
        return full


class Visitors:
    """A listening place, and those who came."""

    def __init__(self, start: bool = True) -> None:
        self.came: list[Watched] = []
        self._start = start
        self._changed = asyncio.Event()

    async def listen(self, endpoint: str) -> LinkListener:
        loop = asyncio.get_running_loop()
        self.listening = await listen(EndPoint.parse(endpoint), loop, self._on_link)
        return self.listening

    def _on_link(self, link: UnicastLink) -> None:
        self.came.append(Watched(link, self._start))
        self._changed.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.came) < count:
                self._changed.clear()
                await self._changed.wait()

    def close(self) -> None:
        self.listening.close()
        for watched in self.came:
            watched.link.close()


async def connected(endpoint: str, timeout: float = PATIENCE) -> Watched:
    loop = asyncio.get_running_loop()
    return Watched(await connect(EndPoint.parse(endpoint), loop, timeout))


async def pair(endpoint: str) -> tuple[Visitors, Watched, Watched]:
    """A listening place, the side that connected and the side that accepted."""
    visitors = Visitors()
    listening = await visitors.listen(endpoint)
    here = await connected(listening.locators()[0])
    if not here.link.stream:
        here.link.send(b"knock")
    await visitors.until(1)
    return visitors, here, visitors.came[0]

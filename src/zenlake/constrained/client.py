"""A session with a broker of the 2018 protocol, for programs without a loop.

with zenlake.xrce.open("udp/127.0.0.1:7447") as session:
    lights = session.subscriber("/house/**")
    for name, payload in lights:
        print(name, payload)
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from zenlake.constrained import aio
from zenlake.constrained.aio import PATIENCE, Mode
from zenlake.engine.loop import EventLoop, shared_loop
from zenlake.errors import Timeout
from zenlake.xrce.client import Read, Written

__all__ = ["Publisher", "Session", "Subscriber", "open"]

#: Samples that wait for the program; what comes while so many do pushes out the oldest.
WAITING = 65536
#: Samples that may be left to the loop before a program has to wait.
POSTED = 4096


def open(endpoint: str, **options: Any) -> Session:
    """Open a session with the broker at an endpoint; the options are those of `aio.open`."""
    loop = shared_loop()
    return Session(loop, loop.run(aio.open(endpoint, **options)))


class Publisher:
    """A declared publisher."""

    def __init__(self, session: Session, inner: Written) -> None:
        """Made by `Session.publisher`."""
        self._session = session
        self._inner = inner

    @property
    def matched(self) -> bool:
        """Whether somebody listens."""
        return self._inner.matched

    def put(self, payload: bytes, *, always: bool = False) -> bool:
        """Publish a sample if somebody listens; False: nobody does.

        It is sent soon, together with others; who publishes faster than it leaves has to wait.
        """
        if not self._inner.matched and not always:
            self._session._inner._check()
            return False
        self._session._post(self._inner, payload)
        return True

    def wait(self, timeout: float = PATIENCE) -> None:
        """Wait until somebody listens."""
        session = self._session
        session._loop.run(session._inner.matching(self._inner, timeout))

    def undeclare(self) -> None:
        """Publish no longer."""
        self._session._loop.run(self._session._inner.undeclare(self._inner))


class Subscriber:
    """A declared subscriber: samples wait here until the program takes them."""

    def __init__(self, session: Session) -> None:
        """Made by `Session.subscriber`."""
        self._session = session
        self._samples: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._inner: Read | None = None
        self.dropped = 0

    def _took(self, name: str, payload: bytes) -> None:
        if self._samples.qsize() >= WAITING:
            self._samples.get_nowait()
            self.dropped += 1
        self._samples.put((name, payload))

    def recv(self, timeout: float | None = None) -> tuple[str, bytes]:
        """The next sample: the name of its resource, and its payload."""
        try:
            return self._samples.get(timeout=timeout)
        except queue.Empty:
            raise Timeout(f"no sample came within {timeout:g} s") from None

    def try_recv(self) -> tuple[str, bytes] | None:
        """The next sample, if one is there."""
        try:
            return self._samples.get_nowait()
        except queue.Empty:
            return None

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Every sample as it comes."""
        while True:
            yield self.recv()

    def pull(self, most: int | None = None, timeout: float = PATIENCE) -> list[tuple[str, bytes]]:
        """Fetch what the broker kept, or the `most` oldest of it."""
        assert self._inner is not None
        self._session._loop.run(self._session._inner.pull(self._inner, most, timeout))
        found: list[tuple[str, bytes]] = []
        while (sample := self.try_recv()) is not None:
            found.append(sample)
        return found

    def undeclare(self) -> None:
        """Subscribe no longer."""
        assert self._inner is not None
        self._session._loop.run(self._session._inner.undeclare(self._inner))


class Session:
    """A session with a broker; made by `open`."""

    def __init__(self, loop: EventLoop, inner: aio.Session) -> None:
        """It is open."""
        self._loop = loop
        self._inner = inner
        #: Samples that the loop has not seen yet.
        self._posted: deque[tuple[Written, bytes]] = deque()
        self._asked = False

    def _post(self, publisher: Written, payload: bytes) -> None:
        """Leave a sample to the loop; waits while many are left to it."""
        self._inner._check()
        self._posted.append((publisher, payload))
        if len(self._posted) >= POSTED:
            self._loop.run(self._drain())
        elif not self._asked:
            self._asked = True
            self._loop.soon(self._send_posted)

    def _send_posted(self) -> None:
        self._asked = False
        client = self._inner._client
        while self._posted and client.put(*self._posted[0], True):
            self._posted.popleft()
        self._inner._flush()
        if self._posted and not self._asked:
            self._asked = True
            self._loop.loop.call_later(0.005, self._send_posted)

    async def _drain(self) -> None:
        while self._posted:
            publisher, payload = self._posted.popleft()
            await self._inner.put(publisher, payload, always=True)

    @property
    def pid(self) -> bytes:
        """Who we are."""
        return self._inner.pid

    @property
    def broker(self) -> bytes:
        """Who the broker is."""
        return self._inner.broker

    def resource(self, uri: str, rid: int = 0, type: str = "") -> int:
        """Declare a resource; gives its id."""
        return self._loop.run(self._inner.resource(uri, rid, type))

    def publisher(self, uri: str | int, *, reliable: bool = True, conduit: int = 0) -> Publisher:
        """Declare a publisher of a resource, by name or by an id that needs no name."""
        made = self._loop.run(self._inner.publisher(uri, reliable=reliable, conduit=conduit))
        return Publisher(self, made)

    def subscriber(self, uri: str | int, mode: Mode = "push", **options: Any) -> Subscriber:
        """Subscribe to a resource; the options are those of `aio.Session.subscriber`."""
        made = Subscriber(self)
        made._inner = self._loop.run(self._inner.subscriber(uri, made._took, mode, **options))
        return made

    def selection(
        self, query: str, mode: Mode = "push", *, parameters: tuple[str, ...] = ()
    ) -> Subscriber:
        """Subscribe to a selection, such as `/house/*?{luminosity > 3}`."""
        made = Subscriber(self)
        made._inner = self._loop.run(
            self._inner.selection(query, made._took, mode, parameters=parameters)
        )
        return made

    def write(self, name: str, payload: bytes, *, reliable: bool = True, conduit: int = 0) -> None:
        """Write a sample by name, without having declared anything."""
        self._loop.run(self._inner.write(name, payload, reliable=reliable, conduit=conduit))

    def ping(self, timeout: float = PATIENCE) -> float:
        """The round trip to the broker, in seconds."""
        return self._loop.run(self._inner.ping(timeout))

    def flushed(self, timeout: float = PATIENCE) -> None:
        """Wait until all that is reliable was acknowledged."""
        self._loop.run(self._drain())
        self._loop.run(self._inner.flushed(timeout))

    def close(self) -> None:
        """Say goodbye; closing twice does no harm."""
        if self._loop.alive:
            if self._inner.state == 2:
                self._loop.run(self._drain())
            self._loop.run(self._inner.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

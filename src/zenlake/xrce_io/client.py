"""A session with a broker of the 2018 protocol, for programs without a loop.

with zenlake.xrce.open("udp/127.0.0.1:7447") as session:
    lights = session.subscriber("/house/**")
    for name, payload in lights:
        print(name, payload)
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from zenlake.engine.loop import EventLoop, shared_loop
from zenlake.errors import Timeout
from zenlake.xrce.batches import BATCH_HEAD
from zenlake.xrce.client import Read, Written
from zenlake.xrce.codec import Property
from zenlake.xrce.session import OPEN
from zenlake.xrce_io import aio
from zenlake.xrce_io.aio import PATIENCE, Mode
from zenlake.xrce_io.inbox import SampleInbox

__all__ = ["Publisher", "Session", "Subscriber", "open"]

#: Samples that may be left to the loop before a program has to wait.
POSTED = 32768


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
        self._add = session._posted.add

    @property
    def matched(self) -> bool:
        """Whether there is a subscriber."""
        return self._inner.matched

    def put(self, payload: bytes, *, always: bool = False) -> bool:
        """Publish a sample if there is a subscriber; False: there is none.

        It is sent soon, together with others; who publishes faster than it leaves has to wait.
        """
        inner, session = self._inner, self._session
        if not inner.matched and not always:
            session._inner.check_open()
            return False
        if len(payload) > session._most:
            session._put_large(inner, payload)
        elif self._add(inner, payload) >= POSTED:
            session._wait_for_room()
        elif not session._asked:
            session._ask()
        return True

    def wait(self, timeout: float = PATIENCE) -> None:
        """Wait until there is a subscriber."""
        session = self._session
        session._loop.run(session._inner.matching(self._inner, timeout))

    def undeclare(self) -> None:
        """Publish no longer."""
        self._session._loop.run(self._session._inner.undeclare(self._inner))


class Subscriber:
    """A declared subscriber: samples wait here until the program takes them."""

    def __init__(self, session: Session | None) -> None:
        """Made by `Session.subscriber`."""
        self._session = session
        self.samples = SampleInbox()
        self._inner: Read | None = None

    @property
    def dropped(self) -> int:
        """How many samples were pushed out by later ones before the program took them."""
        return self.samples.dropped

    def recv(self, timeout: float | None = None) -> tuple[str, bytes]:
        """The next sample: the name of its resource, and its payload."""
        sample = self.samples.take(timeout)
        if sample is None:
            raise Timeout(f"no sample came within {timeout:g} s")
        return sample

    def try_recv(self) -> tuple[str, bytes] | None:
        """The next sample, if one is there."""
        return self.samples.take_now()

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Every sample as it comes."""
        while True:
            yield self.recv()

    def pull(self, most: int | None = None, timeout: float = PATIENCE) -> list[tuple[str, bytes]]:
        """Fetch what the broker kept, or the `most` oldest of it."""
        assert self._inner is not None
        assert self._session is not None
        self._session._loop.run(self._session._inner.pull(self._inner, most, timeout))
        samples: list[tuple[str, bytes]] = []
        while (sample := self.try_recv()) is not None:
            samples.append(sample)
        return samples

    def undeclare(self) -> None:
        """Subscribe no longer."""
        assert self._inner is not None
        assert self._session is not None
        self._session._loop.run(self._session._inner.undeclare(self._inner))


class Session:
    """A session with a broker; made by `open`."""

    def __init__(self, loop: EventLoop, inner: aio.Session) -> None:
        """It is open."""
        self._loop = loop
        self._inner = inner
        #: Samples that the loop has not seen yet, and whether it was asked to see them.
        self._posted = inner._posted
        self._asked = False
        #: A larger payload may not fit a packet, or not at all: that is told to who publishes it.
        self._most = inner.client.session.mtu - BATCH_HEAD

    def _ask(self) -> None:
        """Have the loop send what was left to it."""
        self._inner.check_open()
        self._asked = True
        self._loop.soon(self._send_posted)

    def _wait_for_room(self) -> None:
        """Wait until the loop has sent half of what was left to it."""
        self._inner.check_open()
        self._loop.run(self._drain(POSTED // 2))

    def _send_posted(self) -> None:
        self._asked = False
        self._inner.flush()

    async def _drain(self, most: int = 0) -> None:
        """Wait until `most` samples are left to the loop, or fewer."""
        self._inner.flush()
        while len(self._posted) > most:
            self._inner.check_open()
            await self._inner.wait_for_room()

    def _put_large(self, publisher: Written, payload: bytes) -> None:
        self._loop.run(self._drain())
        self._loop.run(self._inner.put(publisher, payload, always=True))

    @property
    def pid(self) -> bytes:
        """Who we are."""
        return self._inner.pid

    @property
    def broker(self) -> bytes:
        """Who the broker is."""
        return self._inner.broker

    def resource(
        self, uri: str, rid: int = 0, type: str = "", properties: tuple[Property, ...] = ()
    ) -> int:
        """Declare a resource; gives its id. `type`: its IDL, for predicates on CDR."""
        return self._loop.run(self._inner.resource(uri, rid, type, properties))

    def publisher(self, uri: str | int, *, reliable: bool = True, conduit: int = 0) -> Publisher:
        """Declare a publisher of a resource, by name or by an id that needs no name."""
        made = self._loop.run(self._inner.publisher(uri, reliable=reliable, conduit=conduit))
        return Publisher(self, made)

    def subscriber(self, uri: str | int, mode: Mode = "push", **options: Any) -> Subscriber:
        """Subscribe to a resource; the options are those of `aio.Session.subscriber`."""
        made = Subscriber(self)
        made._inner = self._loop.run(
            self._inner.subscriber(
                uri, made.samples.put, mode, on_samples=made.samples.put_all, **options
            )
        )
        return made

    def selection(
        self, query: str, mode: Mode = "push", *, parameters: tuple[str, ...] = ()
    ) -> Subscriber:
        """Subscribe to a selection, such as `/house/*?{luminosity > 3}`."""
        made = Subscriber(self)
        made._inner = self._loop.run(
            self._inner.selection(query, made.samples.put, mode, parameters=parameters)
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
            if self._inner.state == OPEN:
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

"""A session with a broker of the 2018 protocol, on the program's own loop.

async with await zenlake.xrce.aio.open("udp/127.0.0.1:7447") as session:
    publisher = await session.publisher("/house/light")
    await session.put(publisher, b"on")
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Literal, Self

from zenlake.errors import ClosedError, DecodeError, LinkError, Timeout
from zenlake.links.link import UnicastLink
from zenlake.links.registry import connect
from zenlake.values.locator import EndPoint
from zenlake.xrce.broker import STREAM_MTU
from zenlake.xrce.client import Client, OnSample, OnSamples, Read, Written
from zenlake.xrce.codec import Property
from zenlake.xrce.framing import Deframer, frame
from zenlake.xrce.markers import XrceMessage
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.session import CLOSED, OPEN, OPENING
from zenlake.xrce.tables import PERIODIC_PULL, PERIODIC_PUSH, PULL, PUSH, Declaration
from zenlake.xrce_io.posted import Posted
from zenlake.xrce_io.wires import Wire

Mode = Literal["push", "pull", "periodic-push", "periodic-pull"]
MODES: Final[dict[str, int]] = {
    "push": PUSH, "pull": PULL, "periodic-push": PERIODIC_PUSH, "periodic-pull": PERIODIC_PULL,
}  # fmt: skip

#: Seconds to wait for the result of a declaration, and for the rest of a pull.
PATIENCE: Final = 10.0


async def open(
    endpoint: str,
    *,
    pid: bytes | None = None,
    lease: float = 10.0,
    mtu: int = 1400,
    sn_bits: int = 14,
    conduits: int = 5,
    authentication: bytes = b"",
    space: int = 0,
    shared: int = 0,
    timeout: float = 10.0,
) -> Session:
    """Open a session with the broker at an endpoint, such as `udp/127.0.0.1:7447`.

    Args:
        endpoint: `udp/…`, `tcp/…` or `serial/…`.
        pid: who we are, 1 to 16 bytes; made up if not said.
        lease: seconds for which our silence may last; 0: for ever.
        mtu: bytes of the largest packet over UDP or a serial line.
        sn_bits: bits of sequence numbers, 7 to 63.
        conduits: how many conduits we can handle.
        authentication: what the broker wants to see, if it wants anything.
        space: the resource space of all our names and ids.
        shared: the conduit that goes to many peers at once, which peers agree upon; 0: none does.
        timeout: seconds to wait for the broker.
    """
    loop = asyncio.get_running_loop()
    link = await connect(EndPoint.parse(endpoint), loop, timeout)
    options = SessionOptions(
        pid or secrets.token_bytes(8),
        lease=0 if link.stream else round(lease * 10),
        bits=sn_bits,
        conduits=conduits,
        shared=shared,
        mtu=STREAM_MTU if link.stream else min(mtu, link.mtu),
        lossless=link.stream,
        authentication=authentication,
        open_every=min(1.0, timeout / 4),
    )
    session = Session(link, Client.make(options, space))
    try:
        session._begin()
        await session._until(
            lambda: session.state != OPENING, timeout, f"{endpoint} did not answer"
        )
        session.check_open()
    except BaseException:
        session.end()
        raise
    return session


class Session:
    """A session with a broker; made by `open`."""

    def __init__(self, link: UnicastLink, client: Client) -> None:
        """It has said nothing yet."""
        self._link = link
        self._wire = Wire(link)
        self.client = client
        #: What threads of a program publish, before it is sent.
        self._posted = Posted(client)
        self._loop = asyncio.get_running_loop()
        self._deframer = Deframer() if link.stream else None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._changed: set[asyncio.Future[None]] = set()
        self._lost = ""
        self._flushing = False

    # -------------------------------------------------------------------------- what programs call

    async def resource(
        self, uri: str, rid: int = 0, type: str = "", properties: tuple[Property, ...] = ()
    ) -> int:
        """Declare a resource; gives its id. `type`: its IDL, for predicates on CDR."""
        id, declarations = self.client.resource(uri, rid, properties, type)
        await self._commit(declarations)
        return id

    async def publisher(
        self, uri: str | int, *, reliable: bool = True, conduit: int = 0
    ) -> Written:
        """Declare a publisher of a resource, by name or by an id that needs no name."""
        id, declarations = (uri, []) if isinstance(uri, int) else self.client.resource(uri)
        made, more = self.client.publisher(id, reliable, conduit)
        await self._commit([*declarations, *more])
        return made

    async def subscriber(
        self,
        uri: str | int,
        on_sample: OnSample,
        mode: Mode = "push",
        *,
        reliable: bool = True,
        origin: int = 0,
        period: int = 0,
        duration: int = 0,
        on_samples: OnSamples | None = None,
    ) -> Read:
        """Subscribe to a resource; the windows of periodic modes are in milliseconds.

        `on_samples` is called, if it is given, for samples that came together.
        """
        id, declarations = (uri, []) if isinstance(uri, int) else self.client.resource(uri)
        made, more = self.client.subscriber(
            id, on_sample, MODES[mode], reliable, (origin, period, duration), on_samples
        )
        await self._commit([*declarations, *more])
        return made

    async def selection(
        self,
        query: str,
        on_sample: OnSample,
        mode: Mode = "push",
        *,
        parameters: tuple[str, ...] = (),
    ) -> Read:
        """Subscribe to a selection, such as `/house/*?{luminosity > 3}`."""
        sid, declarations = self.client.selection(query, parameters)
        made, more = self.client.subscriber(sid, on_sample, MODES[mode])
        await self._commit([*declarations, *more])
        return made

    async def put(self, publisher: Written, payload: bytes, *, always: bool = False) -> bool:
        """Publish a sample if there is a subscriber, when there is room; False: there is none."""
        if not publisher.matched and not always:
            self.check_open()
            return False
        while not self.client.put(publisher, payload, always):
            self.check_open()
            if not publisher.matched and not always:
                return False
            await self.wait_for_room()
        self.flush_soon()
        return True

    async def write(
        self, name: str, payload: bytes, *, reliable: bool = True, conduit: int = 0
    ) -> None:
        """Write a sample by name, without having declared anything."""
        while not self.client.write(name, payload, reliable, conduit):
            self.check_open()
            await self.wait_for_room()
        self.flush_soon()

    async def pull(self, one: Read, most: int | None = None, timeout: float = PATIENCE) -> bool:
        """Fetch what was kept; True: that was all, False: `most` came and there is more."""
        ends, samples = one.ends, one.samples
        self.check_open()
        self.client.pull(one, most)
        self.flush()

        def over() -> bool:
            enough = most is not None and one.samples - samples >= most
            return one.ends > ends or enough

        await self._until(over, timeout, "the pull did not come to its end")
        return one.ends > ends

    async def ping(self, timeout: float = PATIENCE) -> float:
        """The round trip to the broker, in seconds."""
        session = self.client.session
        self.check_open()
        began = time.monotonic()
        hash = session.ping(began)
        self.flush()
        await self._until(lambda: hash not in session.pings, timeout, "no pong came")
        return time.monotonic() - began

    async def matching(self, publisher: Written, timeout: float = PATIENCE) -> None:
        """Wait until a publisher has a subscriber."""
        await self._until(lambda: publisher.matched, timeout, "nobody listens")

    async def undeclare(self, thing: Written | Read) -> None:
        """Publish, or subscribe to, something no longer."""
        await self._commit(self.client.forget(thing))

    async def flushed(self, timeout: float = PATIENCE) -> None:
        """Wait until all that is reliable was acknowledged."""
        session = self.client.session
        await self._until(lambda: session.quiet, timeout, "not all was acknowledged")

    async def close(self) -> None:
        """Say goodbye and wait a moment for the answer."""
        session = self.client.session
        try:
            if session.state == OPEN:
                session.close(time.monotonic())
                self.flush()
                if not self._link.stream:
                    await self._until(lambda: session.state == CLOSED, 2.0, "")
        finally:
            self.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def state(self) -> int:
        """Where the session stands: 0 closed, 1 opening, 2 open, 3 closing."""
        return self.client.session.state

    @property
    def pid(self) -> bytes:
        """Who we are."""
        return self.client.session.options.pid

    @property
    def broker(self) -> bytes:
        """Who the broker is."""
        return self.client.session.peer

    # ------------------------------------------------------------------------------- on the loop

    def _begin(self) -> None:
        self.client.session.open(time.monotonic())
        self._link.start(self._arrived, self._was_lost)
        self.flush()

    def _arrived(self, data: bytes) -> None:
        now = time.monotonic()
        try:
            for packet in self._deframer.feed(data) if self._deframer is not None else (data,):
                self.client.receive(packet, now)
        except DecodeError as error:
            self.client.session.fail(255, str(error))
        self.flush_soon()  # more datagrams may be there: all of them are answered in one

    def take(self, messages: list[XrceMessage]) -> None:
        """Messages of the other side came to a group that we are in."""
        self.client.take(messages, time.monotonic())
        self.flush()

    def _was_lost(self, error: Exception | None) -> None:
        session = self.client.session
        if not self._link.stream and session.state == OPENING:
            # Nobody listens there yet, perhaps: Open is repeated, and its answer must be heard.
            self._link.start(self._arrived, self._was_lost)
            self._tell()
            return
        self._lost = str(error or "the broker closed the link")
        session.fail(0, self._lost)
        self._tell()

    def flush_soon(self) -> None:
        """Send what is said before the loop turns to something else, all in one."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send now what waits to be sent."""
        self._flushing = False
        if len(self._posted):
            self._posted.send()
        now = time.monotonic()
        packets = self.client.session.packets(now)
        if packets:
            out = [frame(packet) for packet in packets] if self._link.stream else packets
            try:
                self._wire.send(out)
            except LinkError as error:
                self._was_lost(error)
        self._tell()
        at = self.client.session.deadline
        if at < self._timer_at:  # a timer that comes too early does no harm
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = at
            self._timer = self._loop.call_later(max(0.0, at - now), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._timer_at = float("inf")
        self.client.session.tick(time.monotonic())
        self.flush()

    def end(self) -> None:
        """Let go of the link without a goodbye; on the loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.client.session.fail(0, "closed by this side")
        self._wire.end()
        self._tell()

    def _tell(self) -> None:
        for future in self._changed:
            if not future.done():
                future.set_result(None)
        self._changed.clear()

    async def _until(self, holds: Callable[[], bool], timeout: float, why: str) -> None:
        """Wait until something is so; raises `Timeout` with `why`, or what closed the session."""
        end = self._loop.time() + timeout
        while not holds():
            if self.state == CLOSED:
                self.check_open()
            left = end - self._loop.time()
            if left <= 0:
                if not why:
                    return
                raise Timeout(f"{why} within {timeout:g} s")
            future: asyncio.Future[None] = self._loop.create_future()
            self._changed.add(future)
            await asyncio.wait([future], timeout=left)
            self._changed.discard(future)

    async def wait_for_room(self) -> None:
        """Wait until something was acknowledged."""
        self.flush()
        session = self.client.session
        before = session.backlog
        await self._until(lambda: session.backlog < before or not before, PATIENCE, "no room")

    async def _commit(self, declarations: list[Declaration]) -> None:
        self.check_open()
        if not declarations:
            return
        pending = self.client.commit(declarations)
        self.flush()
        await self._until(lambda: pending.done, PATIENCE, "the broker did not answer")
        pending.check()

    def check_open(self) -> None:
        """Refuse to go on if the session is closed."""
        session = self.client.session
        if session.state == CLOSED:
            raise ClosedError(f"the session is closed: {session.why or self._lost}", session.reason)

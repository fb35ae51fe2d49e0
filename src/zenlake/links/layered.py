"""A link that runs inside another: encrypted, framed, or both.

    WebSocketLink ──► TlsLink ──► StreamLink ──► a socket

The outer link owns the inner one. Before it is handed out the two sides agree over the inner link;
`opened` waits for that, and not a byte of the session travels earlier. What the inner link does not
take is kept here, and the outer link takes nothing new until that is gone: so it never holds more
than one `send` and the few bytes of its own protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from zenlake.errors import LinkError
from zenlake.links.link import LinkListener, OnData, OnLink, OnLost, UnicastLink
from zenlake.links.refusals import RefusalLog

__all__ = ["LayeredLink", "LayeredListener", "opened_in_time"]

MAX_KNOCKING: Final = 128
"""How many connections to one place may be in the middle of their agreement."""
KNOCKING_OF_ONE: Final = 32
"""How many of them may come from one address."""

MAX_REST: Final = 1 << 18
"""How many bytes of its own protocol a layer keeps for a side that does not read."""

AnyLayer = TypeVar("AnyLayer", bound="LayeredLink")


class LayeredLink(UnicastLink):
    """A link inside another, which it owns."""

    reliable = True

    def __init__(self, inner: UnicastLink, loop: asyncio.AbstractEventLoop, protocol: str) -> None:
        super().__init__(_renamed(inner.src, protocol), _renamed(inner.dst, protocol))
        self._inner = inner
        self._loop = loop
        self.thread_safe = inner.thread_safe
        self.auth_identifier = inner.auth_identifier
        # Guards the state of the protocol and what the inner link has not taken. No callback runs
        # under it, so a callback may send.
        self._lock = threading.Lock()
        self._rest = b""
        self._waiting = False
        self._paused = False
        self._closed = False
        self._over: tuple[Exception | None] | None = None
        self._agreement: asyncio.Future[None] = loop.create_future()
        self._on_data: OnData | None = None
        self._on_lost: OnLost | None = None
        self._on_writable: Callable[[], None] | None = None
        inner.start(self._arrived, self._ended)

    # ---------------------------------------------------------------- what each layer decides

    @abstractmethod
    def _arrived(self, data: bytes) -> None:
        """Bytes came over the inner link."""

    @abstractmethod
    def _begin(self) -> None:
        """Hand over what came since the agreement."""

    def _farewell(self) -> bytes:
        """The last bytes of this layer, when the link is closed; the lock is held."""
        return b""

    # ------------------------------------------------------------------------------- the link

    @property
    def interfaces(self) -> list[str]:
        """The network interfaces it runs over."""
        return self._inner.interfaces

    async def opened(self) -> None:
        """Wait until the two sides have agreed."""
        await self._agreement

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Begin to hand over what arrives."""
        self._on_data = on_data
        self._on_lost = on_lost
        self._loop.call_soon(self._started)

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when `send` may take bytes."""
        if not self._closed:
            self._on_writable = callback
            self._wait()

    def wait_writable(self, seconds: float) -> None:
        """Wait until the inner link may take bytes: those that are kept here go first."""
        self._inner.wait_writable(seconds)

    def pause(self) -> None:
        """Read no more for now."""
        self._paused = True
        self._inner.pause()

    def resume(self) -> None:
        """Read again."""
        self._paused = False
        if self._on_data is not None:
            self._inner.resume()

    def finish(self, on_end: Callable[[], None]) -> bool:
        """Send this layer's last bytes, and let the inner link wait for the other side."""
        self._leave()
        return self._inner.finish(on_end)

    def close(self) -> None:
        """End the link, at once."""
        self._leave()
        self._inner.close()

    def _leave(self) -> None:
        """Send this layer's last bytes, and take and deliver nothing more."""
        if self._closed:
            return
        with self._lock, contextlib.suppress(LinkError):
            self._closed = True
            last = self._rest + (self._farewell() if self._agreed else b"")
            self._rest = b""
            if last:
                self._inner.send(last)
        self._on_data = None
        self._on_lost = None
        self._on_writable = None
        if not self._agreement.done():
            self._agreement.cancel()

    def admit(self) -> None:
        """Say that a session runs over it."""
        self._inner.admit()

    # ------------------------------------------------------------------------- for the layers

    @property
    def _agreed(self) -> bool:
        agreement = self._agreement
        return agreement.done() and not agreement.cancelled() and agreement.exception() is None

    def _agree(self) -> None:
        """The two sides have agreed: nothing is read until `start`."""
        self._inner.pause()
        if not self._agreement.done():
            self._agreement.set_result(None)

    def _check_open(self) -> None:
        if self._closed:
            raise LinkError(f"{self.dst}: the link is closed")

    def _write(self, data: bytes) -> None:
        """Hand bytes to the inner link, and keep what it does not take; the lock is held."""
        if self._rest:
            if len(self._rest) > MAX_REST:
                raise LinkError(f"{self.dst}: the other side takes nothing, and asks for more")
            self._rest += data
            return
        taken = self._inner.send(data)
        if taken < len(data):
            self._rest = data[taken:]
            # A process that ends in disorder may have closed the loop already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wait)

    def _flushed(self) -> bool:
        """Whether the inner link has taken everything; the lock is held."""
        if self._rest:
            self._rest = self._rest[self._inner.send(self._rest) :]
        return not self._rest

    def _deliver(self, data: bytes) -> None:
        if data and self._on_data is not None:
            self._on_data(data)

    def _ended(self, error: Exception | None) -> None:
        """The inner link is lost."""
        self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        """Say once that the link is lost, or that the two sides will not agree."""
        if not self._agreement.done():
            self._agreement.set_exception(
                error or LinkError(f"{self.dst}: the other side closed the connection early")
            )
            return
        self._inner.pause()
        on_lost = self._on_lost
        if on_lost is None:
            self._over = self._over or (error,)  # for `start`
            return
        self._on_data = None
        self._on_lost = None
        on_lost(error)

    def _started(self) -> None:
        if self._closed or self._on_data is None:
            return
        if not (self._paused or self._over):
            self._inner.resume()
        self._begin()
        if self._over is not None and not self._closed:
            self._lose(self._over[0])

    def _wait(self) -> None:
        if not (self._waiting or self._closed):
            self._waiting = True
            self._inner.when_writable(self._writable)

    def _writable(self) -> None:
        self._waiting = False
        try:
            with self._lock:
                flushed = self._flushed()
        except LinkError as error:
            self._lose(error)
            return
        if not flushed:
            self._wait()
            return
        callback = self._on_writable
        self._on_writable = None
        if callback is not None:
            callback()


async def opened_in_time(
    link: AnyLayer, loop: asyncio.AbstractEventLoop, deadline: float
) -> AnyLayer:
    """The link once the two sides have agreed; else it is closed and `LinkError` raised."""
    try:
        async with asyncio.timeout_at(deadline):
            await link.opened()
    except TimeoutError as error:
        link.close()
        raise LinkError(f"{link.dst}: no agreement within the time allowed") from error
    except BaseException:
        link.close()
        raise
    return link


class LayeredListener(LinkListener):
    """Accepts links whose two sides agree on a layer before they are handed out."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_link: OnLink,
        wrap: Callable[[UnicastLink], Awaitable[LayeredLink]],
    ) -> None:
        self.inner: LinkListener | None = None
        """The listener of the inner links, set once it is open."""
        self._loop = loop
        self._on_link = on_link
        self._wrap = wrap
        self._refusals = RefusalLog()
        #: Those in the middle of their agreement, the oldest first, and where each comes from.
        self._knocking: dict[asyncio.Task[None], str] = {}
        #: How many were given up for others that came later.
        self.displaced = 0
        self._closed = False

    def accepted(self, link: UnicastLink) -> None:
        """A neighbour connected to the inner listener."""
        if self._closed:
            link.close()
            return
        host = host_of(link.dst)
        self._make_room(host)
        task = self._loop.create_task(self._let_in(link))
        self._knocking[task] = host
        task.add_done_callback(lambda done: self._knocking.pop(done, None))

    def _make_room(self, host: str) -> None:
        """Give up the oldest of one address for a newcomer, where that address has its share.

        A connection that stalls is displaced by later ones; one that agrees in a moment is not.
        """
        busiest = host
        if list(self._knocking.values()).count(host) < KNOCKING_OF_ONE:
            if len(self._knocking) < MAX_KNOCKING:
                return
            busiest = Counter(self._knocking.values()).most_common(1)[0][0]
        oldest = next(task for task, whose in self._knocking.items() if whose == busiest)
        self.displaced += 1
        del self._knocking[oldest]
        oldest.cancel()

    def close(self) -> None:
        """Accept no more links, and close those that have not agreed yet."""
        self._closed = True
        if self.inner is not None:
            self.inner.close()
        for task in list(self._knocking):
            task.cancel()

    async def _let_in(self, inner: UnicastLink) -> None:
        try:
            link = await self._wrap(inner)
        except LinkError as error:
            inner.close()
            self._refusals.warn(f"not let in: {error}")
            return
        except BaseException:
            inner.close()
            raise
        if self._closed:
            link.close()
            return
        self._on_link(link)


def host_of(locator: str) -> str:
    """The host in a locator: each connection of one host has a port of its own."""
    address = locator.partition("/")[2]
    head, colon, port = address.rpartition(":")
    return head if colon and port.isdigit() else address


def _renamed(locator: str, protocol: str) -> str:
    return f"{protocol}/{locator.partition('/')[2]}"

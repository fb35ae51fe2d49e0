"""Links over UDP: each batch is one datagram.

A node that connects has a socket of its own. A listener has one socket for all, and a link for each
address that datagrams come from. Source addresses can be forged, so links without a session are few
at a time; a link counts as one of them until `admit` is called.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final, final

from zenlake.errors import LinkError
from zenlake.links.inet import (
    InetAddress,
    address_text,
    apply_options,
    bound,
    host_of,
    listening_locators,
    resolve,
)
from zenlake.links.interfaces import interfaces_at
from zenlake.links.link import UDP_BATCH, LinkListener, OnData, OnLink, OnLost, UnicastLink, reason
from zenlake.values.locator import EndPoint

__all__ = ["MAX_KNOCKING", "MAX_SOURCES", "MTU", "UdpListener", "connect", "listen"]

MTU: Final = UDP_BATCH
READ_SIZE: Final = 65536
READS_AT_ONCE: Final = 64
"""How many datagrams are read before other callbacks of the loop run."""
MAX_KNOCKING: Final = 100
MAX_SOURCES: Final = 2048
MAX_EARLY: Final = 2
"""The datagrams that are kept for a link that has not been started."""

_FULL: Final = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS, errno.EINTR)


async def connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float
) -> UnicastLink:
    """A link to the first address of the endpoint that can be routed to.

    Nothing is sent, so nothing is known of the other side yet.
    """
    try:
        async with asyncio.timeout(timeout):
            places = await resolve(endpoint.host, endpoint.port, socket.SOCK_DGRAM, loop)
    except TimeoutError as error:
        raise LinkError(
            f"{endpoint}: the name '{endpoint.host}' did not resolve within {timeout:g} s"
        ) from error
    except LinkError as error:
        raise LinkError(f"{endpoint}: {error}") from error
    tried: list[str] = []
    for place in places:
        try:
            return _UdpLink(_connected(endpoint, place), loop)
        except OSError as error:
            tried.append(f"{address_text(place[1])}: {reason(error)}")
    raise LinkError(f"{endpoint}: cannot connect to {'; '.join(tried)}")


async def listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink
) -> LinkListener:
    """Take datagrams at the endpoint."""
    return UdpListener(await bound(endpoint, socket.SOCK_DGRAM, loop), loop, on_link)


def _connected(endpoint: EndPoint, place: InetAddress) -> socket.socket:
    family, address = place
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        apply_options(sock, endpoint)
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


@final
class _UdpLink(UnicastLink):
    """A connected datagram socket."""

    stream = False
    reliable = False
    thread_safe = False
    mtu = MTU

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        local, remote = sock.getsockname(), sock.getpeername()
        super().__init__(f"udp/{address_text(local)}", f"udp/{address_text(remote)}")
        self._host = host_of(local)
        self._sock = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._closed = False
        self._reading = False
        self._paused = False
        self._on_data: OnData | None = None
        self._on_lost: OnLost | None = None
        self._on_writable: Callable[[], None] | None = None

    @property
    def interfaces(self) -> list[str]:
        """The interfaces that have this side's address."""
        return interfaces_at(self._host)

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Begin to read."""
        self._on_data = on_data
        self._on_lost = on_lost
        self._read_if_wanted()

    def send(self, data: bytes) -> int:
        """Send one datagram, or nothing when the system is full."""
        if self._closed:
            raise LinkError(f"{self.dst}: the link is closed")
        return _sent(self._sock, data, None, self.dst)

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when `send` may take a datagram."""
        if self._closed:
            return
        if self._on_writable is None:
            self._loop.add_writer(self._fd, self._writable)
        self._on_writable = callback

    def pause(self) -> None:
        """Read no more for now; the system drops what it cannot keep."""
        self._paused = True
        self._stop_reading()

    def resume(self) -> None:
        """Read again."""
        self._paused = False
        self._read_if_wanted()

    def close(self) -> None:
        """End the link."""
        if self._closed:
            return
        self._closed = True
        self._on_data = None
        self._on_lost = None
        if not self._loop.is_closed():
            self._stop_reading()
            if self._on_writable is not None:
                self._loop.remove_writer(self._fd)
        self._on_writable = None
        self._sock.close()

    def _read_if_wanted(self) -> None:
        if self._on_data is None or self._paused or self._reading or self._closed:
            return
        self._reading = True
        self._loop.add_reader(self._fd, self._readable)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _readable(self) -> None:
        for _ in range(READS_AT_ONCE):
            try:
                datagram = self._sock.recv(READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # mostly: no socket is bound there
                self._lost(LinkError(f"{self.dst}: the link broke: {reason(error)}"))
                return
            if self._on_data is not None:
                self._on_data(datagram)
            if self._closed or self._paused:
                return

    def _writable(self) -> None:
        callback = self._on_writable
        self._on_writable = None
        self._loop.remove_writer(self._fd)
        if callback is not None:
            callback()

    def _lost(self, error: LinkError) -> None:
        on_lost = self._on_lost
        self._on_data = None
        self._on_lost = None
        self._stop_reading()
        if on_lost is not None:
            on_lost(error)


@final
class _SourceLink(UnicastLink):
    """What comes from one address to a listening socket, and goes back there."""

    stream = False
    reliable = False
    thread_safe = False
    mtu = MTU

    def __init__(self, shared: _SharedSocket, address: tuple[object, ...]) -> None:
        super().__init__(f"udp/{address_text(shared.local)}", f"udp/{address_text(address)}")
        self.address = address
        self.knocking = True
        self.dropped = 0
        """How many datagrams came while it was paused, or too early."""
        self._shared = shared
        self._closed = False
        self._paused = False
        self._early: list[bytes] = []
        self._on_data: OnData | None = None

    @property
    def interfaces(self) -> list[str]:
        """The interfaces that have this side's address."""
        return interfaces_at(host_of(self._shared.local))

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Begin to read; a shared socket never breaks for one of its links alone."""
        self._on_data = on_data
        early, self._early = self._early, []
        for datagram in early:
            self.arrived(datagram)

    def arrived(self, datagram: bytes) -> None:
        """Take a datagram from the shared socket."""
        if self._closed:
            return
        if self._on_data is not None and not self._paused:
            self._on_data(datagram)
        elif self._on_data is None and len(self._early) < MAX_EARLY:
            self._early.append(datagram)
        else:
            self.dropped += 1

    def send(self, data: bytes) -> int:
        """Send one datagram, or nothing when the system is full."""
        if self._closed:
            raise LinkError(f"{self.dst}: the link is closed")
        return _sent(self._shared.sock, data, self.address, self.dst)

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when `send` may take a datagram."""
        if not self._closed:
            self._shared.when_writable(self, callback)

    def pause(self) -> None:
        """Drop what comes: the socket serves others, too."""
        self._paused = True

    def resume(self) -> None:
        """Read again."""
        self._paused = False

    def admit(self) -> None:
        """Say that a session runs over it."""
        if self.knocking and not self._closed:
            self.knocking = False
            self._shared.knocking -= 1

    def close(self) -> None:
        """Forget the address; if it sends again, it is a new link."""
        if self._closed:
            return
        self._closed = True
        self._on_data = None
        self._early.clear()
        self._shared.forget(self)


@final
class _SharedSocket:
    """A bound socket and the links that live on it; it stays while one of them does."""

    def __init__(
        self, sock: socket.socket, loop: asyncio.AbstractEventLoop, on_link: OnLink
    ) -> None:
        self.sock = sock
        self.local: tuple[object, ...] = sock.getsockname()
        self.knocking = 0
        self.refused = 0
        self._fd = sock.fileno()
        self._loop = loop
        self._on_link: OnLink | None = on_link
        self._links: dict[tuple[object, ...], _SourceLink] = {}
        self._waiting: dict[_SourceLink, Callable[[], None]] = {}
        self._closed = False
        loop.add_reader(self._fd, self._readable)

    def close(self) -> None:
        """Take no new addresses; the socket ends with its last link."""
        self._on_link = None
        self._end_if_idle()

    def forget(self, link: _SourceLink) -> None:
        if self._links.get(link.address) is link:
            del self._links[link.address]
        if link.knocking:
            self.knocking -= 1
        if self._waiting.pop(link, None) is not None and not self._waiting:
            self._stop_waiting()
        self._end_if_idle()

    def when_writable(self, link: _SourceLink, callback: Callable[[], None]) -> None:
        if not self._waiting:
            self._loop.add_writer(self._fd, self._writable)
        self._waiting[link] = callback

    def _end_if_idle(self) -> None:
        if self._closed or self._links or self._on_link is not None:
            return
        self._closed = True
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self.sock.close()

    def _readable(self) -> None:
        for _ in range(READS_AT_ONCE):
            try:
                datagram, address = self.sock.recvfrom(READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                continue  # an earlier datagram of ours was refused; others go on
            link = self._links.get(address) or self._knocked(address)
            if link is not None:
                link.arrived(datagram)
            if self._closed:
                return

    def _knocked(self, address: tuple[object, ...]) -> _SourceLink | None:
        if self._on_link is None:
            return None
        if self.knocking >= MAX_KNOCKING or len(self._links) >= MAX_SOURCES:
            self.refused += 1
            return None
        link = _SourceLink(self, address)
        self._links[address] = link
        self.knocking += 1
        self._on_link(link)
        return link

    def _writable(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._stop_waiting()
        for link, callback in waiting.items():
            if self._links.get(link.address) is link:
                callback()

    def _stop_waiting(self) -> None:
        if not self._closed and not self._loop.is_closed():
            self._loop.remove_writer(self._fd)


@final
class UdpListener(LinkListener):
    """Datagram sockets that make a link of each address they hear from."""

    def __init__(
        self, sockets: list[socket.socket], loop: asyncio.AbstractEventLoop, on_link: OnLink
    ) -> None:
        self._sockets = [_SharedSocket(sock, loop, on_link) for sock in sockets]
        self._open = True

    @property
    def refused(self) -> int:
        """How many datagrams came from new addresses while too many were knocking."""
        return sum(shared.refused for shared in self._sockets)

    @property
    def knocking(self) -> int:
        """How many links wait for a session."""
        return sum(shared.knocking for shared in self._sockets)

    def locators(self) -> list[str]:
        """Where to reach it; nowhere once it is closed."""
        if not self._open:
            return []
        return [
            locator
            for shared in self._sockets
            for locator in listening_locators("udp", shared.sock)
        ]

    def close(self) -> None:
        """Accept no more links."""
        self._open = False
        for shared in self._sockets:
            shared.close()


def _sent(
    sock: socket.socket, datagram: bytes, address: tuple[object, ...] | None, dst: str
) -> int:
    try:
        if address is None:
            return sock.send(datagram)
        return sock.sendto(datagram, address)
    except OSError as error:
        if error.errno in _FULL:
            return 0
        raise LinkError(
            f"{dst}: cannot send a datagram of {len(datagram)} bytes: {reason(error)}"
        ) from error

"""Links over QUIC: `quic/node.example:7447`, one stream, each batch prefixed as over tcp."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final, final

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import NetworkAddress, QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamDataReceived,
    StreamReset,
)
from aioquic.tls import load_pem_private_key, load_pem_x509_certificates
from cryptography.x509 import NameOID

from zenlake.config.model_transport import Link as LinkSettings
from zenlake.errors import ConfigError, LinkError
from zenlake.links.certificates import Credentials, Pem, credentials
from zenlake.links.inet import (
    Place,
    address_text,
    apply_options,
    bound,
    host_of,
    listening_locators,
    resolve,
)
from zenlake.links.interfaces import interfaces_at
from zenlake.links.link import MAX_BATCH, Link, Listening, OnData, OnLink, OnLost, reason
from zenlake.links.options import only_inet
from zenlake.links.tls import LONGEST_SLEEP, named_locators
from zenlake.values.locator import EndPoint

__all__ = ["QuicLink", "connect", "listen"]

ALPN: Final = ("zenoh", "hq-29")
"""What the other side must speak: the word of today, and that of older nodes."""
STREAM: Final = 0
"""The first stream that the side that connects opens, in both directions."""
MAX_UNSENT: Final = 1_000_000
"""How many bytes may wait to be sent or acknowledged before no more are taken."""
MAX_HELD: Final = 1_000_000
"""How many bytes are kept for a reader who pauses, before packets are dropped as if lost."""
MAX_KNOCKING: Final = 128
"""How many connections to one place may be in the middle of their handshake."""

log = logging.getLogger("zenlake.links")


async def connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float, settings: LinkSettings
) -> Link:
    """A link to the first address that answers and whose certificate is accepted."""
    deadline = loop.time() + timeout
    said = credentials(endpoint, settings.tls, "connect")
    plain = only_inet(endpoint, settings.tls.so_sndbuf, settings.tls.so_rcvbuf)
    tried: list[str] = []
    try:
        configuration = _client_configuration(said, endpoint.host)
        async with asyncio.timeout_at(deadline):
            places = await resolve(endpoint.host, endpoint.port, socket.SOCK_DGRAM, loop)
    except (LinkError, TimeoutError) as error:
        raise LinkError(f"{plain}: {reason(error)}") from error
    for index, place in enumerate(places):
        share = loop.time() + (deadline - loop.time()) / (len(places) - index)
        try:
            async with asyncio.timeout_at(share):
                return await _connected(plain, place, loop, configuration, said)
        except OSError as error:  # a timeout is one, too
            tried.append(f"{address_text(place[1])}: {reason(error)}")
    raise LinkError(f"{plain}: cannot connect to {'; '.join(tried)}")


async def listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink, settings: LinkSettings
) -> Listening:
    """Take connections at the endpoint."""
    said = credentials(endpoint, settings.tls, "listen")
    plain = only_inet(endpoint, settings.tls.so_sndbuf, settings.tls.so_rcvbuf)
    if said.mtls:
        raise ConfigError(
            f"{plain}: quic cannot demand certificates of those who connect; "
            "listen on tls, or set enable_mtls=false"
        )
    try:
        listening = _QuicListening(endpoint, said, on_link)
    except LinkError as error:
        raise LinkError(f"{plain}: {error}") from error
    try:
        for sock in await bound(plain, socket.SOCK_DGRAM, loop):
            await listening.open(sock, loop)
    except OSError as error:
        listening.close()
        raise LinkError(f"{plain}: cannot listen: {reason(error)}") from error
    return listening


@final
class QuicLink(Link):
    """One stream of a connection."""

    stream = True
    reliable = True
    thread_safe = False
    mtu = MAX_BATCH

    def __init__(
        self, side: _Side, loop: asyncio.AbstractEventLoop, src: object, dst: object
    ) -> None:
        super().__init__(f"quic/{address_text(src)}", f"quic/{address_text(dst)}")
        self._side = side
        self._loop = loop
        self._host = host_of(src)
        self._closed = False
        self._paused = False
        self._held: list[bytes] = []
        self._held_size = 0
        self._over: tuple[LinkError | None] | None = None
        self._on_data: OnData | None = None
        self._on_lost: OnLost | None = None
        self._on_writable: Callable[[], None] | None = None

    @property
    def interfaces(self) -> list[str]:
        """The interfaces that have this side's address."""
        return interfaces_at(self._host)

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be kept for a reader who pauses."""
        return self._held_size >= MAX_HELD

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Begin to hand over what arrives."""
        self._on_data = on_data
        self._on_lost = on_lost
        self._loop.call_soon(self._hand_over)

    def send(self, data: bytes) -> int:
        """Hand bytes to the connection, without waiting; how many it took."""
        if self._closed:
            raise LinkError(f"{self.dst}: the link is closed")
        if self._over is not None:
            raise LinkError(f"{self.dst}: cannot send: the connection is over")
        room = MAX_UNSENT - self._side.unsent()
        if room <= 0:
            return 0
        piece = data[:room]
        self._side.write(piece)
        return len(piece)

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when `send` may take bytes."""
        if not self._closed:
            self._on_writable = callback
            self._loop.call_soon(self.look_for_room)

    def pause(self) -> None:
        """Read no more for now."""
        self._paused = True

    def resume(self) -> None:
        """Read again."""
        self._paused = False
        self._loop.call_soon(self._hand_over)

    def close(self) -> None:
        """End the link, at once."""
        if self._closed:
            return
        self._closed = True
        self._on_data = None
        self._on_lost = None
        self._on_writable = None
        self._held.clear()
        self._side.end()

    # --------------------------------------------------------------------- told by the connection

    def arrived(self, data: bytes) -> None:
        """Bytes came on the stream."""
        if not self._closed and data:
            self._held.append(data)
            self._held_size += len(data)

    def over(self, error: LinkError | None) -> None:
        """The connection ended."""
        if self._over is None:
            self._over = (error,)
        self._hand_over()

    def look_for_room(self) -> None:
        """Something may have been acknowledged."""
        callback = self._on_writable
        if callback is not None and (self._over or self._side.unsent() < MAX_UNSENT // 2):
            self._on_writable = None
            callback()

    def hand_over(self) -> None:
        """All that one packet brought is there."""
        self._hand_over()

    def _hand_over(self) -> None:
        if self._on_data is None or self._paused:
            return
        if self._held:
            data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
            self._held.clear()
            self._held_size = 0
            self._on_data(data)
        on_lost = self._on_lost
        if self._over is not None and not self._held and on_lost is not None and not self._paused:
            self._on_data = None
            self._on_lost = None
            on_lost(self._over[0])


class _Side(QuicConnectionProtocol):
    """This end of a connection, and the link that runs over its stream."""

    def __init__(self, quic: QuicConnection, said: Credentials) -> None:
        super().__init__(quic)
        self.link: QuicLink | None = None
        self.peer: NetworkAddress | None = None
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.on_stream: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self._said = said
        self._ended = False
        self._alarm: asyncio.TimerHandle | None = None

    def unsent(self) -> int:
        """How many bytes wait to be sent or acknowledged."""
        stream = self._quic._streams.get(STREAM)
        return len(stream.sender._buffer) if stream is not None else 0

    def write(self, data: bytes) -> None:
        """Send on the stream."""
        self._quic.send_stream_data(STREAM, data)
        self.transmit()

    def end(self, code: int = 0, why: str = "") -> None:
        """Close the connection, and forget it: no timer of it is left."""
        if self._ended:
            return
        self._ended = True
        if self._transport is not None and not self._transport.is_closing():
            self.close(error_code=code, reason_phrase=why)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if not self.opened.done():
            self.opened.cancel()
        self._connection_terminated_handler()
        self.on_end()

    def datagram_received(self, data: bytes | str, addr: NetworkAddress) -> None:
        """A packet came."""
        link = self.link
        if self._ended or (link is not None and link.is_full):
            return  # as if it had been lost on the way: it comes again
        self.peer = addr
        super().datagram_received(data, addr)
        self._told()

    def _handle_timer(self) -> None:
        if not self._ended:
            super()._handle_timer()
            self._told()

    def _told(self) -> None:
        link = self.link
        if link is not None:
            link.hand_over()
            link.look_for_room()

    def quic_event_received(self, event: QuicEvent) -> None:
        """Something happened to the connection."""
        if isinstance(event, StreamDataReceived) and event.stream_id == STREAM:
            if self.link is None:
                self.on_stream()
            if self.link is not None:
                self.link.arrived(event.data)
                if event.end_stream:
                    self.link.over(None)
        elif isinstance(event, HandshakeCompleted):
            self._know_peer()
            if not self.opened.done():
                self.opened.set_result(None)
        elif isinstance(event, StreamReset) and self.link is not None:
            self.link.over(LinkError(f"{self.link.dst}: the other side broke off the stream"))
        elif isinstance(event, ConnectionTerminated):
            self._terminated(event)

    def _terminated(self, event: ConnectionTerminated) -> None:
        words = event.reason_phrase.strip("\0") or f"error {event.error_code:#x}"
        if not self.opened.done():
            self.opened.set_exception(LinkError(f"no QUIC with the other side: {words}"))
            self.opened.exception()  # somebody may ask, nobody must
        if self.link is not None:
            in_order = event.error_code == 0
            error = None if in_order else LinkError(f"{self.link.dst}: the link broke: {words}")
            self.link.over(error)
        else:
            self.end()

    def _know_peer(self) -> None:
        self.common_name: str | None = None
        shown = self._quic.tls._peer_certificate
        if shown is None:
            return
        for attribute in shown.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
            self.common_name = str(attribute.value)
        if self._said.close_on_expiration:
            self._expiry = shown.not_valid_after_utc.timestamp()
            self._watch()

    def _watch(self) -> None:
        left = self._expiry - time.time()
        if left > 0:
            self._alarm = self._loop.call_later(min(left, LONGEST_SLEEP), self._watch)
            return
        self._alarm = None
        if self.link is not None:
            why = "the certificate of the other side has expired"
            self.link.over(LinkError(f"{self.link.dst}: {why}"))


async def _connected(
    endpoint: EndPoint,
    place: Place,
    loop: asyncio.AbstractEventLoop,
    configuration: QuicConfiguration,
    said: Credentials,
) -> Link:
    family, address = place
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        apply_options(sock, endpoint)
        if endpoint.get("bind") is None:
            sock.bind((_source(place), 0))
        quic = QuicConnection(configuration=configuration)
        transport, side = await loop.create_datagram_endpoint(lambda: _Side(quic, said), sock=sock)
    except BaseException:
        sock.close()
        raise
    side.on_end = transport.close
    try:
        side.connect(address)
        await side.opened
    except BaseException:
        side.end()
        raise
    side.link = QuicLink(side, loop, sock.getsockname(), address)
    side.link.auth_identifier = side.common_name
    return side.link


def _source(place: Place) -> str:
    """The address of this machine that packets to a place come from."""
    family, address = place
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


class _Server(QuicServer):
    """A bound socket; connections are found by their ids."""

    def __init__(self, listening: _QuicListening, sock: socket.socket) -> None:
        configuration = listening.configuration()
        super().__init__(configuration=configuration, create_protocol=self._came)
        self.sock = sock
        self._listening = listening
        self._knocking: set[_Side] = set()
        self._living: set[_Side] = set()
        self._shut = False

    def shut(self) -> None:
        """Take nobody new; the socket goes with the last connection."""
        self._shut = True
        for side in list(self._knocking):
            side.end()
        self._close_if_empty()

    def datagram_received(self, data: bytes | str, addr: NetworkAddress) -> None:
        """A packet came: of a connection, or to begin one."""
        if data and isinstance(data, bytes) and data[0] & 0x80 and self._is_new(data):
            if self._shut or len(self._knocking) >= MAX_KNOCKING:
                return
            self._configuration = self._listening.configuration()
        super().datagram_received(data, addr)

    def _is_new(self, data: bytes) -> bool:
        # A long header: flags, version, then the length of the id and the id.
        return len(data) > 5 and data[6 : 6 + data[5]] not in self._protocols

    def _came(self, quic: QuicConnection, stream_handler: object = None) -> _Side:
        side = _Side(quic, self._listening.said)
        timer = self._loop.call_later(self._listening.said.handshake_timeout, side.end)
        self._knocking.add(side)

        def on_stream() -> None:
            timer.cancel()
            self._knocking.discard(side)
            self._living.add(side)
            side.link = QuicLink(side, self._loop, self.sock.getsockname(), side.peer)
            self._listening.on_link(side.link)

        def on_end() -> None:
            timer.cancel()
            if side in self._knocking and side.opened.done() and not side.opened.cancelled():
                error = side.opened.exception()
                if error is not None:
                    log.warning("not let in: %s: %s", address_text(side.peer), error)
            self._knocking.discard(side)
            self._living.discard(side)
            if self._shut:
                self._close_if_empty()

        side.on_stream = on_stream
        side.on_end = on_end
        return side

    def _close_if_empty(self) -> None:
        if not self._living and self._transport is not None:
            self._transport.close()


@final
class _QuicListening(Listening):
    def __init__(self, endpoint: EndPoint, said: Credentials, on_link: OnLink) -> None:
        self.said = said
        self.on_link = on_link
        self._endpoint = endpoint
        self._servers: list[_Server] = []
        self._places: list[str] = []
        self._stamps = said.stamps()
        self._configuration = _server_configuration(said)

    async def open(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        """Listen at a bound socket too."""
        _, server = await loop.create_datagram_endpoint(lambda: _Server(self, sock), sock=sock)
        self._servers.append(server)
        self._places += listening_locators("quic", sock)

    def configuration(self) -> QuicConfiguration:
        """That for whoever comes next, made anew when a file has changed."""
        stamps = self.said.stamps()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._configuration = _server_configuration(self.said)
            except (LinkError, ConfigError) as error:
                log.warning("quic: the certificates of before are used: %s", error)
        return self._configuration

    def locators(self) -> list[str]:
        """Where to reach it; by name if it was told one, since certificates are for names."""
        return named_locators(self._endpoint, "quic", self._places)

    def close(self) -> None:
        """Take nobody new."""
        for server in self._servers:
            server.shut()
        self._servers.clear()


def _client_configuration(said: Credentials, host: str) -> QuicConfiguration:
    configuration = QuicConfiguration(is_client=True, alpn_protocols=list(ALPN))
    configuration.verify_mode = ssl.CERT_REQUIRED
    configuration.server_name = host.partition("%")[0] if said.verify_name else None
    if said.authority is not None:
        configuration.load_verify_locations(cadata=said.authority.read())
    if said.mtls:
        _show(configuration, *said.identity("connect"))
    return configuration


def _server_configuration(said: Credentials) -> QuicConfiguration:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=list(ALPN))
    _show(configuration, *said.identity("listen"))
    return configuration


def _show(configuration: QuicConfiguration, certificate: Pem, key: Pem) -> None:
    try:
        chain = load_pem_x509_certificates(certificate.read())
        configuration.certificate = chain[0]
        configuration.certificate_chain = chain[1:]
        configuration.private_key = load_pem_private_key(key.read())
    except (ValueError, TypeError, IndexError) as error:
        raise LinkError(
            f"cannot use {certificate!r} with {key!r}: write both in PEM, without a password"
        ) from error

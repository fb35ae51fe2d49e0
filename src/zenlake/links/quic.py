"""Links over QUIC: `quic/node.example:7447`, one stream, each batch prefixed as over tcp."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Final, final

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import NetworkAddress, QuicConnection
from aioquic.tls import load_pem_private_key, load_pem_x509_certificates

from zenlake.config.model_transport import LinkSettings
from zenlake.errors import ConfigError, LinkError
from zenlake.links.certificates import Pem, TlsCredentials, credentials
from zenlake.links.inet import (
    InetAddress,
    address_text,
    apply_options,
    bound,
    listening_locators,
    resolve,
)
from zenlake.links.link import LinkListener, OnLink, UnicastLink, reason
from zenlake.links.options import only_inet
from zenlake.links.quic_internals import ServerProtocol
from zenlake.links.quic_side import QuicLink, QuicSide
from zenlake.links.refusals import RefusalLog
from zenlake.links.tls import named_locators
from zenlake.values.locator import EndPoint

__all__ = ["connect", "listen"]

ALPN: Final = ("zenoh", "hq-29")
"""The application protocols to negotiate: the current one, and that of older nodes."""
MAX_KNOCKING: Final = 128
"""How many connections to one place may be in the middle of their handshake."""

log = logging.getLogger("zenlake.links")


async def connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float, settings: LinkSettings
) -> UnicastLink:
    """A link to the first address that answers and whose certificate is accepted."""
    deadline = loop.time() + timeout
    tls = credentials(endpoint, settings.tls, "connect")
    plain = only_inet(endpoint, settings.tls.so_sndbuf, settings.tls.so_rcvbuf)
    tried: list[str] = []
    try:
        configuration = _client_configuration(tls, endpoint.host)
        async with asyncio.timeout_at(deadline):
            places = await resolve(endpoint.host, endpoint.port, socket.SOCK_DGRAM, loop)
    except (LinkError, TimeoutError) as error:
        raise LinkError(f"{plain}: {reason(error)}") from error
    for index, place in enumerate(places):
        share = loop.time() + (deadline - loop.time()) / (len(places) - index)
        try:
            async with asyncio.timeout_at(share):
                return await _connected(plain, place, loop, configuration, tls)
        except OSError as error:  # a timeout is one, too
            tried.append(f"{address_text(place[1])}: {reason(error)}")
    raise LinkError(f"{plain}: cannot connect to {'; '.join(tried)}")


async def listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink, settings: LinkSettings
) -> LinkListener:
    """Take connections at the endpoint."""
    tls = credentials(endpoint, settings.tls, "listen")
    plain = only_inet(endpoint, settings.tls.so_sndbuf, settings.tls.so_rcvbuf)
    if tls.mtls:
        raise ConfigError(
            f"{plain}: quic cannot demand certificates of nodes that connect; "
            "listen on tls, or set enable_mtls=false"
        )
    try:
        listening = _QuicListener(endpoint, tls, on_link)
    except LinkError as error:
        raise LinkError(f"{plain}: {error}") from error
    try:
        for sock in await bound(plain, socket.SOCK_DGRAM, loop):
            await listening.open(sock, loop)
    except OSError as error:
        listening.close()
        raise LinkError(f"{plain}: cannot listen: {reason(error)}") from error
    return listening


async def _connected(
    endpoint: EndPoint,
    place: InetAddress,
    loop: asyncio.AbstractEventLoop,
    configuration: QuicConfiguration,
    tls: TlsCredentials,
) -> UnicastLink:
    family, address = place
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        apply_options(sock, endpoint)
        if endpoint.get("bind") is None:
            sock.bind((_source(place), 0))
        quic = QuicConnection(configuration=configuration)
        transport, side = await loop.create_datagram_endpoint(
            lambda: QuicSide(quic, tls), sock=sock
        )
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


def _source(place: InetAddress) -> str:
    """The address of this machine that packets to a place come from."""
    family, address = place
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


class _Server(ServerProtocol):
    """A bound socket; datagrams go to connections by their ids."""

    def __init__(self, listening: _QuicListener, sock: socket.socket) -> None:
        super().__init__(listening.configuration(), self._came)
        self.sock = sock
        self._listening = listening
        self._knocking: set[QuicSide] = set()
        self._living: set[QuicSide] = set()
        self._shut = False

    def shut(self) -> None:
        """Accept no more connections; the socket is closed with the last one."""
        self._shut = True
        for side in list(self._knocking):
            side.end()
        self._close_if_empty()

    def datagram_received(self, data: bytes | str, addr: NetworkAddress) -> None:
        """A packet came: of a connection, or to begin one."""
        if data and isinstance(data, bytes) and data[0] & 0x80 and self._is_new(data):
            if self._shut or len(self._knocking) >= MAX_KNOCKING:
                return
            self.set_configuration(self._listening.configuration())
        super().datagram_received(data, addr)

    def _is_new(self, data: bytes) -> bool:
        # A long header: flags, version, then the length of the id and the id.
        return len(data) > 5 and not self.is_known(data[6 : 6 + data[5]])

    def _came(self, quic: QuicConnection, stream_handler: object = None) -> QuicSide:
        side = QuicSide(quic, self._listening.tls)
        timer = self.loop.call_later(self._listening.tls.handshake_timeout, side.end)
        self._knocking.add(side)

        def on_stream() -> None:
            timer.cancel()
            self._knocking.discard(side)
            self._living.add(side)
            side.link = QuicLink(side, self.loop, self.sock.getsockname(), side.peer)
            self._listening.on_link(side.link)

        def on_end() -> None:
            timer.cancel()
            if side in self._knocking and side.opened.done() and not side.opened.cancelled():
                error = side.opened.exception()
                if error is not None:
                    self._listening.refusals.warn(f"not let in: {address_text(side.peer)}: {error}")
            self._knocking.discard(side)
            self._living.discard(side)
            if self._shut:
                self._close_if_empty()

        side.on_stream = on_stream
        side.on_end = on_end
        return side

    def _close_if_empty(self) -> None:
        if not self._living:
            self.close_socket()


@final
class _QuicListener(LinkListener):
    def __init__(self, endpoint: EndPoint, tls: TlsCredentials, on_link: OnLink) -> None:
        self.tls = tls
        self.on_link = on_link
        self.refusals = RefusalLog()
        self._endpoint = endpoint
        self._servers: list[_Server] = []
        self._places: list[str] = []
        self._stamps = tls.stamps()
        self._configuration = _server_configuration(tls)

    async def open(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        """Listen at a bound socket too."""
        _, server = await loop.create_datagram_endpoint(lambda: _Server(self, sock), sock=sock)
        self._servers.append(server)
        self._places += listening_locators("quic", sock)

    def configuration(self) -> QuicConfiguration:
        """The configuration for the next connection, made anew when a file has changed."""
        stamps = self.tls.stamps()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._configuration = _server_configuration(self.tls)
            except (LinkError, ConfigError) as error:
                log.warning("quic: the certificates of before are used: %s", error)
        return self._configuration

    def locators(self) -> list[str]:
        """Where to reach it; by name if the endpoint has one, since certificates are for names."""
        return named_locators(self._endpoint, "quic", self._places)

    def close(self) -> None:
        """Accept no more links."""
        for server in self._servers:
            server.shut()
        self._servers.clear()


def _client_configuration(tls: TlsCredentials, host: str) -> QuicConfiguration:
    configuration = QuicConfiguration(is_client=True, alpn_protocols=list(ALPN))
    configuration.verify_mode = ssl.CERT_REQUIRED
    configuration.server_name = host.partition("%")[0] if tls.verify_name else None
    if tls.authority is not None:
        configuration.load_verify_locations(cadata=tls.authority.read())
    if tls.mtls:
        _show(configuration, *tls.identity("connect"))
    return configuration


def _server_configuration(tls: TlsCredentials) -> QuicConfiguration:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=list(ALPN))
    _show(configuration, *tls.identity("listen"))
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

"""Links over TLS: `tls/node.example:7447`, each batch prefixed as over tcp."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import ssl
import threading
import time
from typing import Final, cast, final

from zenlake.config.model_transport import LinkSettings
from zenlake.errors import LinkError
from zenlake.links import tcp
from zenlake.links.certificates import (
    ServerContext,
    TlsCredentials,
    client_context,
    credentials,
    tls_reason,
)
from zenlake.links.layered import LayeredLink, LayeredListener, opened_in_time
from zenlake.links.link import MAX_BATCH, LinkListener, OnLink, UnicastLink
from zenlake.links.options import only_inet
from zenlake.values.locator import EndPoint, Locator

__all__ = ["TlsLink", "connect", "listen", "named_locators"]

PIECE: Final = 131072
"""How much is encrypted at once, before the network takes it."""
ROOM: Final = 131072
"""How much is decrypted before it is handed over: several records, each of at most 16 KiB."""
LONGEST_SLEEP: Final = 600.0
"""A clock may be set while we wait for a certificate to expire: look again after this."""

log = logging.getLogger("zenlake.links")


async def connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float, settings: LinkSettings
) -> UnicastLink:
    """A link to the endpoint, whose certificate is accepted."""
    return await secure(endpoint, loop, timeout, settings, "tls")


async def secure(
    endpoint: EndPoint,
    loop: asyncio.AbstractEventLoop,
    timeout: float,
    settings: LinkSettings,
    protocol: str,
) -> TlsLink:
    """As `connect`, for a protocol over TLS."""
    deadline = loop.time() + timeout
    tls = credentials(endpoint, settings.tls, "connect")
    plain = only_inet(endpoint, settings.tls.so_sndbuf, settings.tls.so_rcvbuf)
    try:
        context = client_context(tls)
    except LinkError as error:
        raise LinkError(f"{plain}: {error}") from error
    inner = await tcp.connect(plain, loop, deadline - loop.time())
    link = TlsLink(inner, loop, context, tls, protocol, endpoint.host)
    return await opened_in_time(link, loop, deadline)


async def listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink, settings: LinkSettings
) -> LinkListener:
    """Take connections at the endpoint."""
    return await secure_listening(endpoint, loop, on_link, settings, "tls")


async def secure_listening(
    endpoint: EndPoint,
    loop: asyncio.AbstractEventLoop,
    on_link: OnLink,
    settings: LinkSettings,
    protocol: str,
) -> LinkListener:
    """As `listen`, for a protocol over TLS."""
    tls = credentials(endpoint, settings.tls, "listen")
    plain = only_inet(endpoint, settings.tls.so_sndbuf, settings.tls.so_rcvbuf)
    try:
        listening = _TlsListener(endpoint, loop, on_link, tls, protocol)
    except LinkError as error:
        raise LinkError(f"{plain}: {error}") from error
    listening.inner = await tcp.listen(plain, loop, listening.accepted)
    return listening


@final
class TlsLink(LayeredLink):
    """TLS over a stream. With a host it is the side that connects, else the one connected to."""

    stream = True
    mtu = MAX_BATCH
    burst = PIECE

    def __init__(
        self,
        inner: UnicastLink,
        loop: asyncio.AbstractEventLoop,
        context: ssl.SSLContext,
        tls: TlsCredentials,
        protocol: str,
        host: str = "",
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, not host, host.partition("%")[0] or None
        )
        self._room = memoryview(bytearray(ROOM))
        # Held while bytes are decrypted and handed over: two threads would mix them up.
        self._reader = threading.Lock()
        self._home = threading.get_ident()
        self._credentials = tls
        self._expiry = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        super().__init__(inner, loop, protocol)
        self._shake()

    def send(self, data: bytes) -> int:
        """Hand bytes to the network, without waiting; how many it took."""
        with self._lock:
            self._check_open()
            if not self._flushed():
                return 0
            piece = data if len(data) <= PIECE else data[:PIECE]
            try:
                taken = self._tls.write(piece)
            except ssl.SSLError as error:
                raise LinkError(f"{self.dst}: cannot send: {tls_reason(error)}") from error
            self._write(self._outgoing.read())
            return taken

    @property
    def fd(self) -> int:
        """The socket's: what is decrypted was read there."""
        return self._inner.fd

    def read_now(self) -> None:
        """Read what is there, on any thread."""
        self._inner.read_now()

    def unwatch(self) -> None:
        """Leave the reading to others."""
        self._inner.unwatch()

    def watch(self) -> None:
        """Read by itself again."""
        self._inner.watch()

    def _leave(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        super()._leave()

    def _arrived(self, data: bytes) -> None:
        with self._lock:
            self._incoming.write(data)
        if not self._agreement.done():
            self._shake()
        elif self._on_data is not None:
            self._begin()

    def _begin(self) -> None:
        """Decrypt what has arrived."""
        with self._reader:
            while self._decrypt():
                pass

    def _decrypt(self) -> bool:
        """Hand over as much as there is room for; whether there may be more."""
        used = 0
        left = True
        over = False
        error: LinkError | None = None
        with self._lock:
            room = self._room
            try:
                while used < ROOM and left:
                    # With a buffer it gives the number of bytes, whatever its annotation says.
                    size = cast("int", self._tls.read(ROOM - used, room[used:]))
                    used += size
                    over = size == 0
                    left = not over
            except ssl.SSLWantReadError:
                left = False
            except ssl.SSLZeroReturnError:
                over = True
            except ssl.SSLError as fault:
                error = LinkError(f"{self.dst}: the link broke: {tls_reason(fault)}")
            with contextlib.suppress(LinkError):  # reading will tell
                self._say()
            data = bytes(room[:used])
        self._deliver(data)
        if error is not None or over:
            # Links are lost on the thread of the loop.
            if threading.get_ident() == self._home:
                self._lose(error)
            else:
                with contextlib.suppress(RuntimeError):  # a process that ends in disorder
                    self._loop.call_soon_threadsafe(self._lose, error)
            return False
        return left

    def _ended(self, error: Exception | None) -> None:
        if error is None:
            why = "the connection ended without a goodbye, and may have been cut"
            if not self._agreement.done():
                why = "the connection ended in the middle of the TLS handshake"
            error = LinkError(f"{self.dst}: {why}")
        self._lose(error)

    def _farewell(self) -> bytes:
        # Writes the closing alert, then complains that the other side has not sent its own.
        with contextlib.suppress(ssl.SSLError, ValueError):
            self._tls.unwrap()
        return self._outgoing.read()

    def _shake(self) -> None:
        """Go on with the handshake, as far as what has arrived allows."""
        try:
            with self._lock:
                try:
                    self._tls.do_handshake()
                finally:
                    self._say()
        except ssl.SSLWantReadError:
            return
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._lose(LinkError(f"{self.dst}: no TLS with the other side: {tls_reason(error)}"))
            return
        except LinkError as error:
            self._lose(error)
            return
        self._know_peer()
        self._agree()

    def _say(self) -> None:
        if self._outgoing.pending:
            self._write(self._outgoing.read())

    def _know_peer(self) -> None:
        shown = self._tls.getpeercert() or {}
        for part in shown.get("subject", ()):
            for pair in part:
                if pair[0] == "commonName":
                    self.auth_identifier = str(pair[1])
        until = shown.get("notAfter")
        if self._credentials.close_on_expiration and isinstance(until, str):
            self._expiry = float(ssl.cert_time_to_seconds(until))
            self._watch()

    def _watch(self) -> None:
        left = self._expiry - time.time()
        if left > 0:
            self._alarm = self._loop.call_later(min(left, LONGEST_SLEEP), self._watch)
            return
        self._alarm = None
        self._lose(LinkError(f"{self.dst}: the certificate of the other side has expired"))


@final
class _TlsListener(LayeredListener):
    def __init__(
        self,
        endpoint: EndPoint,
        loop: asyncio.AbstractEventLoop,
        on_link: OnLink,
        tls: TlsCredentials,
        protocol: str,
    ) -> None:
        super().__init__(loop, on_link, self._secured)
        self._endpoint = endpoint
        self._protocol = protocol
        self._tls = tls
        self._context = ServerContext(tls)

    def locators(self) -> list[str]:
        """Where to reach it; by name if the endpoint has one, since certificates are for names."""
        assert self.inner is not None
        return named_locators(self._endpoint, self._protocol, self.inner.locators())

    async def _secured(self, inner: UnicastLink) -> TlsLink:
        context, fault = self._context.current()
        if fault is not None:
            log.warning("%s: the certificates of before are used: %s", self._protocol, fault)
        link = TlsLink(inner, self._loop, context, self._tls, self._protocol)
        deadline = self._loop.time() + self._tls.handshake_timeout
        return await opened_in_time(link, self._loop, deadline)


def named_locators(endpoint: EndPoint, protocol: str, bound: list[str]) -> list[str]:
    """The locators of bound sockets, with the host by the name that the endpoint gives it."""
    try:
        ipaddress.ip_address(endpoint.host.partition("%")[0])
    except ValueError:
        ports = dict.fromkeys(locator.rpartition(":")[2] for locator in bound)
        return [str(Locator(protocol, f"{endpoint.host}:{port}")) for port in ports]
    return [f"{protocol}/{locator.partition('/')[2]}" for locator in bound]

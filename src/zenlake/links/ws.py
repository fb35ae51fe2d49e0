"""Links over WebSockets, plain (`ws/…`) or inside TLS (`wss/…`): one batch in each message."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, final

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from zenlake.config.model_transport import LinkSettings
from zenlake.errors import LimitError, LinkError
from zenlake.links import tcp, tls
from zenlake.links.layered import LayeredLink, LayeredListener, opened_in_time
from zenlake.links.link import MAX_BATCH, LinkListener, OnLink, UnicastLink
from zenlake.links.options import only_inet
from zenlake.values.locator import EndPoint

__all__ = ["WebSocketLink", "connect", "listen"]

AGREEMENT: Final = 10.0
"""How many seconds a neighbour that connects may take to ask for a WebSocket."""
IDLE_FRAMES: Final = 256
"""How many pings and empty pieces may come without a batch: keep-alives are batches."""
IN_ORDER: Final = (1000, 1001, 1005)
"""The codes of goodbyes without a fault."""


async def connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float, settings: LinkSettings
) -> UnicastLink:
    """A link to the endpoint."""
    deadline = loop.time() + timeout
    inner: UnicastLink
    if endpoint.protocol == "wss":
        inner = await tls.secure(endpoint, loop, timeout, settings, endpoint.protocol)
    else:
        plain = only_inet(endpoint, settings.tcp.so_sndbuf, settings.tcp.so_rcvbuf)
        inner = await tcp.connect(plain, loop, timeout)
    link = WebSocketLink(inner, loop, endpoint.protocol, endpoint.address)
    return await opened_in_time(link, loop, deadline)


async def listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink, settings: LinkSettings
) -> LinkListener:
    """Take connections at the endpoint."""
    protocol = endpoint.protocol
    listening = _WebSocketListener(loop, on_link, protocol)
    if protocol == "wss":
        listening.inner = await tls.secure_listening(
            endpoint, loop, listening.accepted, settings, protocol
        )
    else:
        plain = only_inet(endpoint, settings.tcp.so_sndbuf, settings.tcp.so_rcvbuf)
        listening.inner = await tcp.listen(plain, loop, listening.accepted)
    return listening


@final
class WebSocketLink(LayeredLink):
    """A WebSocket over a stream. With an authority it is the side that connects."""

    stream = False
    mtu = MAX_BATCH

    def __init__(
        self,
        inner: UnicastLink,
        loop: asyncio.AbstractEventLoop,
        protocol: str,
        authority: str = "",
    ) -> None:
        kind = ConnectionType.CLIENT if authority else ConnectionType.SERVER
        self._ws = WSConnection(kind)
        self._message = bytearray()
        self._early: list[bytes] = []
        #: Frames since the last batch that carried nothing of one.
        self._idle = 0
        super().__init__(inner, loop, protocol)
        if authority:
            with self._lock:
                self._write(self._ws.send(Request(host=authority, target="/")))

    def send(self, data: bytes) -> int:
        """Hand a batch to the network, or take nothing."""
        with self._lock:
            self._check_open()
            if not self._flushed():
                return 0
            try:
                self._write(self._ws.send(BytesMessage(data=data)))
            except LocalProtocolError as error:
                raise LinkError(
                    f"{self.dst}: cannot send: the other side closed the WebSocket"
                ) from error
        return len(data)

    def _arrived(self, data: bytes) -> None:
        try:
            with self._lock:
                self._ws.receive_data(data)
            for event in self._ws.events():
                if self._closed:
                    return
                self._happened(event)
        except RemoteProtocolError as error:
            if error.event_hint is not None:
                with contextlib.suppress(LinkError, LocalProtocolError), self._lock:
                    self._write(self._ws.send(error.event_hint))
            self._lose(LinkError(f"{self.dst}: this is no WebSocket: {error}"))
        except (LinkError, LimitError) as error:
            self._lose(error)

    def _begin(self) -> None:
        early, self._early = self._early, []
        for batch in early:
            self._deliver(batch)

    def _happened(self, event: object) -> None:
        if isinstance(event, BytesMessage):
            self._heard(event)
        elif isinstance(event, Request):
            with self._lock:
                self._write(self._ws.send(AcceptConnection()))
            self._agree()
        elif isinstance(event, AcceptConnection):
            self._agree()
        elif isinstance(event, RejectConnection | RejectData):
            status = getattr(event, "status_code", "no")
            raise LinkError(f"{self.dst}: no WebSocket here: the other side answered {status}")
        elif isinstance(event, Ping):
            self._idle_frame()
            with self._lock:
                # A side that reads no pongs is owed none: only the latest ping needs an answer.
                if self._flushed():
                    self._write(self._ws.send(event.response()))
        elif isinstance(event, CloseConnection):
            with contextlib.suppress(LocalProtocolError), self._lock:
                self._write(self._ws.send(event.response()))
            if event.code not in IN_ORDER:  # a fault that the other side made, or found
                why = event.reason or "no reason"
                raise LinkError(f"{self.dst}: the WebSocket broke: {why} ({event.code})")
            self._lose(None)
        elif isinstance(event, TextMessage):
            raise LinkError(f"{self.dst}: the other side sent text, which is no batch")
        else:
            assert isinstance(event, Pong)  # unasked; harmless, unless there is no end of them
            self._idle_frame()

    def _idle_frame(self) -> None:
        """Count a frame that brings no batch nearer; raises if there are only such frames."""
        self._idle += 1
        if self._idle > IDLE_FRAMES:
            raise LimitError(
                f"{self.dst}: more than {IDLE_FRAMES} frames without a batch: pings, or pieces "
                "with nothing in them"
            )

    def _heard(self, event: BytesMessage) -> None:
        if event.data:
            self._idle = 0
        else:
            self._idle_frame()
        if not self._message and event.message_finished and len(event.data) <= MAX_BATCH:
            batch = bytes(event.data)
        else:
            self._message += event.data
            if len(self._message) > MAX_BATCH:
                raise LimitError(f"{self.dst}: a message is longer than {MAX_BATCH} bytes")
            if not event.message_finished:
                return
            batch = bytes(self._message)
            self._message.clear()
        if self._on_data is None:
            self._early.append(batch)
        else:
            self._deliver(batch)

    def _ended(self, error: Exception | None) -> None:
        if error is None and not self._agreement.done():
            error = LinkError(f"{self.dst}: the connection ended before there was a WebSocket")
        self._lose(error)

    def _farewell(self) -> bytes:
        with contextlib.suppress(LocalProtocolError):
            return self._ws.send(CloseConnection(code=1000))
        return b""


@final
class _WebSocketListener(LayeredListener):
    def __init__(self, loop: asyncio.AbstractEventLoop, on_link: OnLink, protocol: str) -> None:
        super().__init__(loop, on_link, self._agreed)
        self._protocol = protocol

    def locators(self) -> list[str]:
        """Where to reach it."""
        assert self.inner is not None
        locators = self.inner.locators()
        return [f"{self._protocol}/{locator.partition('/')[2]}" for locator in locators]

    async def _agreed(self, inner: UnicastLink) -> WebSocketLink:
        link = WebSocketLink(inner, self._loop, self._protocol)
        return await opened_in_time(link, self._loop, self._loop.time() + AGREEMENT)

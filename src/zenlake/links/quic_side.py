"""One stream of a QUIC connection, and this end of the connection itself.

Everything about packets, keys and loss is aioquic's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, final

from aioquic.quic.connection import NetworkAddress, QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamDataReceived,
    StreamReset,
)
from cryptography.x509 import NameOID

from zenlake.errors import LinkError
from zenlake.links.certificates import TlsCredentials
from zenlake.links.inet import address_text, host_of
from zenlake.links.interfaces import interfaces_at
from zenlake.links.link import MAX_BATCH, OnData, OnLost, UnicastLink
from zenlake.links.quic_internals import ConnectionProtocol
from zenlake.links.tls import LONGEST_SLEEP

__all__ = ["QuicLink", "QuicSide"]

STREAM: Final = 0
"""The first stream that the side that connects opens, in both directions."""
MAX_UNSENT: Final = 1_000_000
"""How many bytes may wait to be sent or acknowledged before no more are taken."""
MAX_HELD: Final = 1_000_000
"""How many bytes are kept for a paused reader, before packets are dropped as if lost."""
LAST_WORDS: Final = 1.0
"""How many seconds a closed link has to send what it had taken."""


@final
class QuicLink(UnicastLink):
    """One stream of a connection."""

    stream = True
    reliable = True
    thread_safe = False
    mtu = MAX_BATCH

    def __init__(
        self, side: QuicSide, loop: asyncio.AbstractEventLoop, src: object, dst: object
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
        """Whether nothing more can be kept for a paused reader."""
        return self._held_size >= MAX_HELD

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Begin to hand over what arrives."""
        self._on_data = on_data
        self._on_lost = on_lost
        self._loop.call_soon(self.hand_over)

    def send(self, data: bytes) -> int:
        """Hand bytes to the connection, without waiting; how many it took."""
        if self._closed:
            raise LinkError(f"{self.dst}: the link is closed")
        if self._over is not None:
            raise LinkError(f"{self.dst}: cannot send: the connection is over")
        room = MAX_UNSENT - self._side.unsent(STREAM)
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
        self._loop.call_soon(self.hand_over)

    def close(self) -> None:
        """End the link, at once."""
        if self._closed:
            return
        self._closed = True
        self._on_data = None
        self._on_lost = None
        self._on_writable = None
        self._held.clear()
        if self._over is None:
            self._side.leave()
        else:
            self._side.end()

    # --------------------------------------------------------------------- called by the connection

    def arrived(self, data: bytes) -> None:
        """Bytes came on the stream."""
        if not self._closed and data:
            self._held.append(data)
            self._held_size += len(data)

    def over(self, error: LinkError | None) -> None:
        """The connection ended."""
        if self._over is None:
            self._over = (error,)
        self.hand_over()

    def look_for_room(self) -> None:
        """Something may have been acknowledged."""
        callback = self._on_writable
        if callback is not None and (self._over or self._side.unsent(STREAM) < MAX_UNSENT // 2):
            self._on_writable = None
            callback()

    def hand_over(self) -> None:
        """All that one packet brought is there."""
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


class QuicSide(ConnectionProtocol):
    """This end of a connection, and the link that runs over its stream."""

    def __init__(self, quic: QuicConnection, tls: TlsCredentials) -> None:
        super().__init__(quic)
        self.link: QuicLink | None = None
        self.peer: NetworkAddress | None = None
        self.opened: asyncio.Future[None] = self.loop.create_future()
        self.on_stream: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self._tls = tls
        self._ended = False
        self._leaving = False
        self._alarm: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        """Send on the stream."""
        self.quic.send_stream_data(STREAM, data)
        self.transmit()

    def leave(self) -> None:
        """Close the connection once what was written is on its way, or it takes too long."""
        self.link = None
        self._leaving = True
        if self._alarm is not None:
            self._alarm.cancel()
        if self._ended or self._is_said():
            self.end()
        else:
            self._alarm = self.loop.call_later(LAST_WORDS, self.end)

    def _is_said(self) -> bool:
        # The pace at which packets are sent may hold some back.
        return self.is_flushed(STREAM)

    def end(self) -> None:
        """Close the connection, and forget it: no timer of it is left."""
        if self._ended:
            return
        self._ended = True
        self.abandon()
        if self._alarm is not None:
            self._alarm.cancel()
        if not self.opened.done():
            self.opened.cancel()
        self.on_end()

    def datagram_received(self, data: bytes | str, addr: NetworkAddress) -> None:
        """A packet came."""
        link = self.link
        if self._ended or (link is not None and link.is_full):
            return  # as if it had been lost: it is sent again
        self.peer = addr
        super().datagram_received(data, addr)
        self._progress()

    def on_timer(self) -> None:
        """A timer of the connection is due."""
        if not self._ended:
            super().on_timer()
            self._progress()

    def _progress(self) -> None:
        link = self.link
        if link is not None:
            link.hand_over()
            link.look_for_room()
        elif self._leaving and self._is_said():
            self.end()

    def quic_event_received(self, event: QuicEvent) -> None:
        """Something happened to the connection."""
        if isinstance(event, StreamDataReceived) and event.stream_id == STREAM:
            if self.link is None and not self._leaving:
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
            self.opened.exception()  # it need not be awaited
        if self.link is not None:
            in_order = event.error_code == 0
            error = None if in_order else LinkError(f"{self.link.dst}: the link broke: {words}")
            self.link.over(error)
        else:
            self.end()

    def _know_peer(self) -> None:
        self.common_name: str | None = None
        shown = self.peer_certificate()
        if shown is None:
            return
        for attribute in shown.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
            self.common_name = str(attribute.value)
        if self._tls.close_on_expiration:
            self._expiry = shown.not_valid_after_utc.timestamp()
            self._watch()

    def _watch(self) -> None:
        left = self._expiry - time.time()
        if left > 0:
            self._alarm = self.loop.call_later(min(left, LONGEST_SLEEP), self._watch)
            return
        self._alarm = None
        if self.link is not None:
            why = "the certificate of the other side has expired"
            self.link.over(LinkError(f"{self.link.dst}: {why}"))

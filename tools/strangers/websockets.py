"""A router behind WebSockets, and strangers whose batches come in frames that are right or are not.

The frames pass the link that real ones pass (`links/ws`), and what it finds in them a node that
has an open session with the stranger.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from tools import fuzz
from tools.strangers.nodes import Nodes
from tools.strangers.wires import Stranger
from zenlake.links.link import OnData, OnLost, UnicastLink
from zenlake.links.ws import WebSocketLink
from zenlake.node.node import Node
from zenlake.node.sessions.connect import Attempt
from zenlake.transport.handshake import Offer

ASKED = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
BINARY, MORE, LAST, PING, PONG, TEXT, CLOSE = 0x82, 0x00, 0x80, 0x89, 0x8A, 0x81, 0x88


class Pipe(UnicastLink):
    """The stream below a WebSocket: what is written to it goes nowhere."""

    stream = True
    reliable = True
    thread_safe = False
    mtu = 65535

    def __init__(self) -> None:
        """Not started."""
        super().__init__("tcp/127.0.0.1:1", "tcp/127.0.0.1:2")
        self.on_data: OnData | None = None
        self.on_lost: OnLost | None = None
        self.full = False
        self.paused = False

    @property
    def interfaces(self) -> list[str]:
        """None."""
        return []

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Remember whom to tell."""
        self.on_data, self.on_lost = on_data, on_lost

    def send(self, data: bytes) -> int:
        """Take everything, or nothing."""
        return 0 if self.full else len(data)

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Never."""

    def pause(self) -> None:
        """What is sent now is not read."""
        self.paused = True

    def resume(self) -> None:
        """What is sent is read again."""
        self.paused = False

    def close(self) -> None:
        """Closed."""


class FramedStranger(Stranger):
    """A stranger at the end of a WebSocket."""

    def __init__(
        self,
        node: Node,
        offer: Offer,
        now: float,
        chance: random.Random,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """It asks for a WebSocket, then for a session."""
        self.chance = chance
        self.pipe = Pipe()
        self.lost: list[Exception | None] = []
        self.link = WebSocketLink(self.pipe, loop, "ws")
        assert self.pipe.on_data is not None
        self.pipe.on_data(ASKED)
        self.came: list[bytes] = []
        self.link.start(self.came.append, self.lost.append)
        loop.run_until_complete(asyncio.sleep(0))
        self.steady = True
        super().__init__(node, offer, None, False, now)
        self.steady = False

    @property
    def is_open(self) -> bool:
        """Whether there is a session, and a link below it."""
        return not self.lost and super().is_open

    def send(self, data: bytes, now: float) -> None:
        """Send a batch in frames, among others that are of no use, or damaged."""
        chance = self.chance
        sent = bytearray()
        if self.steady or chance.random() < 0.9:
            sent += framed(BINARY, data)
        else:
            cut = chance.randrange(len(data) + 1)
            sent += framed(0x02, data[:cut])
            if chance.random() < 0.5:
                sent += framed(PING, chance.randbytes(chance.randrange(126)))
            sent += framed(MORE, b"") + framed(LAST, data[cut:])
        if not self.steady and chance.random() < 0.05:
            opcode = chance.choice((PING, PONG, BINARY, TEXT, CLOSE, 0x83, 0xC2))
            sent += framed(opcode, chance.randbytes(chance.choice((0, 1, 125))))
        if not self.steady and chance.random() < 0.01:
            chance.choice(fuzz.DAMAGES)(sent, chance, [bytes(sent)])
        self.pipe.full = not self.steady and chance.random() < 0.1
        if self.pipe.on_data is not None and not self.pipe.paused:
            self.pipe.on_data(bytes(sent))
        for batch in self.came:
            self.node.receive(self.neighbour, batch, now)
        self.came.clear()

    def shut(self) -> None:
        """Both are gone."""
        super().shut()
        self.link.close()


def framed(opcode: int, data: bytes) -> bytes:
    """A frame, masked with zeros as a client may."""
    size = len(data)
    if size < 126:
        head = bytes((opcode, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((opcode, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((opcode, 0x80 | 127)) + size.to_bytes(8, "big")
    return head + bytes(4) + data


class WebSockets(Nodes):
    """A router, honest clients, and strangers behind WebSockets."""

    def __init__(self, chance: random.Random) -> None:
        """Strangers are clients."""
        self._loop = asyncio.new_event_loop()
        super().__init__("router", "client", chance)
        self.name = self.group = "WebSocket"

    def close(self) -> None:
        """The loop of its links is needed no more."""
        self._loop.close()

    def _knock(self, offer: Offer, attempt: Attempt | None) -> Stranger:
        if attempt is not None:
            self.dialling = attempt
        return FramedStranger(self.node, offer, self.now, self.chance, self._loop)

"""A hostile program: a blocking socket, the opening, and frames as it likes them."""

from __future__ import annotations

import secrets
import socket
import ssl
import struct
from collections.abc import Iterable
from typing import Self, TypeVar

from zenlake.wire import (
    Fragment,
    InitAck,
    InitSyn,
    Message,
    OpenAck,
    OpenSyn,
    read_batch,
    write,
)

#: The address that attacks come from: loopback, and not that of the honest programs.
ATTACKER = "127.0.0.66"
HONEST = "127.0.0.1"
CLIENT, ROUTER = 2, 0
MASK = 0x0FFF_FFFF
#: How many bytes of messages are put into one frame.
FULL = 45_000


Heard = TypeVar("Heard", bound=Message)


class Cut(Exception):
    """The other side closed the link."""


class Hostile:
    """A session that is opened in order, and then says whatever it is told to."""

    def __init__(self, sock: socket.socket, role: int = CLIENT, zid: bytes = b"") -> None:
        """Open a session over a connected socket."""
        self.sock = sock
        self.zid = zid or secrets.token_bytes(8).rstrip(b"\0")
        self.sent = 0
        self._sn = 0
        self._kept = b""
        self.send_batch(write(InitSyn(version=9, whatami=role, zid=self.zid, patch=1)))
        ack = self.hear(InitAck)
        self.send_batch(write(OpenSyn(lease=600_000, initial_sn=0, cookie=ack.cookie)))
        self.hear(OpenAck)

    @classmethod
    def connect(
        cls, port: int, role: int = CLIENT, zid: bytes = b"", source: str = ATTACKER
    ) -> Self:
        """A session with the router at a port of this machine."""
        return cls(dial(port, source), role, zid)

    def send_batch(self, batch: bytes) -> None:
        """Write one batch with its length."""
        self.write(struct.pack("<H", len(batch)) + batch)

    def write(self, data: bytes) -> None:
        """Write bytes; raises `Cut` when the other side has closed."""
        try:
            self.sock.sendall(data)
        except (OSError, ssl.SSLError) as error:
            raise Cut(str(error)) from error
        self.sent += len(data)

    def read(self) -> bytes:
        """The next batch."""
        while len(self._kept) < 2 or len(self._kept) < 2 + self._kept[0] + 256 * self._kept[1]:
            try:
                data = self.sock.recv(1 << 18)
            except OSError as error:
                raise Cut(str(error)) from error
            if not data:
                raise Cut("closed")
            self._kept += data
        end = 2 + self._kept[0] + 256 * self._kept[1]
        batch, self._kept = self._kept[2:end], self._kept[end:]
        return batch

    def hear(self, kind: type[Heard]) -> Heard:
        """Read until a message of a kind comes."""
        while True:
            for message in read_batch(self.read()):
                if isinstance(message, kind):
                    return message

    def say(self, messages: Iterable[Message]) -> None:
        """Send messages in frames that are as full as they may be."""
        parts: list[bytes] = []
        size = 0
        for message in messages:
            data = write(message)
            if size + len(data) > FULL:
                self._frame(parts)
                parts, size = [], 0
            parts.append(data)
            size += len(data)
        if parts:
            self._frame(parts)

    def say_in_fragments(self, data: bytes, finish: bool = True) -> None:
        """Send one large message in fragments, or all of them but the last."""
        for start in range(0, len(data), FULL):
            more = not finish or start + FULL < len(data)
            piece = data[start : start + FULL]
            fragment = Fragment(
                reliable=True, more=more, sn=self._sn, first=start == 0, payload=piece
            )
            self._sn = (self._sn + 1) & MASK
            self.send_batch(write(fragment))

    def _frame(self, parts: list[bytes]) -> None:
        head = bytearray((0x25,))
        number = self._sn
        while number >= 0x80:
            head.append(number & 0x7F | 0x80)
            number >>= 7
        head.append(number)
        self._sn = (self._sn + 1) & MASK
        self.send_batch(bytes(head) + b"".join(parts))


def dial(port: int, source: str = ATTACKER) -> socket.socket:
    """A connection from a source address, whose calls wait for at most 20 seconds."""
    sock = socket.create_connection((HONEST, port), timeout=20, source_address=(source, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock

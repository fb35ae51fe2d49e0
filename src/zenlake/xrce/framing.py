"""Packets on a stream: each behind its length, or for ever without.

A length is a natural number. The length 0 is a switch: from there on this direction of the
stream carries bare messages, and never a length again. The other direction is not concerned.

    >>> from zenlake.xrce.framing import Deframer, frame
    >>> frame(b"\\x0f\\x01").hex()
    '020f01'
    >>> deframer = Deframer()
    >>> [packet.hex() for packet in deframer.feed(bytes.fromhex("020f01 00 0f02 0f"))]
    ['0f01', '0f02']
    >>> [packet.hex() for packet in deframer.feed(b"\\x03")]
    ['0f03']
"""

from __future__ import annotations

from collections.abc import Iterator

from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.cursor import Reader, Writer
from zenlake.xrce.extent import Extent

#: The largest packet: a longer one is refused, so that nobody makes us hoard bytes.
PACKET_MAX = 1 << 24

#: Sent once, it makes all that follows on this direction of the stream bare messages.
UNBOUNDED = b"\0"

#: A length is at most this long, because every natural number is.
_LENGTH_MAX = 10


def frame(packet: bytes, limit: int = PACKET_MAX) -> bytes:
    """A packet behind its length, as a stream carries it."""
    if not packet:
        raise EncodeError("an empty packet: its length 0 would end all framing; send nothing")
    if len(packet) > limit:
        raise EncodeError(f"a packet of {len(packet)} bytes: at most {limit}, split it")
    w = Writer()
    w.nat(len(packet))
    w.raw(packet)
    return w.getvalue()


class Deframer:
    """Cuts one direction of a stream into packets.

    Behind the length 0 every packet is one message with its markers. What a packet means is not
    looked at here, only where it ends. After an error the stream is lost: nothing tells where
    the next packet begins, so every further call raises the same error.
    """

    def __init__(self, limit: int = PACKET_MAX) -> None:
        """Begin with lengths; a packet above `limit` bytes is refused."""
        self.unbounded = False
        #: May be raised while bytes come.
        self.limit = limit
        self._data = bytearray()
        self._extent: Extent | None = None
        self._error: DecodeError | None = None

    @property
    def pending(self) -> int:
        """How many bytes wait for the rest of their packet."""
        return len(self._data)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Take bytes as they come; gives the packets that they complete.

        The bytes are taken at once, the packets are cut as they are asked for: those before an
        error are given first, however the bytes were cut.
        """
        if self._error is None:
            self._data += data
        return self._packets()

    def finish(self) -> None:
        """Say that the stream has ended; refused in the middle of a packet."""
        if self._error is not None:
            raise self._error
        if self._data:
            self._error = DecodeError(f"the stream ends {len(self._data)} bytes into a packet", 0)
            raise self._error

    def _packets(self) -> Iterator[bytes]:
        """The packets that are complete."""
        if self._error is not None:
            raise self._error
        try:
            while self._data:
                packet = self._message() if self.unbounded else self._framed()
                if packet is None:
                    return
                if packet:
                    yield packet
        except DecodeError as error:
            self._error = error
            self._data = bytearray()
            self._extent = None
            raise

    def _framed(self) -> bytes | None:
        """The next packet behind its length; empty: framing has ended; None: not yet there."""
        head = self._data[:_LENGTH_MAX]
        if len(head) < _LENGTH_MAX and all(byte >= 0x80 for byte in head):
            return None
        r = Reader(bytes(head))
        size = r.nat()
        if size > self.limit:
            raise DecodeError(f"a packet of {size} bytes: at most {self.limit}", 0)
        if size == 0:
            self.unbounded = True
            del self._data[: r.pos]
            return b""
        if len(self._data) < r.pos + size:
            return None
        return self._cut(r.pos, r.pos + size)

    def _message(self) -> bytes | None:
        """The next message with its markers; None: not yet there."""
        if self._extent is None:
            self._extent = Extent(self._data, self.limit)
        size = self._extent.find()
        if size < 0:
            return None
        self._extent = None
        return self._cut(0, size)

    def _cut(self, start: int, stop: int) -> bytes:
        """Take a packet off the buffer, and what is before it."""
        packet = bytes(self._data[start:stop])
        del self._data[:stop]
        return packet

"""Packets as messages, and messages as bytes."""

from __future__ import annotations

from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message
from zenlake.xrce.codec import read_message
from zenlake.xrce.markers import XrceMessage

__all__ = ["read_packet", "write"]


def read_packet(data: bytes | bytearray | memoryview) -> list[XrceMessage]:
    """The messages of one packet, each with its markers; a packet has no length prefix."""
    r = Reader(bytes(data))
    messages: list[XrceMessage] = []
    while r.pos < r.end:
        messages.append(read_message(r))
    return messages


def write(message: Message) -> bytes:
    """The bytes of a message, its markers first."""
    w = Writer()
    message.write(w)
    return w.getvalue()

"""The messages of a packet, and what their markers say: conduit, place in a series, space."""

from __future__ import annotations

from zenlake.wire.cursor import Reader
from zenlake.xrce.batches import UnreadBatch, read_batch
from zenlake.xrce.codec import (
    Accept,
    AckNack,
    BatchedData,
    Close,
    Conduit,
    Declare,
    Frag,
    Hello,
    KeepAlive,
    Migrate,
    Open,
    PingPong,
    Pull,
    RSpace,
    Scout,
    StreamData,
    Synch,
    WriteData,
    read_message,
)

Marker = Conduit | Frag | RSpace
"""What says something about the next message only."""
XrceMessage = (
    Scout
    | Hello
    | Open
    | Accept
    | Close
    | Declare
    | StreamData
    | BatchedData
    | UnreadBatch
    | WriteData
    | Pull
    | PingPong
    | Synch
    | AckNack
    | KeepAlive
    | Migrate
)
"""A message that stands alone in a packet."""


def conduit_of(message: XrceMessage) -> int:
    """The conduit on which a message travels; 0 without a marker."""
    for marker in reversed(message.markers):
        if isinstance(marker, Conduit):
            return marker.id
    return 0


def fragment_of(message: XrceMessage) -> Frag | None:
    """The series of fragments to which a message belongs, if it is one."""
    for marker in reversed(message.markers):
        if isinstance(marker, Frag):
            return marker
    return None


def space_of(message: XrceMessage, from_zero: bool = False) -> int:
    """The resource space of the ids in a message; 0 without a marker.

    The compact form counts from 1, as that of Conduit does. `from_zero` is for the brokers of
    the time that counted from 0 there: they send 0xb8 and mean space 1.
    """
    for marker in reversed(message.markers):
        if isinstance(marker, RSpace):
            return marker.id - 1 if from_zero and marker.compact else marker.id
    return 0


def read_messages(packet: bytes) -> list[XrceMessage]:
    """The messages of a packet, with batches left as they are; raises `DecodeError`."""
    r = Reader(packet)
    messages: list[XrceMessage] = []
    end = r.end
    while r.pos < end:
        if packet[r.pos] & 0x9F == 0x08:
            messages.append(read_batch(r))
        else:
            messages.append(read_message(r))
    return messages

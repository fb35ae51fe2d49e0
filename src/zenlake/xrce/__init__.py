"""The protocol of 2018 for extremely constrained devices: messages, sessions, broker and client.

`open` gives a program a session with a broker; `aio.open` does on the program's own loop:

    with zenlake.xrce.open("udp/127.0.0.1:7447") as session:
        publisher = session.publisher("/house/light")
        publisher.put(b"on")

All else here is pure. Messages are read and written so:

    >>> from zenlake import xrce
    >>> message, = xrce.read_packet(bytes.fromhex("9367001201c1"))
    >>> message.payload, xrce.conduit_of(message)
    (b'\\xc1', 1)
    >>> xrce.write(message).hex()
    '9367001201c1'

A packet is one datagram, or what one length prefix announces on a stream (`framing`): whole
messages, one behind the other. Three of them are markers, which say something about the next
message only: its conduit, its place in a fragmented payload, its resource space. They are no
items of their own here: a message has them as `markers`, in the order in which they came, so
that writing gives the same bytes. Any order is read; Conduit, Frag, RSpace is the order to
write. If one kind of marker comes twice, the last one counts.

Reading raises `DecodeError` and nothing else; writing a message whose field does not fit raises
`EncodeError`. Writing is canonical: numbers take as few bytes as they need, undefined flags are
0, a list of no properties is left out.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from zenlake.wire.message import Message
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.codec import (
    Accept,
    AckNack,
    BatchedData,
    BatchedSample,
    Binding,
    Close,
    Commit,
    Conduit,
    Declare,
    ForgetPublisher,
    ForgetResource,
    ForgetSelection,
    ForgetSubscriber,
    Frag,
    Hello,
    KeepAlive,
    Migrate,
    Open,
    PingPong,
    Property,
    Publisher,
    Pull,
    Resource,
    Result,
    RSpace,
    Scout,
    Selection,
    StreamData,
    Subscriber,
    Synch,
    WriteData,
)
from zenlake.xrce.framing import Deframer, frame
from zenlake.xrce.markers import Marker, XrceMessage, conduit_of, fragment_of, space_of
from zenlake.xrce.packets import read_packet, write

if TYPE_CHECKING:
    from zenlake.xrce_io import aio
    from zenlake.xrce_io.brokering import RunningBroker
    from zenlake.xrce_io.client import Session, open
    from zenlake.xrce_io.peer import Peer
    from zenlake.xrce_io.scouting import scout

__all__ = [
    "Accept",
    "AckNack",
    "BatchedData",
    "BatchedSample",
    "Binding",
    "BrokerOptions",
    "Close",
    "Commit",
    "Conduit",
    "Declaration",
    "Declare",
    "Deframer",
    "ForgetPublisher",
    "ForgetResource",
    "ForgetSelection",
    "ForgetSubscriber",
    "Frag",
    "Hello",
    "KeepAlive",
    "Marker",
    "Message",
    "Migrate",
    "Open",
    "Peer",
    "PingPong",
    "Property",
    "Publisher",
    "Pull",
    "RSpace",
    "Resource",
    "Result",
    "RunningBroker",
    "Scout",
    "Selection",
    "Session",
    "StreamData",
    "Subscriber",
    "Synch",
    "WriteData",
    "XrceMessage",
    "aio",
    "conduit_of",
    "fragment_of",
    "frame",
    "open",
    "read_packet",
    "scout",
    "space_of",
    "write",
]

Declaration = (
    Resource
    | Publisher
    | Subscriber
    | Selection
    | Binding
    | Commit
    | Result
    | ForgetResource
    | ForgetPublisher
    | ForgetSubscriber
    | ForgetSelection
)
"""What a `Declare` message declares or forgets."""


_ABOVE = {
    "Peer": "zenlake.xrce_io.peer",
    "RunningBroker": "zenlake.xrce_io.brokering",
    "Session": "zenlake.xrce_io.client",
    "aio": "",
    "open": "zenlake.xrce_io.client",
    "scout": "zenlake.xrce_io.scouting",
}


def __getattr__(name: str) -> object:
    """What has sockets lies in a room above this one, and is fetched when it is asked for."""
    if name not in _ABOVE:
        raise AttributeError(f"module 'zenlake.xrce' has no attribute '{name}'")
    if name == "aio":
        return import_module("zenlake.xrce_io.aio")
    return getattr(import_module(_ABOVE[name]), name)

"""How it is said in Zenoh 1.x: every message, declared once and generated from there.

    >>> from zenlake import wire
    >>> message = wire.read_network(bytes.fromhex("7d000664656d6f2f61010568656c6c6f"))
    >>> message.suffix, message.body.payload
    ('demo/a', b'hello')
    >>> wire.write(message).hex()
    '7d000664656d6f2f61010568656c6c6f'

Reading raises `DecodeError` and nothing else; writing a message whose field does not fit raises
`EncodeError`. Re-encoding is canonical: defaults that the sender spelled out are left out.
"""

from __future__ import annotations

from zenlake.errors import DecodeError
from zenlake.wire.codec_declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    KeyExt,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenlake.wire.codec_network import (
    Declare,
    Interest,
    LinkState,
    LinkStates,
    Oam,
    Push,
    Request,
    Responder,
    Response,
    ResponseFinal,
    TimestampRecord,
    TimestampStack,
)
from zenlake.wire.codec_network import read_link_states as _read_link_states
from zenlake.wire.codec_network import read_network as _read_network
from zenlake.wire.codec_scouting import Hello, Scout
from zenlake.wire.codec_scouting import read_scouting as _read_scouting
from zenlake.wire.codec_transport import (
    Close,
    Fragment,
    Frame,
    InitAck,
    InitSyn,
    Join,
    KeepAlive,
    OpenAck,
    OpenSyn,
    TransportOam,
)
from zenlake.wire.codec_transport import read_transport as _read_transport
from zenlake.wire.codec_zenoh import (
    Del,
    Err,
    Put,
    Query,
    QueryBody,
    Reply,
    Slice,
    SourceInfo,
    Timestamp,
)
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message, UnknownExtension

__all__ = [
    "Close",
    "Declare",
    "DeclareFinal",
    "DeclareKeyExpr",
    "DeclareQueryable",
    "DeclareSubscriber",
    "DeclareToken",
    "Del",
    "Err",
    "Fragment",
    "Frame",
    "Hello",
    "InitAck",
    "InitSyn",
    "Interest",
    "Join",
    "KeepAlive",
    "KeyExt",
    "LinkState",
    "LinkStates",
    "Message",
    "NetworkMessage",
    "Oam",
    "OpenAck",
    "OpenSyn",
    "Push",
    "Put",
    "Query",
    "QueryBody",
    "Reader",
    "Reply",
    "Request",
    "Responder",
    "Response",
    "ResponseFinal",
    "Scout",
    "ScoutingMessage",
    "Slice",
    "SourceInfo",
    "Timestamp",
    "TimestampRecord",
    "TimestampStack",
    "TransportMessage",
    "TransportOam",
    "UndeclareKeyExpr",
    "UndeclareQueryable",
    "UndeclareSubscriber",
    "UndeclareToken",
    "UnknownExtension",
    "Writer",
    "read_batch",
    "read_link_states",
    "read_network",
    "read_scouting",
    "write",
]

ScoutingMessage = Scout | Hello
NetworkMessage = Push | Request | Response | ResponseFinal | Declare | Interest | Oam
TransportMessage = (
    InitSyn
    | InitAck
    | OpenSyn
    | OpenAck
    | Close
    | KeepAlive
    | Frame
    | Fragment
    | Join
    | TransportOam
)


def read_batch(data: bytes | bytearray | memoryview) -> list[TransportMessage]:
    """The transport messages of one batch, which comes without its length prefix."""
    r = Reader(bytes(data))
    messages: list[TransportMessage] = []
    while r.pos < r.end:
        messages.append(_read_transport(r))
    return messages


def read_network(data: bytes | bytearray | memoryview) -> NetworkMessage:
    """The one network message that these bytes are, all of them."""
    r = Reader(bytes(data))
    message = _read_network(r)
    _finish(r)
    return message


def read_scouting(datagram: bytes | bytearray | memoryview) -> ScoutingMessage:
    """The scouting message that this datagram is."""
    r = Reader(bytes(datagram))
    message = _read_scouting(r)
    _finish(r)
    return message


def read_link_states(data: bytes | bytearray | memoryview) -> tuple[LinkState, ...]:
    """The link states that are the body of an `Oam` message with id 1."""
    r = Reader(bytes(data))
    states = _read_link_states(r)
    _finish(r)
    return states.entries


def write(message: Message) -> bytes:
    """The bytes of any message."""
    w = Writer()
    message.write(w)
    return w.getvalue()


def _finish(r: Reader) -> None:
    """Refuse bytes behind the message."""
    if r.pos != r.end:
        raise DecodeError(
            f"{r.end - r.pos} bytes left over behind the message, from offset {r.pos}", r.pos
        )

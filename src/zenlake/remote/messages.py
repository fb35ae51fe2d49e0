"""Every message of the remote API, declared once: reading and writing follow from it.

A message is a byte with its number, whose high bit says that an answer is wanted; then, if it is, a
sequence id of four bytes; then the fields. Bytes behind the last field are ignored.

Numbers from 100 on are ours, for the web page: a subscriber that is given many samples in one
message, without payloads that are too long to show, and is told how many it missed. Only a client
that declares such a subscriber receives `Samples`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from zenlake.errors import RemoteError
from zenlake.remote.fields import (
    BOOL,
    BYTES,
    ENCODING,
    LINK,
    SAMPLE,
    TEXT,
    TIMESTAMP,
    TRANSPORT,
    U8,
    U32,
    ZID,
    FieldCodec,
    FieldReader,
    RemoteSample,
    listed,
    option,
    record,
)

__all__ = [
    "FROM_CLIENT",
    "FROM_SERVER",
    "CutSample",
    "MessageKind",
    "RemoteMessage",
    "decode",
    "encode",
    "header",
]

ANSWER: Final = 0x80
OWN: Final = 100
"""The number of the first message that Eclipse's protocol does not have."""


class MessageKind(NamedTuple):
    """One kind of message: its number, its name, and its fields by name."""

    number: int
    name: str
    fields: dict[str, FieldCodec]


class RemoteMessage(NamedTuple):
    """A message that was read: its kind, its sequence id if an answer is wanted, its fields."""

    kind: MessageKind
    sequence: int | None
    body: dict[str, Any]


class UnreadableBody(RemoteError):
    """A message whose header was read, and whose body was not."""

    def __init__(self, why: str, sequence: int | None) -> None:
        """`sequence`: of the answer that is wanted, if one is."""
        super().__init__(why)
        self.sequence = sequence


Declared = tuple[str, dict[str, FieldCodec]]


def _kinds(*declared: Declared, own: tuple[Declared, ...]) -> dict[int, MessageKind]:
    numbered = [*enumerate(declared), *enumerate(own, OWN)]
    return {number: MessageKind(number, name, fields) for number, (name, fields) in numbered}


ID: Final = {"id": U32}
DATA: Final = {"attachment": option(BYTES), "timestamp": option(TIMESTAMP)}
QUERY: Final = {
    "payload": option(BYTES),
    "encoding": option(ENCODING),
    "attachment": option(BYTES),
}

FROM_CLIENT: Final = _kinds(
    ("DeclarePublisher", {**ID, "key": TEXT, "encoding": ENCODING, "qos": U8}),
    ("UndeclarePublisher", ID),
    ("DeclareSubscriber", {**ID, "key": TEXT, "origin": U8}),
    ("UndeclareSubscriber", ID),
    ("DeclareQueryable", {**ID, "key": TEXT, "complete": BOOL, "origin": U8}),
    ("UndeclareQueryable", ID),
    ("DeclareQuerier", {**ID, "key": TEXT, "qos": U8, "settings": U8, "timeout": U32}),
    ("UndeclareQuerier", ID),
    ("DeclareLivelinessToken", {**ID, "key": TEXT}),
    ("UndeclareLivelinessToken", ID),
    ("DeclareLivelinessSubscriber", {**ID, "key": TEXT, "history": BOOL}),
    ("UndeclareLivelinessSubscriber", ID),
    ("GetSessionInfo", {}),
    ("GetTimestamp", {}),
    ("Put", {"key": TEXT, "payload": BYTES, "encoding": ENCODING, **DATA, "qos": U8}),
    ("Delete", {"key": TEXT, **DATA, "qos": U8}),
    ("PublisherPut", {**ID, "payload": BYTES, "encoding": option(ENCODING), **DATA}),
    ("PublisherDelete", {**ID, **DATA}),
    (
        "Get",
        {**ID, "key": TEXT, "parameters": TEXT, **QUERY, "qos": U8, "settings": U8, "timeout": U32},
    ),
    ("QuerierGet", {**ID, "querier": U32, "parameters": TEXT, **QUERY}),
    ("LivelinessGet", {**ID, "key": TEXT, "timeout": U32}),
    ("ReplyOk", {**ID, "key": TEXT, "payload": BYTES, "encoding": ENCODING, **DATA, "qos": U8}),
    ("ReplyDel", {**ID, "key": TEXT, **DATA, "qos": U8}),
    ("ReplyErr", {**ID, "payload": BYTES, "encoding": ENCODING}),
    ("QueryResponseFinal", ID),
    ("Ping", {}),
    ("PublisherDeclareMatchingListener", {**ID, "publisher": U32}),
    ("UndeclareMatchingListener", ID),
    ("PublisherGetMatchingStatus", ID),
    ("QuerierDeclareMatchingListener", {**ID, "querier": U32}),
    ("QuerierGetMatchingStatus", ID),
    ("GetTransports", {}),
    ("GetLinks", {}),
    ("DeclareTransportEventsListener", {**ID, "history": BOOL}),
    ("UndeclareTransportEventsListener", ID),
    ("DeclareLinkEventsListener", {**ID, "history": BOOL}),
    ("UndeclareLinkEventsListener", ID),
    # Payloads of more than `cut` bytes are left out. It is undeclared as any subscriber is.
    own=(("DeclareCutSubscriber", {**ID, "key": TEXT, "origin": U8, "cut": U32}),),
)
"""What clients say, by number."""


def _read_reply(r: FieldReader) -> tuple[bool, Any]:
    if BOOL.read(r):
        return True, SAMPLE.read(r)
    return False, (BYTES.read(r), ENCODING.read(r))


class CutSample(NamedTuple):
    """A sample, and how many bytes of payload were left out of it."""

    sample: RemoteSample
    left_out: int


def _write_reply(reply: tuple[bool, Any]) -> bytes:
    ok, content = reply
    if ok:
        return b"\1" + SAMPLE.write(content)
    return b"\0" + BYTES.write(content[0]) + ENCODING.write(content[1])


FROM_SERVER: Final = _kinds(
    ("PingAck", {"uuid": TEXT}),
    ("Ok", {"number": U8}),
    ("Error", {"why": TEXT}),
    ("ResponseTimestamp", {"timestamp": TIMESTAMP}),
    ("ResponseSessionInfo", {"zid": ZID, "routers": listed(ZID), "peers": listed(ZID)}),
    ("Sample", {**ID, "sample": SAMPLE}),
    ("Query", {**ID, "query": U32, "key": TEXT, "parameters": TEXT, **QUERY, "accept": U8}),
    ("Reply", {**ID, "reply": FieldCodec(_read_reply, _write_reply)}),
    ("QueryResponseFinal", ID),
    ("MatchingStatus", {"matching": BOOL}),
    ("MatchingStatusUpdate", {**ID, "matching": BOOL}),
    ("ResponseTransports", {"transports": listed(TRANSPORT)}),
    ("ResponseLinks", {"links": listed(LINK)}),
    ("TransportEventUpdate", {**ID, "kind": U8, "transport": TRANSPORT}),
    ("LinkEventUpdate", {**ID, "kind": U8, "link": LINK}),
    own=(("Samples", {**ID, "missed": U32, "samples": listed(record(CutSample, SAMPLE, U32))}),),
)
"""What the server says, by number."""


def header(
    data: bytes, kinds: dict[int, MessageKind]
) -> tuple[MessageKind, int | None, FieldReader]:
    """The kind of a message, the sequence id of the answer that is wanted, and the rest."""
    r = FieldReader(data)
    first = U8.read(r)
    sequence: int | None = U32.read(r) if first & ANSWER else None
    number = first & ~ANSWER
    kind = kinds.get(number)
    if kind is None:
        raise UnreadableBody(f"there is no message {number}", sequence)
    return kind, sequence, r


def decode(data: bytes, kinds: dict[int, MessageKind]) -> RemoteMessage:
    """A message; raises `RemoteError`, and `UnreadableBody` if it is known what was wanted."""
    kind, sequence, r = header(data, kinds)
    try:
        body = {name: field.read(r) for name, field in kind.fields.items()}
    except RemoteError as error:
        raise UnreadableBody(f"{kind.name}: {error}", sequence) from error
    return RemoteMessage(kind, sequence, body)


_BY_NAME: Final = {
    id(kinds): {kind.name: kind for kind in kinds.values()} for kinds in (FROM_CLIENT, FROM_SERVER)
}


def encode(
    name: str,
    sequence: int | None = None,
    kinds: dict[int, MessageKind] = FROM_SERVER,
    **body: Any,
) -> bytes:
    """The bytes of a message; of the server, unless said otherwise."""
    kind = _BY_NAME[id(kinds)][name]
    parts = [bytes((kind.number,))]
    if sequence is not None:
        parts = [bytes((kind.number | ANSWER,)), U32.write(sequence)]
    parts += [field.write(body[field_name]) for field_name, field in kind.fields.items()]
    return b"".join(parts)

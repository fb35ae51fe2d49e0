"""Every message of the remote API, declared once: reading and writing follow from it.

A message is a byte with its number, whose high bit says that an answer is wanted; then, if it is, a
sequence id of four bytes; then the fields. Bytes behind the last field are ignored.
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
    listed,
    option,
)

__all__ = [
    "FROM_CLIENT",
    "FROM_SERVER",
    "MessageKind",
    "RemoteMessage",
    "decode",
    "encode",
    "header",
]

ANSWER: Final = 0x80


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


def _kinds(*declared: tuple[str, dict[str, FieldCodec]]) -> tuple[MessageKind, ...]:
    return tuple(
        MessageKind(number, name, fields) for number, (name, fields) in enumerate(declared)
    )


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
)
"""What clients say; a kind's number is its place."""


def _read_reply(r: FieldReader) -> tuple[bool, Any]:
    if BOOL.read(r):
        return True, SAMPLE.read(r)
    return False, (BYTES.read(r), ENCODING.read(r))


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
)
"""What the server says; a kind's number is its place."""


def header(
    data: bytes, kinds: tuple[MessageKind, ...]
) -> tuple[MessageKind, int | None, FieldReader]:
    """The kind of a message, the sequence id of the answer that is wanted, and the rest."""
    r = FieldReader(data)
    first = U8.read(r)
    sequence: int | None = U32.read(r) if first & ANSWER else None
    number = first & ~ANSWER
    if number >= len(kinds):
        raise UnreadableBody(f"there is no message {number}", sequence)
    return kinds[number], sequence, r


def decode(data: bytes, kinds: tuple[MessageKind, ...]) -> RemoteMessage:
    """A message; raises `RemoteError`, and `UnreadableBody` if it is known what was wanted."""
    kind, sequence, r = header(data, kinds)
    try:
        body = {name: field.read(r) for name, field in kind.fields.items()}
    except RemoteError as error:
        raise UnreadableBody(f"{kind.name}: {error}", sequence) from error
    return RemoteMessage(kind, sequence, body)


_BY_NAME: Final = {
    id(kinds): {kind.name: kind for kind in kinds} for kinds in (FROM_CLIENT, FROM_SERVER)
}


def encode(
    name: str,
    sequence: int | None = None,
    kinds: tuple[MessageKind, ...] = FROM_SERVER,
    **body: Any,
) -> bytes:
    """The bytes of a message; of the server, unless said otherwise."""
    kind = _BY_NAME[id(kinds)][name]
    parts = [bytes((kind.number,))]
    if sequence is not None:
        parts = [bytes((kind.number | ANSWER,)), U32.write(sequence)]
    parts += [field.write(body[field_name]) for field_name, field in kind.fields.items()]
    return b"".join(parts)

"""How values are written in the remote API: zenoh-ext's serialisation, with a few records.

Integers are little-endian, lengths LEB128, an option is a byte 0 or 1 before the value, a ZID is
sixteen bytes behind their length.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from zenlake.errors import RemoteError

__all__ = [
    "BOOL",
    "BYTES",
    "ENCODING",
    "LINK",
    "SAMPLE",
    "TEXT",
    "TIMESTAMP",
    "TRANSPORT",
    "U8",
    "U16",
    "U32",
    "U64",
    "ZID",
    "FieldCodec",
    "FieldReader",
    "RemoteLink",
    "RemoteSample",
    "RemoteTransport",
    "Stamp",
    "listed",
    "option",
    "record",
]

ZID_BYTES: Final = 16


class FieldReader:
    """Takes values off the bytes of one message; raises `RemoteError` at whatever is none."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        """From the first byte."""
        self._data = data
        self._at = 0

    def take(self, many: int) -> bytes:
        """The next bytes."""
        end = self._at + many
        if end > len(self._data):
            raise RemoteError(f"a message of {len(self._data)} bytes ends before byte {end}")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def length(self) -> int:
        """A length; never more than there are bytes."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise RemoteError("a length has more than ten bytes")
        if value > len(self._data):
            raise RemoteError(f"a length of {value} in a message of {len(self._data)} bytes")
        return value


class FieldCodec(NamedTuple):
    """How one kind of value is read and written."""

    read: Callable[[FieldReader], Any]
    write: Callable[[Any], bytes]


def _length(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _integer(form: str) -> FieldCodec:
    made = struct.Struct(f"<{form}")

    def read(r: FieldReader) -> int:
        value: int = made.unpack(r.take(made.size))[0]
        return value

    return FieldCodec(read, made.pack)


U8: Final = _integer("B")
U16: Final = _integer("H")
U32: Final = _integer("I")
U64: Final = _integer("Q")


def _read_bool(r: FieldReader) -> bool:
    byte = r.take(1)[0]
    if byte > 1:
        raise RemoteError(f"a boolean is {byte}")
    return byte == 1


BOOL: Final = FieldCodec(_read_bool, lambda value: b"\1" if value else b"\0")
BYTES: Final = FieldCodec(lambda r: r.take(r.length()), lambda value: _length(len(value)) + value)


def _read_text(r: FieldReader) -> str:
    try:
        return r.take(r.length()).decode()
    except UnicodeDecodeError as error:
        raise RemoteError("a text is no UTF-8") from error


TEXT: Final = FieldCodec(_read_text, lambda value: BYTES.write(value.encode()))


def option(of: FieldCodec) -> FieldCodec:
    """A value, or None."""
    return FieldCodec(
        lambda r: of.read(r) if _read_bool(r) else None,
        lambda value: b"\0" if value is None else b"\1" + of.write(value),
    )


def listed(of: FieldCodec) -> FieldCodec:
    """Any number of values."""
    return FieldCodec(
        lambda r: [of.read(r) for _ in range(r.length())],
        lambda values: _length(len(values)) + b"".join(of.write(value) for value in values),
    )


def record(made: Callable[..., Any], *fields: FieldCodec) -> FieldCodec:
    """A tuple of values, one behind the other."""
    return FieldCodec(
        lambda r: made(*[field.read(r) for field in fields]),
        lambda value: b"".join(
            field.write(part) for field, part in zip(fields, value, strict=True)
        ),
    )


def _read_zid(r: FieldReader) -> bytes:
    zid: bytes = BYTES.read(r)
    if len(zid) != ZID_BYTES:
        raise RemoteError(f"an id has {len(zid)} bytes instead of {ZID_BYTES}")
    return zid


ZID: Final = FieldCodec(_read_zid, lambda value: BYTES.write(value.ljust(ZID_BYTES, b"\0")))


class RemoteEncoding(NamedTuple):
    """The id of an encoding, and its schema; 0xFFFF: all of it is in the schema."""

    id: int
    schema: str


class Stamp(NamedTuple):
    """A timestamp: NTP64 and the id of the clock."""

    time: int
    id: bytes


class RemoteSample(NamedTuple):
    """A sample, in events and replies."""

    key: str
    payload: bytes
    kind: int
    encoding: RemoteEncoding
    attachment: bytes | None
    timestamp: Stamp | None
    qos: int


class RemoteTransport(NamedTuple):
    """A session of the node with another node."""

    zid: bytes
    whatami: int
    qos: bool
    multicast: bool


class RemoteLink(NamedTuple):
    """A link of the node."""

    zid: bytes
    src: str
    dst: str
    group: str | None
    mtu: int
    streamed: bool
    interfaces: list[str]
    auth: str | None
    priorities: tuple[int, int] | None
    reliability: int | None


ENCODING: Final = record(RemoteEncoding, U16, TEXT)
TIMESTAMP: Final = record(Stamp, U64, ZID)
SAMPLE: Final = record(
    RemoteSample, TEXT, BYTES, U8, ENCODING, option(BYTES), option(TIMESTAMP), U8
)
TRANSPORT: Final = record(RemoteTransport, ZID, U8, BOOL, BOOL)
LINK: Final = record(
    RemoteLink,
    ZID,
    TEXT,
    TEXT,
    option(TEXT),
    U16,
    BOOL,
    listed(TEXT),
    option(TEXT),
    option(record(lambda *pair: pair, U8, U8)),
    option(U8),
)

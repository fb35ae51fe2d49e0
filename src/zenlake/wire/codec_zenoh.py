"""Zenoh bodies of Zenoh 1.x: classes and codec.

Generated from `wire/declared/zenoh.py` by `make wire`. Do not edit: change the declarations.
"""

# ruff: noqa: SIM102, SIM103, PLR, E501

from __future__ import annotations

from typing import ClassVar

from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message, UnknownExtension, keep_extension, zid_text


class Timestamp(Message):
    """When, and by whose clock: 32 bits of seconds since 1970, 32 bits of fraction, a node id."""

    __slots__ = ("fraction", "id", "seconds")

    NAME: ClassVar[str] = "Timestamp"
    FIELDS: ClassVar[tuple[str, ...]] = ("seconds", "fraction", "id")

    def __init__(self, *, seconds: int, fraction: int, id: bytes) -> None:
        """Make it from its fields, in wire order."""
        self.seconds: int = seconds
        self.fraction: int = fraction
        self.id: bytes = id

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        w.ntp64(self.seconds, self.fraction)
        w.vle(len(self.id), 16)
        w.zid(self.id)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Timestamp"}
        fields["seconds"] = self.seconds
        fields["fraction"] = self.fraction
        fields["id"] = zid_text(self.id)
        return fields


def read_timestamp(r: Reader) -> Timestamp:
    """Read the rest of Timestamp (a structure)."""
    seconds, fraction = r.ntp64()
    id = r.zid(r.vle(0xFF))
    return Timestamp(seconds=seconds, fraction=fraction, id=id)


def skip_timestamp(r: Reader) -> None:
    """Pass over the rest of Timestamp (a structure)."""
    r.skip_vle()
    r.skip(r.vle(16))


class SourceInfo(Message):
    """Which entity published this, and its how-manieth publication it is."""

    __slots__ = ("eid", "sn", "zid")

    NAME: ClassVar[str] = "SourceInfo"
    FIELDS: ClassVar[tuple[str, ...]] = ("zid", "eid", "sn")

    def __init__(self, *, zid: bytes, eid: int, sn: int) -> None:
        """Make it from its fields, in wire order."""
        self.zid: bytes = zid
        self.eid: int = eid
        self.sn: int = sn

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if not 1 <= len(self.zid) <= 16:
            raise EncodeError(f"a node id has 1 to 16 bytes, not {len(self.zid)}")
        w.u8((len(self.zid) - 1) << 4)
        w.zid(self.zid)
        w.vle(self.eid, 0xFFFFFFFF)
        w.vle(self.sn, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "SourceInfo"}
        fields["zid"] = zid_text(self.zid)
        fields["eid"] = self.eid
        fields["sn"] = self.sn
        return fields


def read_source_info(r: Reader) -> SourceInfo:
    """Read the rest of SourceInfo (a structure)."""
    packed = r.u8()
    zid = r.zid((packed >> 4) + 1)
    eid = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    sn = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    return SourceInfo(zid=zid, eid=eid, sn=sn)


def skip_source_info(r: Reader) -> None:
    """Pass over the rest of SourceInfo (a structure)."""
    packed = r.u8()
    r.skip((packed >> 4) + 1)
    r.skip_vle()
    r.skip_vle()


class Slice(Message):
    """A piece of a payload in shared memory (1) or in line (0)."""

    __slots__ = ("data", "kind")

    NAME: ClassVar[str] = "Slice"
    FIELDS: ClassVar[tuple[str, ...]] = ("kind", "data")

    def __init__(self, *, kind: int, data: bytes) -> None:
        """Make it from its fields, in wire order."""
        self.kind: int = kind
        self.data: bytes = data

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        w.u8(self.kind)
        w.sized(self.data, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Slice"}
        fields["kind"] = self.kind
        fields["data"] = self.data.hex()
        return fields


def read_slice(r: Reader) -> Slice:
    """Read the rest of Slice (a structure)."""
    kind = r.u8()
    data = r.take(r.vle(0xFFFFFFFF))
    return Slice(kind=kind, data=data)


def skip_slice(r: Reader) -> None:
    """Pass over the rest of Slice (a structure)."""
    r.skip(1)
    r.skip(r.vle(0xFFFFFFFF))


class QueryBody(Message):
    """A value that travels with a question."""

    __slots__ = ("encoding", "payload", "schema")

    NAME: ClassVar[str] = "QueryBody"
    FIELDS: ClassVar[tuple[str, ...]] = ("encoding", "schema", "payload")

    def __init__(self, *, encoding: int, schema: bytes = b"", payload: bytes) -> None:
        """Make it from its fields, in wire order."""
        self.encoding: int = encoding
        self.schema: bytes = schema
        self.payload: bytes = payload

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_s = len(self.schema) > 0
        if self.encoding < 0 or self.encoding > 0xFFFF:
            raise EncodeError(f"QueryBody.encoding is {self.encoding}: 0 to 65535")
        w.vle((self.encoding << 1) | (1 if flag_s else 0), 0xFFFFFFFF)
        if flag_s:
            w.sized(self.schema, 0xFF)
        w.raw(self.payload)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "QueryBody"}
        fields["encoding"] = self.encoding
        if len(self.schema) > 0:
            fields["schema"] = self.schema.hex()
        fields["payload"] = self.payload.hex()
        return fields


def read_query_body(r: Reader) -> QueryBody:
    """Read the rest of QueryBody (a structure)."""
    encoding_and_flag = r.vle(0xFFFFFFFF)
    encoding = (encoding_and_flag >> 1) & 0xFFFF
    schema: bytes = b""
    if encoding_and_flag & 1:
        schema = r.take(r.vle(0xFF))
    payload = r.rest()
    return QueryBody(encoding=encoding, schema=schema, payload=payload)


def skip_query_body(r: Reader) -> None:
    """Pass over the rest of QueryBody (a structure)."""
    encoding_and_flag = r.vle(0xFFFFFFFF)
    if encoding_and_flag & 1:
        r.skip(r.vle(0xFF))
    r.pos = r.end


class Put(Message):
    """A value."""

    __slots__ = (
        "attachment",
        "encoding",
        "extensions",
        "payload",
        "schema",
        "shm",
        "slices",
        "source_info",
        "timestamp",
    )

    NAME: ClassVar[str] = "Put"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "timestamp",
        "encoding",
        "schema",
        "source_info",
        "shm",
        "attachment",
        "payload",
        "slices",
        "extensions",
    )

    def __init__(
        self,
        *,
        timestamp: Timestamp | None = None,
        encoding: int = 0,
        schema: bytes = b"",
        source_info: SourceInfo | None = None,
        shm: bool = False,
        attachment: bytes | None = None,
        payload: bytes = b"",
        slices: tuple[Slice, ...] = (),
        extensions: tuple[UnknownExtension, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.timestamp: Timestamp | None = timestamp
        self.encoding: int = encoding
        self.schema: bytes = schema
        self.source_info: SourceInfo | None = source_info
        self.shm: bool = shm
        self.attachment: bytes | None = attachment
        self.payload: bytes = payload
        self.slices: tuple[Slice, ...] = slices
        self.extensions: tuple[UnknownExtension, ...] = extensions

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_t = self.timestamp is not None
        flag_e = self.encoding != 0 or len(self.schema) > 0
        flag_s = len(self.schema) > 0
        header = 0x01
        if flag_t:
            header |= 0x20
        if flag_e:
            header |= 0x40
        more = len(self.extensions)
        if self.source_info is not None:
            more += 1
        if self.shm:
            more += 1
        if self.attachment is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        if flag_t:
            timestamp = self.timestamp
            if timestamp is not None:
                timestamp.write(w)
        if flag_e:
            if self.encoding < 0 or self.encoding > 0xFFFF:
                raise EncodeError(f"Put.encoding is {self.encoding}: 0 to 65535")
            w.vle((self.encoding << 1) | (1 if flag_s else 0), 0xFFFFFFFF)
        if flag_e and flag_s:
            w.sized(self.schema, 0xFF)
        if self.source_info is not None:
            more -= 1
            w.u8(0x41 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.source_info.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.shm:
            more -= 1
            w.u8(0x12 | (0x80 if more else 0))
        if self.attachment is not None:
            more -= 1
            w.u8(0x43 | (0x80 if more else 0))
            w.sized(self.attachment, 0xFFFFFFFF)
        for extension in self.extensions:
            more -= 1
            extension.append(w, more > 0)
        if not self.shm:
            w.sized(self.payload, 0xFFFFFFFF)
        if self.shm:
            w.vle(len(self.slices), 0xFFFFFFFF)
            for slice in self.slices:
                slice.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Put"}
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        if self.encoding != 0:
            fields["encoding"] = self.encoding
        if len(self.schema) > 0:
            fields["schema"] = self.schema.hex()
        if self.source_info is not None:
            fields["source_info"] = self.source_info.to_dict()
        if self.shm:
            fields["shm"] = self.shm
        if self.attachment is not None:
            fields["attachment"] = self.attachment.hex()
        if not self.shm:
            fields["payload"] = self.payload.hex()
        if self.shm:
            fields["slices"] = [item.to_dict() for item in self.slices]
        if self.extensions:
            fields["extensions"] = [item.to_dict() for item in self.extensions]
        return fields


def read_put(r: Reader, header: int) -> Put:
    """Read the rest of Put."""
    timestamp: Timestamp | None = None
    if header & 0x20:
        timestamp = read_timestamp(r)
    encoding_and_flag = 0
    encoding: int = 0
    if header & 0x40:
        encoding_and_flag = r.vle(0xFFFFFFFF)
        encoding = (encoding_and_flag >> 1) & 0xFFFF
    schema: bytes = b""
    if header & 0x40 and encoding_and_flag & 1:
        schema = r.take(r.vle(0xFF))
    source_info: SourceInfo | None = None
    shm: bool = False
    attachment: bytes | None = None
    kept: list[UnknownExtension] | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x41:
                former = r.narrow(r.vle(0xFFFFFFFF))
                source_info = read_source_info(r)
                r.widen(former, "Put.source_info")
            elif kind == 0x12:
                shm = True
            elif kind == 0x43:
                attachment = r.take(r.vle(0xFFFFFFFF))
            else:
                if kept is None:
                    kept = []
                keep_extension(kept, r, tag, "Put")
            if tag < 0x80:
                break
    extensions = () if kept is None else tuple(kept)
    payload: bytes = b""
    if not shm:
        payload = r.take(r.vle(0xFFFFFFFF))
    slices: tuple[Slice, ...] = ()
    if shm:
        slices_count = r.count(0xFFFFFFFF, 2)
        slices_list: list[Slice] = []
        for _ in range(slices_count):
            slices_list.append(read_slice(r))
        slices = tuple(slices_list)
    return Put(
        timestamp=timestamp,
        encoding=encoding,
        schema=schema,
        source_info=source_info,
        shm=shm,
        attachment=attachment,
        payload=payload,
        slices=slices,
        extensions=extensions,
    )


def skip_put(r: Reader, header: int) -> None:
    """Pass over the rest of Put."""
    if header & 0x20:
        skip_timestamp(r)
    encoding_and_flag = 0
    if header & 0x40:
        encoding_and_flag = r.vle(0xFFFFFFFF)
    if header & 0x40 and encoding_and_flag & 1:
        r.skip(r.vle(0xFF))
    shm: bool = False
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x12:
                shm = True
            else:
                r.skip_extension(tag, "Put")
            if tag < 0x80:
                break
    if not shm:
        r.skip(r.vle(0xFFFFFFFF))
    if shm:
        slices_count = r.count(0xFFFFFFFF, 2)
        for _ in range(slices_count):
            skip_slice(r)


def put_head(
    *,
    timestamp: Timestamp | None = None,
    encoding: int = 0,
    schema: bytes = b"",
    source_info: SourceInfo | None = None,
    attachment: bytes | None = None,
) -> bytes:
    """All of Put that stands before its payload."""
    w = Writer()
    flag_t = timestamp is not None
    flag_e = encoding != 0 or len(schema) > 0
    flag_s = len(schema) > 0
    header = 0x01
    if flag_t:
        header |= 0x20
    if flag_e:
        header |= 0x40
    more = 0
    if source_info is not None:
        more += 1
    if attachment is not None:
        more += 1
    if more:
        header |= 0x80
    w.u8(header)
    if flag_t:
        if timestamp is not None:
            timestamp.write(w)
    if flag_e:
        if encoding < 0 or encoding > 0xFFFF:
            raise EncodeError(f"Put.encoding is {encoding}: 0 to 65535")
        w.vle((encoding << 1) | (1 if flag_s else 0), 0xFFFFFFFF)
    if flag_e and flag_s:
        w.sized(schema, 0xFF)
    if source_info is not None:
        more -= 1
        w.u8(0x41 | (0x80 if more else 0))
        place = w.hold()
        start = w.size
        source_info.write(w)
        w.fill(place, start, 0xFFFFFFFF)
    if attachment is not None:
        more -= 1
        w.u8(0x43 | (0x80 if more else 0))
        w.sized(attachment, 0xFFFFFFFF)
    return w.getvalue()


def skip_put_head(r: Reader, header: int) -> bool:
    """Pass over what stands before the payload of Put; whether that follows."""
    if header & 0x20:
        skip_timestamp(r)
    encoding_and_flag = 0
    if header & 0x40:
        encoding_and_flag = r.vle(0xFFFFFFFF)
    if header & 0x40 and encoding_and_flag & 1:
        r.skip(r.vle(0xFF))
    shm: bool = False
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x12:
                shm = True
            else:
                r.skip_extension(tag, "Put")
            if tag < 0x80:
                break
    return not shm


class Del(Message):
    """A deletion."""

    __slots__ = ("attachment", "extensions", "source_info", "timestamp")

    NAME: ClassVar[str] = "Del"
    FIELDS: ClassVar[tuple[str, ...]] = ("timestamp", "source_info", "attachment", "extensions")

    def __init__(
        self,
        *,
        timestamp: Timestamp | None = None,
        source_info: SourceInfo | None = None,
        attachment: bytes | None = None,
        extensions: tuple[UnknownExtension, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.timestamp: Timestamp | None = timestamp
        self.source_info: SourceInfo | None = source_info
        self.attachment: bytes | None = attachment
        self.extensions: tuple[UnknownExtension, ...] = extensions

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_t = self.timestamp is not None
        header = 0x02
        if flag_t:
            header |= 0x20
        more = len(self.extensions)
        if self.source_info is not None:
            more += 1
        if self.attachment is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        if flag_t:
            timestamp = self.timestamp
            if timestamp is not None:
                timestamp.write(w)
        if self.source_info is not None:
            more -= 1
            w.u8(0x41 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.source_info.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.attachment is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            w.sized(self.attachment, 0xFFFFFFFF)
        for extension in self.extensions:
            more -= 1
            extension.append(w, more > 0)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Del"}
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        if self.source_info is not None:
            fields["source_info"] = self.source_info.to_dict()
        if self.attachment is not None:
            fields["attachment"] = self.attachment.hex()
        if self.extensions:
            fields["extensions"] = [item.to_dict() for item in self.extensions]
        return fields


def read_del(r: Reader, header: int) -> Del:
    """Read the rest of Del."""
    timestamp: Timestamp | None = None
    if header & 0x20:
        timestamp = read_timestamp(r)
    source_info: SourceInfo | None = None
    attachment: bytes | None = None
    kept: list[UnknownExtension] | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x41:
                former = r.narrow(r.vle(0xFFFFFFFF))
                source_info = read_source_info(r)
                r.widen(former, "Del.source_info")
            elif kind == 0x42:
                attachment = r.take(r.vle(0xFFFFFFFF))
            else:
                if kept is None:
                    kept = []
                keep_extension(kept, r, tag, "Del")
            if tag < 0x80:
                break
    extensions = () if kept is None else tuple(kept)
    return Del(
        timestamp=timestamp, source_info=source_info, attachment=attachment, extensions=extensions
    )


def skip_del(r: Reader, header: int) -> None:
    """Pass over the rest of Del."""
    if header & 0x20:
        skip_timestamp(r)
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Del")
            if tag < 0x80:
                break


class Query(Message):
    """A question."""

    __slots__ = (
        "attachment",
        "body",
        "consolidation",
        "extensions",
        "parameters",
        "shm",
        "source_info",
    )

    NAME: ClassVar[str] = "Query"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "consolidation",
        "parameters",
        "source_info",
        "shm",
        "body",
        "attachment",
        "extensions",
    )

    def __init__(
        self,
        *,
        consolidation: int = 0,
        parameters: str = "",
        source_info: SourceInfo | None = None,
        shm: bool = False,
        body: QueryBody | None = None,
        attachment: bytes | None = None,
        extensions: tuple[UnknownExtension, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.consolidation: int = consolidation
        self.parameters: str = parameters
        self.source_info: SourceInfo | None = source_info
        self.shm: bool = shm
        self.body: QueryBody | None = body
        self.attachment: bytes | None = attachment
        self.extensions: tuple[UnknownExtension, ...] = extensions

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_c = self.consolidation != 0
        flag_p = len(self.parameters) > 0
        header = 0x03
        if flag_c:
            header |= 0x20
        if flag_p:
            header |= 0x40
        more = len(self.extensions)
        if self.source_info is not None:
            more += 1
        if self.shm:
            more += 1
        if self.body is not None:
            more += 1
        if self.attachment is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        if flag_c:
            w.vle(self.consolidation, 0xFFFFFFFFFFFFFFFF)
        if flag_p:
            w.text(self.parameters, 0xFFFFFFFFFFFFFFFF)
        if self.source_info is not None:
            more -= 1
            w.u8(0x41 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.source_info.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.shm:
            more -= 1
            w.u8(0x04 | (0x80 if more else 0))
        if self.body is not None:
            more -= 1
            w.u8(0x43 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.body.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.attachment is not None:
            more -= 1
            w.u8(0x45 | (0x80 if more else 0))
            w.sized(self.attachment, 0xFFFFFFFF)
        for extension in self.extensions:
            more -= 1
            extension.append(w, more > 0)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Query"}
        if self.consolidation != 0:
            fields["consolidation"] = self.consolidation
        if len(self.parameters) > 0:
            fields["parameters"] = self.parameters
        if self.source_info is not None:
            fields["source_info"] = self.source_info.to_dict()
        if self.shm:
            fields["shm"] = self.shm
        if self.body is not None:
            fields["body"] = self.body.to_dict()
        if self.attachment is not None:
            fields["attachment"] = self.attachment.hex()
        if self.extensions:
            fields["extensions"] = [item.to_dict() for item in self.extensions]
        return fields


def read_query(r: Reader, header: int) -> Query:
    """Read the rest of Query."""
    consolidation: int = 0
    if header & 0x20:
        consolidation = r.vle(0xFFFFFFFFFFFFFFFF)
    parameters: str = ""
    if header & 0x40:
        parameters = r.text(r.vle(0xFFFFFFFFFFFFFFFF))
    source_info: SourceInfo | None = None
    shm: bool = False
    body: QueryBody | None = None
    attachment: bytes | None = None
    kept: list[UnknownExtension] | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x41:
                former = r.narrow(r.vle(0xFFFFFFFF))
                source_info = read_source_info(r)
                r.widen(former, "Query.source_info")
            elif kind == 0x04:
                shm = True
            elif kind == 0x43:
                former = r.narrow(r.vle(0xFFFFFFFF))
                body = read_query_body(r)
                r.widen(former, "Query.body")
            elif kind == 0x45:
                attachment = r.take(r.vle(0xFFFFFFFF))
            else:
                if kept is None:
                    kept = []
                keep_extension(kept, r, tag, "Query")
            if tag < 0x80:
                break
    extensions = () if kept is None else tuple(kept)
    return Query(
        consolidation=consolidation,
        parameters=parameters,
        source_info=source_info,
        shm=shm,
        body=body,
        attachment=attachment,
        extensions=extensions,
    )


def skip_query(r: Reader, header: int) -> None:
    """Pass over the rest of Query."""
    if header & 0x20:
        r.skip_vle()
    if header & 0x40:
        r.skip(r.vle(0xFFFFFFFFFFFFFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Query")
            if tag < 0x80:
                break


class Reply(Message):
    """An answer: a value or a deletion."""

    __slots__ = ("body", "consolidation", "extensions")

    NAME: ClassVar[str] = "Reply"
    FIELDS: ClassVar[tuple[str, ...]] = ("consolidation", "body", "extensions")

    def __init__(
        self,
        *,
        consolidation: int = 0,
        body: Put | Del,
        extensions: tuple[UnknownExtension, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.consolidation: int = consolidation
        self.body: Put | Del = body
        self.extensions: tuple[UnknownExtension, ...] = extensions

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_c = self.consolidation != 0
        header = 0x04
        if flag_c:
            header |= 0x20
        more = len(self.extensions)
        if more:
            header |= 0x80
        w.u8(header)
        if flag_c:
            w.vle(self.consolidation, 0xFFFFFFFFFFFFFFFF)
        for extension in self.extensions:
            more -= 1
            extension.append(w, more > 0)
        body: Message = self.body
        body.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Reply"}
        if self.consolidation != 0:
            fields["consolidation"] = self.consolidation
        fields["body"] = self.body.to_dict()
        if self.extensions:
            fields["extensions"] = [item.to_dict() for item in self.extensions]
        return fields


def read_reply(r: Reader, header: int) -> Reply:
    """Read the rest of Reply."""
    consolidation: int = 0
    if header & 0x20:
        consolidation = r.vle(0xFFFFFFFFFFFFFFFF)
    kept: list[UnknownExtension] | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            if kept is None:
                kept = []
            keep_extension(kept, r, tag, "Reply")
            if tag < 0x80:
                break
    extensions = () if kept is None else tuple(kept)
    body = read_put_or_del(r)
    return Reply(consolidation=consolidation, body=body, extensions=extensions)


def skip_reply(r: Reader, header: int) -> None:
    """Pass over the rest of Reply."""
    if header & 0x20:
        r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Reply")
            if tag < 0x80:
                break
    skip_put_or_del(r)


class Err(Message):
    """An answer that says why there is none."""

    __slots__ = ("encoding", "extensions", "payload", "schema", "shm", "slices", "source_info")

    NAME: ClassVar[str] = "Err"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "encoding",
        "schema",
        "source_info",
        "shm",
        "payload",
        "slices",
        "extensions",
    )

    def __init__(
        self,
        *,
        encoding: int = 0,
        schema: bytes = b"",
        source_info: SourceInfo | None = None,
        shm: bool = False,
        payload: bytes = b"",
        slices: tuple[Slice, ...] = (),
        extensions: tuple[UnknownExtension, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.encoding: int = encoding
        self.schema: bytes = schema
        self.source_info: SourceInfo | None = source_info
        self.shm: bool = shm
        self.payload: bytes = payload
        self.slices: tuple[Slice, ...] = slices
        self.extensions: tuple[UnknownExtension, ...] = extensions

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_e = self.encoding != 0 or len(self.schema) > 0
        flag_s = len(self.schema) > 0
        header = 0x05
        if flag_e:
            header |= 0x40
        more = len(self.extensions)
        if self.source_info is not None:
            more += 1
        if self.shm:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        if flag_e:
            if self.encoding < 0 or self.encoding > 0xFFFF:
                raise EncodeError(f"Err.encoding is {self.encoding}: 0 to 65535")
            w.vle((self.encoding << 1) | (1 if flag_s else 0), 0xFFFFFFFF)
        if flag_e and flag_s:
            w.sized(self.schema, 0xFF)
        if self.source_info is not None:
            more -= 1
            w.u8(0x41 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.source_info.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.shm:
            more -= 1
            w.u8(0x12 | (0x80 if more else 0))
        for extension in self.extensions:
            more -= 1
            extension.append(w, more > 0)
        if not self.shm:
            w.sized(self.payload, 0xFFFFFFFF)
        if self.shm:
            w.vle(len(self.slices), 0xFFFFFFFF)
            for slice in self.slices:
                slice.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Err"}
        if self.encoding != 0:
            fields["encoding"] = self.encoding
        if len(self.schema) > 0:
            fields["schema"] = self.schema.hex()
        if self.source_info is not None:
            fields["source_info"] = self.source_info.to_dict()
        if self.shm:
            fields["shm"] = self.shm
        if not self.shm:
            fields["payload"] = self.payload.hex()
        if self.shm:
            fields["slices"] = [item.to_dict() for item in self.slices]
        if self.extensions:
            fields["extensions"] = [item.to_dict() for item in self.extensions]
        return fields


def read_err(r: Reader, header: int) -> Err:
    """Read the rest of Err."""
    encoding_and_flag = 0
    encoding: int = 0
    if header & 0x40:
        encoding_and_flag = r.vle(0xFFFFFFFF)
        encoding = (encoding_and_flag >> 1) & 0xFFFF
    schema: bytes = b""
    if header & 0x40 and encoding_and_flag & 1:
        schema = r.take(r.vle(0xFF))
    source_info: SourceInfo | None = None
    shm: bool = False
    kept: list[UnknownExtension] | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x41:
                former = r.narrow(r.vle(0xFFFFFFFF))
                source_info = read_source_info(r)
                r.widen(former, "Err.source_info")
            elif kind == 0x12:
                shm = True
            else:
                if kept is None:
                    kept = []
                keep_extension(kept, r, tag, "Err")
            if tag < 0x80:
                break
    extensions = () if kept is None else tuple(kept)
    payload: bytes = b""
    if not shm:
        payload = r.take(r.vle(0xFFFFFFFF))
    slices: tuple[Slice, ...] = ()
    if shm:
        slices_count = r.count(0xFFFFFFFF, 2)
        slices_list: list[Slice] = []
        for _ in range(slices_count):
            slices_list.append(read_slice(r))
        slices = tuple(slices_list)
    return Err(
        encoding=encoding,
        schema=schema,
        source_info=source_info,
        shm=shm,
        payload=payload,
        slices=slices,
        extensions=extensions,
    )


def skip_err(r: Reader, header: int) -> None:
    """Pass over the rest of Err."""
    encoding_and_flag = 0
    if header & 0x40:
        encoding_and_flag = r.vle(0xFFFFFFFF)
    if header & 0x40 and encoding_and_flag & 1:
        r.skip(r.vle(0xFF))
    shm: bool = False
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x12:
                shm = True
            else:
                r.skip_extension(tag, "Err")
            if tag < 0x80:
                break
    if not shm:
        r.skip(r.vle(0xFFFFFFFF))
    if shm:
        slices_count = r.count(0xFFFFFFFF, 2)
        for _ in range(slices_count):
            skip_slice(r)


def read_put_or_del(r: Reader) -> Put | Del:
    """Read one message: Put | Del."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x01:
        return read_put(r, header)
    if kind == 0x02:
        return read_del(r, header)
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: Put 0x01, Del 0x02", r.pos - 1
    )


def skip_put_or_del(r: Reader) -> None:
    """Pass over one message: Put | Del."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x01:
        skip_put(r, header)
        return
    if kind == 0x02:
        skip_del(r, header)
        return
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: Put 0x01, Del 0x02", r.pos - 1
    )

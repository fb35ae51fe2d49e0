"""Network messages of Zenoh 1.x: classes and codec.

Generated from `wire/declared/network.py` by `make wire`. Do not edit: change the declarations.
"""

# ruff: noqa: SIM102, SIM103, PLR, E501

from __future__ import annotations

from typing import ClassVar

from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.codec_declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
    read_declare_final,
    read_declare_key_expr,
    read_declare_queryable,
    read_declare_subscriber,
    read_declare_token,
    read_undeclare_key_expr,
    read_undeclare_queryable,
    read_undeclare_subscriber,
    read_undeclare_token,
    skip_declare_final,
    skip_declare_key_expr,
    skip_declare_queryable,
    skip_declare_subscriber,
    skip_declare_token,
    skip_undeclare_key_expr,
    skip_undeclare_queryable,
    skip_undeclare_subscriber,
    skip_undeclare_token,
)
from zenlake.wire.codec_zenoh import (
    Del,
    Err,
    Put,
    Query,
    Reply,
    Timestamp,
    read_err,
    read_put_or_del,
    read_query,
    read_reply,
    read_timestamp,
    skip_err,
    skip_put_or_del,
    skip_query,
    skip_reply,
)
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message, zid_text


class TimestampRecord(Message):
    """One stamp: where it was taken (1 sent, 2 routed, 4 received) and a serialised timestamp."""

    __slots__ = ("point", "stamp")

    NAME: ClassVar[str] = "TimestampRecord"
    FIELDS: ClassVar[tuple[str, ...]] = ("point", "stamp")

    def __init__(self, *, point: int, stamp: bytes) -> None:
        """Make it from its fields, in wire order."""
        self.point: int = point
        self.stamp: bytes = stamp

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        w.u8(self.point)
        w.sized(self.stamp, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "TimestampRecord"}
        fields["point"] = self.point
        fields["stamp"] = self.stamp.hex()
        return fields


def read_timestamp_record(r: Reader) -> TimestampRecord:
    """Read the rest of TimestampRecord (a structure)."""
    point = r.u8()
    stamp = r.take(r.vle(0xFFFFFFFF))
    return TimestampRecord(point=point, stamp=stamp)


def skip_timestamp_record(r: Reader) -> None:
    """Pass over the rest of TimestampRecord (a structure)."""
    r.skip(1)
    r.skip(r.vle(0xFFFFFFFF))


class TimestampStack(Message):
    """The stamps that a message collects on its way, and where it collects them."""

    __slots__ = ("points", "records")

    NAME: ClassVar[str] = "TimestampStack"
    FIELDS: ClassVar[tuple[str, ...]] = ("points", "records")

    def __init__(self, *, points: int, records: tuple[TimestampRecord, ...]) -> None:
        """Make it from its fields, in wire order."""
        self.points: int = points
        self.records: tuple[TimestampRecord, ...] = records

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        w.u8(self.points)
        w.vle(len(self.records), 0xFF)
        for record in self.records:
            record.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "TimestampStack"}
        fields["points"] = self.points
        fields["records"] = [item.to_dict() for item in self.records]
        return fields


def read_timestamp_stack(r: Reader) -> TimestampStack:
    """Read the rest of TimestampStack (a structure)."""
    points = r.u8()
    records_count = r.count(0xFF, 2)
    records_list: list[TimestampRecord] = []
    for _ in range(records_count):
        records_list.append(read_timestamp_record(r))
    records = tuple(records_list)
    return TimestampStack(points=points, records=records)


def skip_timestamp_stack(r: Reader) -> None:
    """Pass over the rest of TimestampStack (a structure)."""
    r.skip(1)
    records_count = r.count(0xFF, 2)
    for _ in range(records_count):
        skip_timestamp_record(r)


class Responder(Message):
    """Which entity answered."""

    __slots__ = ("eid", "zid")

    NAME: ClassVar[str] = "Responder"
    FIELDS: ClassVar[tuple[str, ...]] = ("zid", "eid")

    def __init__(self, *, zid: bytes, eid: int) -> None:
        """Make it from its fields, in wire order."""
        self.zid: bytes = zid
        self.eid: int = eid

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if not 1 <= len(self.zid) <= 16:
            raise EncodeError(f"a node id has 1 to 16 bytes, not {len(self.zid)}")
        w.u8((len(self.zid) - 1) << 4)
        w.zid(self.zid)
        w.vle(self.eid, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Responder"}
        fields["zid"] = zid_text(self.zid)
        fields["eid"] = self.eid
        return fields


def read_responder(r: Reader) -> Responder:
    """Read the rest of Responder (a structure)."""
    packed = r.u8()
    zid = r.zid((packed >> 4) + 1)
    eid = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    return Responder(zid=zid, eid=eid)


def skip_responder(r: Reader) -> None:
    """Pass over the rest of Responder (a structure)."""
    packed = r.u8()
    r.skip((packed >> 4) + 1)
    r.skip_vle()


class Push(Message):
    """A sample on its way to subscribers."""

    __slots__ = (
        "body",
        "node_id",
        "qos",
        "scope",
        "sender_mapping",
        "suffix",
        "timestamp",
        "timestamp_stack",
    )

    NAME: ClassVar[str] = "Push"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "scope",
        "suffix",
        "sender_mapping",
        "qos",
        "timestamp",
        "node_id",
        "timestamp_stack",
        "body",
    )

    def __init__(
        self,
        *,
        scope: int,
        suffix: str = "",
        sender_mapping: bool = True,
        qos: int = 5,
        timestamp: Timestamp | None = None,
        node_id: int = 0,
        timestamp_stack: TimestampStack | None = None,
        body: Put | Del,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.scope: int = scope
        self.suffix: str = suffix
        self.sender_mapping: bool = sender_mapping
        self.qos: int = qos
        self.timestamp: Timestamp | None = timestamp
        self.node_id: int = node_id
        self.timestamp_stack: TimestampStack | None = timestamp_stack
        self.body: Put | Del = body

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = len(self.suffix) > 0
        header = 0x1D
        if flag_n:
            header |= 0x20
        if self.sender_mapping:
            header |= 0x40
        more = 0
        if self.qos != 5:
            more += 1
        if self.timestamp is not None:
            more += 1
        if self.node_id != 0:
            more += 1
        if self.timestamp_stack is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.scope, 0xFFFF)
        if flag_n:
            w.text(self.suffix, 0xFFFF)
        if self.qos != 5:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos, 0xFF)
        if self.timestamp is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.node_id != 0:
            more -= 1
            w.u8(0x33 | (0x80 if more else 0))
            w.vle(self.node_id, 0xFFFF)
        if self.timestamp_stack is not None:
            more -= 1
            w.u8(0x47 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp_stack.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        body: Message = self.body
        body.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Push"}
        fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        fields["sender_mapping"] = self.sender_mapping
        if self.qos != 5:
            fields["qos"] = self.qos
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        if self.node_id != 0:
            fields["node_id"] = self.node_id
        if self.timestamp_stack is not None:
            fields["timestamp_stack"] = self.timestamp_stack.to_dict()
        fields["body"] = self.body.to_dict()
        return fields


def read_push(r: Reader, header: int) -> Push:
    """Read the rest of Push."""
    scope = r.vle(0xFFFF)
    suffix: str = ""
    if header & 0x20:
        suffix = r.text(r.vle(0xFFFF))
    sender_mapping = (header & 0x40) != 0
    qos: int = 5
    timestamp: Timestamp | None = None
    node_id: int = 0
    timestamp_stack: TimestampStack | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x21:
                qos = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x42:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp = read_timestamp(r)
                r.widen(former, "Push.timestamp")
            elif kind == 0x33:
                node_id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFF
            elif kind == 0x47:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp_stack = read_timestamp_stack(r)
                r.widen(former, "Push.timestamp_stack")
            else:
                r.skip_extension(tag, "Push")
            if tag < 0x80:
                break
    body = read_put_or_del(r)
    return Push(
        scope=scope,
        suffix=suffix,
        sender_mapping=sender_mapping,
        qos=qos,
        timestamp=timestamp,
        node_id=node_id,
        timestamp_stack=timestamp_stack,
        body=body,
    )


def skip_push(r: Reader, header: int) -> None:
    """Pass over the rest of Push."""
    r.skip_vle()
    if header & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x33:
                r.skip_vle()
            else:
                r.skip_extension(tag, "Push")
            if tag < 0x80:
                break
    skip_put_or_del(r)


def push_head(
    *,
    scope: int,
    suffix: str = "",
    sender_mapping: bool = True,
    qos: int = 5,
    timestamp: Timestamp | None = None,
    node_id: int = 0,
    timestamp_stack: TimestampStack | None = None,
) -> bytes:
    """All of Push that stands before its body."""
    w = Writer()
    flag_n = len(suffix) > 0
    header = 0x1D
    if flag_n:
        header |= 0x20
    if sender_mapping:
        header |= 0x40
    more = 0
    if qos != 5:
        more += 1
    if timestamp is not None:
        more += 1
    if node_id != 0:
        more += 1
    if timestamp_stack is not None:
        more += 1
    if more:
        header |= 0x80
    w.u8(header)
    w.vle(scope, 0xFFFF)
    if flag_n:
        w.text(suffix, 0xFFFF)
    if qos != 5:
        more -= 1
        w.u8(0x21 | (0x80 if more else 0))
        w.vle(qos, 0xFF)
    if timestamp is not None:
        more -= 1
        w.u8(0x42 | (0x80 if more else 0))
        place = w.hold()
        start = w.size
        timestamp.write(w)
        w.fill(place, start, 0xFFFFFFFF)
    if node_id != 0:
        more -= 1
        w.u8(0x33 | (0x80 if more else 0))
        w.vle(node_id, 0xFFFF)
    if timestamp_stack is not None:
        more -= 1
        w.u8(0x47 | (0x80 if more else 0))
        place = w.hold()
        start = w.size
        timestamp_stack.write(w)
        w.fill(place, start, 0xFFFFFFFF)
    return w.getvalue()


def skip_push_head(r: Reader, header: int) -> bool:
    """Pass over what stands before the body of Push; whether that follows."""
    r.skip_vle()
    if header & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x33:
                r.skip_vle()
            else:
                r.skip_extension(tag, "Push")
            if tag < 0x80:
                break
    return True


class Request(Message):
    """A question on its way to queryables."""

    __slots__ = (
        "body",
        "budget",
        "id",
        "node_id",
        "qos",
        "scope",
        "sender_mapping",
        "suffix",
        "target",
        "timeout",
        "timestamp",
        "timestamp_stack",
    )

    NAME: ClassVar[str] = "Request"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "id",
        "scope",
        "suffix",
        "sender_mapping",
        "qos",
        "timestamp",
        "target",
        "budget",
        "timeout",
        "node_id",
        "timestamp_stack",
        "body",
    )

    def __init__(
        self,
        *,
        id: int,
        scope: int,
        suffix: str = "",
        sender_mapping: bool = True,
        qos: int = 5,
        timestamp: Timestamp | None = None,
        target: int = 0,
        budget: int = 0,
        timeout: int = 0,
        node_id: int = 0,
        timestamp_stack: TimestampStack | None = None,
        body: Query,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.scope: int = scope
        self.suffix: str = suffix
        self.sender_mapping: bool = sender_mapping
        self.qos: int = qos
        self.timestamp: Timestamp | None = timestamp
        self.target: int = target
        self.budget: int = budget
        self.timeout: int = timeout
        self.node_id: int = node_id
        self.timestamp_stack: TimestampStack | None = timestamp_stack
        self.body: Query = body

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = len(self.suffix) > 0
        header = 0x1C
        if flag_n:
            header |= 0x20
        if self.sender_mapping:
            header |= 0x40
        more = 0
        if self.qos != 5:
            more += 1
        if self.timestamp is not None:
            more += 1
        if self.target != 0:
            more += 1
        if self.budget != 0:
            more += 1
        if self.timeout != 0:
            more += 1
        if self.node_id != 0:
            more += 1
        if self.timestamp_stack is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        w.vle(self.scope, 0xFFFF)
        if flag_n:
            w.text(self.suffix, 0xFFFF)
        if self.qos != 5:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos, 0xFF)
        if self.timestamp is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.target != 0:
            more -= 1
            w.u8(0x34 | (0x80 if more else 0))
            if self.target not in (0, 1, 2):
                raise EncodeError(f"Request: {self.target} is not one of (0, 1, 2)")
            w.vle(self.target, 0xFFFFFFFFFFFFFFFF)
        if self.budget != 0:
            more -= 1
            w.u8(0x25 | (0x80 if more else 0))
            w.vle(self.budget, 0xFFFFFFFF)
        if self.timeout != 0:
            more -= 1
            w.u8(0x26 | (0x80 if more else 0))
            w.vle(self.timeout, 0xFFFFFFFFFFFFFFFF)
        if self.node_id != 0:
            more -= 1
            w.u8(0x33 | (0x80 if more else 0))
            w.vle(self.node_id, 0xFFFF)
        if self.timestamp_stack is not None:
            more -= 1
            w.u8(0x47 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp_stack.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        body: Message = self.body
        body.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Request"}
        fields["id"] = self.id
        fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        fields["sender_mapping"] = self.sender_mapping
        if self.qos != 5:
            fields["qos"] = self.qos
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        if self.target != 0:
            fields["target"] = self.target
        if self.budget != 0:
            fields["budget"] = self.budget
        if self.timeout != 0:
            fields["timeout"] = self.timeout
        if self.node_id != 0:
            fields["node_id"] = self.node_id
        if self.timestamp_stack is not None:
            fields["timestamp_stack"] = self.timestamp_stack.to_dict()
        fields["body"] = self.body.to_dict()
        return fields


def read_request(r: Reader, header: int) -> Request:
    """Read the rest of Request."""
    id = r.vle(0xFFFFFFFF)
    scope = r.vle(0xFFFF)
    suffix: str = ""
    if header & 0x20:
        suffix = r.text(r.vle(0xFFFF))
    sender_mapping = (header & 0x40) != 0
    qos: int = 5
    timestamp: Timestamp | None = None
    target: int = 0
    budget: int = 0
    timeout: int = 0
    node_id: int = 0
    timestamp_stack: TimestampStack | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x21:
                qos = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x42:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp = read_timestamp(r)
                r.widen(former, "Request.timestamp")
            elif kind == 0x34:
                target = r.vle(0xFFFFFFFFFFFFFFFF)
                if target not in (0, 1, 2):
                    raise DecodeError(
                        f"Request.target is {target} before offset {r.pos}: one of (0, 1, 2)", r.pos
                    )
            elif kind == 0x25:
                budget = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
            elif kind == 0x26:
                timeout = r.vle(0xFFFFFFFFFFFFFFFF)
            elif kind == 0x33:
                node_id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFF
            elif kind == 0x47:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp_stack = read_timestamp_stack(r)
                r.widen(former, "Request.timestamp_stack")
            else:
                r.skip_extension(tag, "Request")
            if tag < 0x80:
                break
    body = read_one_query(r)
    return Request(
        id=id,
        scope=scope,
        suffix=suffix,
        sender_mapping=sender_mapping,
        qos=qos,
        timestamp=timestamp,
        target=target,
        budget=budget,
        timeout=timeout,
        node_id=node_id,
        timestamp_stack=timestamp_stack,
        body=body,
    )


def skip_request(r: Reader, header: int) -> None:
    """Pass over the rest of Request."""
    r.skip_vle()
    r.skip_vle()
    if header & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x34:
                r.skip_vle()
            elif kind == 0x33:
                r.skip_vle()
            else:
                r.skip_extension(tag, "Request")
            if tag < 0x80:
                break
    skip_one_query(r)


class Response(Message):
    """One answer on its way back."""

    __slots__ = (
        "body",
        "id",
        "qos",
        "responder",
        "scope",
        "sender_mapping",
        "suffix",
        "timestamp",
        "timestamp_stack",
    )

    NAME: ClassVar[str] = "Response"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "id",
        "scope",
        "suffix",
        "sender_mapping",
        "qos",
        "timestamp",
        "responder",
        "timestamp_stack",
        "body",
    )

    def __init__(
        self,
        *,
        id: int,
        scope: int,
        suffix: str = "",
        sender_mapping: bool = True,
        qos: int = 5,
        timestamp: Timestamp | None = None,
        responder: Responder | None = None,
        timestamp_stack: TimestampStack | None = None,
        body: Reply | Err,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.scope: int = scope
        self.suffix: str = suffix
        self.sender_mapping: bool = sender_mapping
        self.qos: int = qos
        self.timestamp: Timestamp | None = timestamp
        self.responder: Responder | None = responder
        self.timestamp_stack: TimestampStack | None = timestamp_stack
        self.body: Reply | Err = body

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = len(self.suffix) > 0
        header = 0x1B
        if flag_n:
            header |= 0x20
        if self.sender_mapping:
            header |= 0x40
        more = 0
        if self.qos != 5:
            more += 1
        if self.timestamp is not None:
            more += 1
        if self.responder is not None:
            more += 1
        if self.timestamp_stack is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        w.vle(self.scope, 0xFFFF)
        if flag_n:
            w.text(self.suffix, 0xFFFF)
        if self.qos != 5:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos, 0xFF)
        if self.timestamp is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.responder is not None:
            more -= 1
            w.u8(0x43 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.responder.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.timestamp_stack is not None:
            more -= 1
            w.u8(0x47 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp_stack.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        body: Message = self.body
        body.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Response"}
        fields["id"] = self.id
        fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        fields["sender_mapping"] = self.sender_mapping
        if self.qos != 5:
            fields["qos"] = self.qos
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        if self.responder is not None:
            fields["responder"] = self.responder.to_dict()
        if self.timestamp_stack is not None:
            fields["timestamp_stack"] = self.timestamp_stack.to_dict()
        fields["body"] = self.body.to_dict()
        return fields


def read_response(r: Reader, header: int) -> Response:
    """Read the rest of Response."""
    id = r.vle(0xFFFFFFFF)
    scope = r.vle(0xFFFF)
    suffix: str = ""
    if header & 0x20:
        suffix = r.text(r.vle(0xFFFF))
    sender_mapping = (header & 0x40) != 0
    qos: int = 5
    timestamp: Timestamp | None = None
    responder: Responder | None = None
    timestamp_stack: TimestampStack | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x21:
                qos = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x42:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp = read_timestamp(r)
                r.widen(former, "Response.timestamp")
            elif kind == 0x43:
                former = r.narrow(r.vle(0xFFFFFFFF))
                responder = read_responder(r)
                r.widen(former, "Response.responder")
            elif kind == 0x47:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp_stack = read_timestamp_stack(r)
                r.widen(former, "Response.timestamp_stack")
            else:
                r.skip_extension(tag, "Response")
            if tag < 0x80:
                break
    body = read_reply_or_err(r)
    return Response(
        id=id,
        scope=scope,
        suffix=suffix,
        sender_mapping=sender_mapping,
        qos=qos,
        timestamp=timestamp,
        responder=responder,
        timestamp_stack=timestamp_stack,
        body=body,
    )


def skip_response(r: Reader, header: int) -> None:
    """Pass over the rest of Response."""
    r.skip_vle()
    r.skip_vle()
    if header & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Response")
            if tag < 0x80:
                break
    skip_reply_or_err(r)


def response_head(
    *,
    id: int,
    scope: int,
    suffix: str = "",
    sender_mapping: bool = True,
    qos: int = 5,
    timestamp: Timestamp | None = None,
    responder: Responder | None = None,
    timestamp_stack: TimestampStack | None = None,
) -> bytes:
    """All of Response that stands before its body."""
    w = Writer()
    flag_n = len(suffix) > 0
    header = 0x1B
    if flag_n:
        header |= 0x20
    if sender_mapping:
        header |= 0x40
    more = 0
    if qos != 5:
        more += 1
    if timestamp is not None:
        more += 1
    if responder is not None:
        more += 1
    if timestamp_stack is not None:
        more += 1
    if more:
        header |= 0x80
    w.u8(header)
    w.vle(id, 0xFFFFFFFF)
    w.vle(scope, 0xFFFF)
    if flag_n:
        w.text(suffix, 0xFFFF)
    if qos != 5:
        more -= 1
        w.u8(0x21 | (0x80 if more else 0))
        w.vle(qos, 0xFF)
    if timestamp is not None:
        more -= 1
        w.u8(0x42 | (0x80 if more else 0))
        place = w.hold()
        start = w.size
        timestamp.write(w)
        w.fill(place, start, 0xFFFFFFFF)
    if responder is not None:
        more -= 1
        w.u8(0x43 | (0x80 if more else 0))
        place = w.hold()
        start = w.size
        responder.write(w)
        w.fill(place, start, 0xFFFFFFFF)
    if timestamp_stack is not None:
        more -= 1
        w.u8(0x47 | (0x80 if more else 0))
        place = w.hold()
        start = w.size
        timestamp_stack.write(w)
        w.fill(place, start, 0xFFFFFFFF)
    return w.getvalue()


class ResponseFinal(Message):
    """There will be no more answers."""

    __slots__ = ("id", "qos", "timestamp")

    NAME: ClassVar[str] = "ResponseFinal"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "qos", "timestamp")

    def __init__(self, *, id: int, qos: int = 5, timestamp: Timestamp | None = None) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.qos: int = qos
        self.timestamp: Timestamp | None = timestamp

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x1A
        more = 0
        if self.qos != 5:
            more += 1
        if self.timestamp is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        if self.qos != 5:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos, 0xFF)
        if self.timestamp is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp.write(w)
            w.fill(place, start, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "ResponseFinal"}
        fields["id"] = self.id
        if self.qos != 5:
            fields["qos"] = self.qos
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        return fields


def read_response_final(r: Reader, header: int) -> ResponseFinal:
    """Read the rest of ResponseFinal."""
    id = r.vle(0xFFFFFFFF)
    qos: int = 5
    timestamp: Timestamp | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x21:
                qos = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x42:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp = read_timestamp(r)
                r.widen(former, "ResponseFinal.timestamp")
            else:
                r.skip_extension(tag, "ResponseFinal")
            if tag < 0x80:
                break
    return ResponseFinal(id=id, qos=qos, timestamp=timestamp)


def skip_response_final(r: Reader, header: int) -> None:
    """Pass over the rest of ResponseFinal."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "ResponseFinal")
            if tag < 0x80:
                break


class Declare(Message):
    """One declaration, perhaps in answer to an interest."""

    __slots__ = ("body", "interest_id", "node_id", "qos", "timestamp")

    NAME: ClassVar[str] = "Declare"
    FIELDS: ClassVar[tuple[str, ...]] = ("interest_id", "qos", "timestamp", "node_id", "body")

    def __init__(
        self,
        *,
        interest_id: int | None = None,
        qos: int = 5,
        timestamp: Timestamp | None = None,
        node_id: int = 0,
        body: DeclareKeyExpr
        | UndeclareKeyExpr
        | DeclareSubscriber
        | UndeclareSubscriber
        | DeclareQueryable
        | UndeclareQueryable
        | DeclareToken
        | UndeclareToken
        | DeclareFinal,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.interest_id: int | None = interest_id
        self.qos: int = qos
        self.timestamp: Timestamp | None = timestamp
        self.node_id: int = node_id
        self.body: (
            DeclareKeyExpr
            | UndeclareKeyExpr
            | DeclareSubscriber
            | UndeclareSubscriber
            | DeclareQueryable
            | UndeclareQueryable
            | DeclareToken
            | UndeclareToken
            | DeclareFinal
        ) = body

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_i = self.interest_id is not None
        header = 0x1E
        if flag_i:
            header |= 0x20
        more = 0
        if self.qos != 5:
            more += 1
        if self.timestamp is not None:
            more += 1
        if self.node_id != 0:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        if flag_i:
            value = self.interest_id
            assert value is not None
            w.vle(value, 0xFFFFFFFF)
        if self.qos != 5:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos, 0xFF)
        if self.timestamp is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.node_id != 0:
            more -= 1
            w.u8(0x33 | (0x80 if more else 0))
            w.vle(self.node_id, 0xFFFF)
        body: Message = self.body
        body.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Declare"}
        if self.interest_id is not None:
            fields["interest_id"] = self.interest_id
        if self.qos != 5:
            fields["qos"] = self.qos
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        if self.node_id != 0:
            fields["node_id"] = self.node_id
        fields["body"] = self.body.to_dict()
        return fields


def read_declare(r: Reader, header: int) -> Declare:
    """Read the rest of Declare."""
    interest_id: int | None = None
    if header & 0x20:
        interest_id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    qos: int = 5
    timestamp: Timestamp | None = None
    node_id: int = 0
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x21:
                qos = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x42:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp = read_timestamp(r)
                r.widen(former, "Declare.timestamp")
            elif kind == 0x33:
                node_id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFF
            else:
                r.skip_extension(tag, "Declare")
            if tag < 0x80:
                break
    body = read_declare_body(r)
    return Declare(
        interest_id=interest_id, qos=qos, timestamp=timestamp, node_id=node_id, body=body
    )


def skip_declare(r: Reader, header: int) -> None:
    """Pass over the rest of Declare."""
    if header & 0x20:
        r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x33:
                r.skip_vle()
            else:
                r.skip_extension(tag, "Declare")
            if tag < 0x80:
                break
    skip_declare_body(r)


class Interest(Message):
    """Tell me what there is (current), what there will be (future), or no more (final)."""

    __slots__ = (
        "aggregate",
        "id",
        "key_exprs",
        "mode",
        "node_id",
        "qos",
        "queryables",
        "restricted",
        "scope",
        "sender_mapping",
        "subscribers",
        "suffix",
        "timestamp",
        "tokens",
    )

    NAME: ClassVar[str] = "Interest"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "mode",
        "id",
        "key_exprs",
        "subscribers",
        "queryables",
        "tokens",
        "restricted",
        "scope",
        "suffix",
        "sender_mapping",
        "aggregate",
        "qos",
        "timestamp",
        "node_id",
    )

    def __init__(
        self,
        *,
        mode: int,
        id: int,
        key_exprs: bool = False,
        subscribers: bool = False,
        queryables: bool = False,
        tokens: bool = False,
        restricted: bool = False,
        scope: int = 0,
        suffix: str = "",
        sender_mapping: bool = True,
        aggregate: bool = False,
        qos: int = 5,
        timestamp: Timestamp | None = None,
        node_id: int = 0,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.mode: int = mode
        self.id: int = id
        self.key_exprs: bool = key_exprs
        self.subscribers: bool = subscribers
        self.queryables: bool = queryables
        self.tokens: bool = tokens
        self.restricted: bool = restricted
        self.scope: int = scope
        self.suffix: str = suffix
        self.sender_mapping: bool = sender_mapping
        self.aggregate: bool = aggregate
        self.qos: int = qos
        self.timestamp: Timestamp | None = timestamp
        self.node_id: int = node_id

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = self.restricted and len(self.suffix) > 0
        header = 0x19
        if self.mode not in (0, 1, 2, 3):
            raise EncodeError(f"Interest.mode is {self.mode}: one of (0, 1, 2, 3)")
        header |= self.mode << 5
        more = 0
        if self.qos != 5:
            more += 1
        if self.timestamp is not None:
            more += 1
        if self.node_id != 0:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        if self.mode != 0:
            options = 0
            if self.key_exprs:
                options |= 0x01
            if self.subscribers:
                options |= 0x02
            if self.queryables:
                options |= 0x04
            if self.tokens:
                options |= 0x08
            if self.restricted:
                options |= 0x10
            if flag_n:
                options |= 0x20
            if self.restricted and self.sender_mapping:
                options |= 0x40
            if self.aggregate:
                options |= 0x80
            w.u8(options)
        if self.mode != 0 and self.restricted:
            w.vle(self.scope, 0xFFFF)
        if self.mode != 0 and self.restricted and flag_n:
            w.text(self.suffix, 0xFFFF)
        if self.qos != 5:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos, 0xFF)
        if self.timestamp is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if self.node_id != 0:
            more -= 1
            w.u8(0x33 | (0x80 if more else 0))
            w.vle(self.node_id, 0xFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Interest"}
        fields["mode"] = self.mode
        fields["id"] = self.id
        fields["key_exprs"] = self.key_exprs
        fields["subscribers"] = self.subscribers
        fields["queryables"] = self.queryables
        fields["tokens"] = self.tokens
        fields["restricted"] = self.restricted
        if self.scope != 0:
            fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        fields["sender_mapping"] = self.sender_mapping
        fields["aggregate"] = self.aggregate
        if self.qos != 5:
            fields["qos"] = self.qos
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        if self.node_id != 0:
            fields["node_id"] = self.node_id
        return fields


def read_interest(r: Reader, header: int) -> Interest:
    """Read the rest of Interest."""
    mode = (header >> 5) & 3
    id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    options = 0
    if mode != 0:
        options = r.u8()
    key_exprs = (options & 0x01) != 0
    subscribers = (options & 0x02) != 0
    queryables = (options & 0x04) != 0
    tokens = (options & 0x08) != 0
    restricted = (options & 0x10) != 0
    scope: int = 0
    if mode != 0 and options & 0x10:
        scope = r.vle(0xFFFF)
    suffix: str = ""
    if mode != 0 and options & 0x10 and options & 0x20:
        suffix = r.text(r.vle(0xFFFF))
    sender_mapping = (options & 0x40) != 0 if options & 0x10 else True
    aggregate = (options & 0x80) != 0
    qos: int = 5
    timestamp: Timestamp | None = None
    node_id: int = 0
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x21:
                qos = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x42:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp = read_timestamp(r)
                r.widen(former, "Interest.timestamp")
            elif kind == 0x33:
                node_id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFF
            else:
                r.skip_extension(tag, "Interest")
            if tag < 0x80:
                break
    return Interest(
        mode=mode,
        id=id,
        key_exprs=key_exprs,
        subscribers=subscribers,
        queryables=queryables,
        tokens=tokens,
        restricted=restricted,
        scope=scope,
        suffix=suffix,
        sender_mapping=sender_mapping,
        aggregate=aggregate,
        qos=qos,
        timestamp=timestamp,
        node_id=node_id,
    )


def skip_interest(r: Reader, header: int) -> None:
    """Pass over the rest of Interest."""
    mode = (header >> 5) & 3
    r.skip_vle()
    options = 0
    if mode != 0:
        options = r.u8()
    if mode != 0 and options & 0x10:
        r.skip_vle()
    if mode != 0 and options & 0x10 and options & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x33:
                r.skip_vle()
            else:
                r.skip_extension(tag, "Interest")
            if tag < 0x80:
                break


class Oam(Message):
    """Operation and maintenance: id 1 carries link states."""

    __slots__ = ("body", "id", "qos", "timestamp")

    NAME: ClassVar[str] = "Oam"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "qos", "timestamp", "body")

    def __init__(
        self,
        *,
        id: int,
        qos: int = 5,
        timestamp: Timestamp | None = None,
        body: int | bytes | None = None,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.qos: int = qos
        self.timestamp: Timestamp | None = timestamp
        self.body: int | bytes | None = body

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x1F
        body = self.body
        if body is not None:
            header |= 0x20 if isinstance(body, int) else 0x40
        more = 0
        if self.qos != 5:
            more += 1
        if self.timestamp is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFF)
        if self.qos != 5:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos, 0xFF)
        if self.timestamp is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.timestamp.write(w)
            w.fill(place, start, 0xFFFFFFFF)
        if isinstance(body, int):
            w.vle(body, 0xFFFFFFFFFFFFFFFF)
        elif body is not None:
            w.sized(body, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Oam"}
        fields["id"] = self.id
        if self.qos != 5:
            fields["qos"] = self.qos
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp.to_dict()
        if self.body is not None:
            fields["body"] = self.body.hex() if isinstance(self.body, bytes) else self.body
        return fields


def read_oam(r: Reader, header: int) -> Oam:
    """Read the rest of Oam."""
    id = r.vle(0xFFFF)
    qos: int = 5
    timestamp: Timestamp | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x21:
                qos = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x42:
                former = r.narrow(r.vle(0xFFFFFFFF))
                timestamp = read_timestamp(r)
                r.widen(former, "Oam.timestamp")
            else:
                r.skip_extension(tag, "Oam")
            if tag < 0x80:
                break
    body: int | bytes | None = None
    shape = header & 0x60
    if shape == 0x20:
        body = r.vle(0xFFFFFFFFFFFFFFFF)
    elif shape == 0x40:
        body = r.take(r.vle(0xFFFFFFFF))
    elif shape == 0x60:
        raise DecodeError(f"Oam has the reserved encoding 3 at offset {r.pos}", r.pos)
    return Oam(id=id, qos=qos, timestamp=timestamp, body=body)


def skip_oam(r: Reader, header: int) -> None:
    """Pass over the rest of Oam."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Oam")
            if tag < 0x80:
                break
    shape = header & 0x60
    if shape == 0x20:
        r.skip_vle()
    elif shape == 0x40:
        r.skip(r.vle(0xFFFFFFFF))
    elif shape == 0x60:
        raise DecodeError(f"Oam has the reserved encoding 3 at offset {r.pos}", r.pos)


class LinkState(Message):
    """What one node says of another: who it is, where it listens, whom it is linked to."""

    __slots__ = ("gateway", "links", "locators", "psid", "sn", "weights", "whatami", "zid")

    NAME: ClassVar[str] = "LinkState"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "psid",
        "sn",
        "zid",
        "whatami",
        "locators",
        "links",
        "weights",
        "gateway",
    )

    def __init__(
        self,
        *,
        psid: int,
        sn: int,
        zid: bytes = b"",
        whatami: int = 0,
        locators: tuple[str, ...] | None = None,
        links: tuple[int, ...],
        weights: tuple[int, ...] = (),
        gateway: bool = False,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.psid: int = psid
        self.sn: int = sn
        self.zid: bytes = zid
        self.whatami: int = whatami
        self.locators: tuple[str, ...] | None = locators
        self.links: tuple[int, ...] = links
        self.weights: tuple[int, ...] = weights
        self.gateway: bool = gateway

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_p = len(self.zid) > 0
        flag_w = self.whatami != 0
        flag_l = self.locators is not None
        flag_h = len(self.weights) > 0
        options = 0
        if flag_p:
            options |= 0x01
        if flag_w:
            options |= 0x02
        if flag_l:
            options |= 0x04
        if flag_h:
            options |= 0x08
        if self.gateway:
            options |= 0x10
        w.vle(options, 0xFF)
        w.vle(self.psid, 0xFFFFFFFFFFFFFFFF)
        w.vle(self.sn, 0xFFFFFFFFFFFFFFFF)
        if flag_p:
            w.vle(len(self.zid), 16)
            w.zid(self.zid)
        if flag_w:
            if self.whatami not in (1, 2, 4):
                raise EncodeError(f"LinkState: {self.whatami} is not one of (1, 2, 4)")
            w.u8(self.whatami)
        if flag_l:
            locators = self.locators
            assert locators is not None
            w.vle(len(locators), 0xFFFFFFFFFFFFFFFF)
            for locator in locators:
                w.text(locator, 0xFF)
        w.vle(len(self.links), 0xFFFFFFFFFFFFFFFF)
        for link in self.links:
            w.vle(link, 0xFFFFFFFFFFFFFFFF)
        if flag_h:
            if len(self.weights) != len(self.links):
                raise EncodeError(f"LinkState.weights: one for each of links")
            for weight in self.weights:
                w.vle(weight, 0xFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "LinkState"}
        fields["psid"] = self.psid
        fields["sn"] = self.sn
        if len(self.zid) > 0:
            fields["zid"] = zid_text(self.zid)
        if self.whatami != 0:
            fields["whatami"] = self.whatami
        if self.locators is not None:
            fields["locators"] = list(self.locators)
        fields["links"] = list(self.links)
        if len(self.weights) > 0:
            fields["weights"] = list(self.weights)
        fields["gateway"] = self.gateway
        return fields


def read_link_state(r: Reader) -> LinkState:
    """Read the rest of LinkState (a structure)."""
    options = r.vle(0xFFFFFFFFFFFFFFFF)
    psid = r.vle(0xFFFFFFFFFFFFFFFF)
    sn = r.vle(0xFFFFFFFFFFFFFFFF)
    zid: bytes = b""
    if options & 0x01:
        zid = r.zid(r.vle(0xFF))
    whatami: int = 0
    if options & 0x02:
        whatami = r.u8()
        if whatami not in (1, 2, 4):
            raise DecodeError(
                f"LinkState.whatami is {whatami} before offset {r.pos}: one of (1, 2, 4)", r.pos
            )
    locators: tuple[str, ...] | None = None
    if options & 0x04:
        locators_count = r.count(0xFFFFFFFFFFFFFFFF, 1)
        locators_list: list[str] = []
        for _ in range(locators_count):
            locators_list.append(r.text(r.vle(0xFF)))
        locators = tuple(locators_list)
    links_count = r.count(0xFFFFFFFFFFFFFFFF, 1)
    links_list: list[int] = []
    for _ in range(links_count):
        links_list.append(r.vle(0xFFFFFFFFFFFFFFFF))
    links = tuple(links_list)
    weights: tuple[int, ...] = ()
    if options & 0x08:
        weights_list: list[int] = []
        for _ in range(len(links)):
            weights_list.append(r.vle(0xFFFF))
        weights = tuple(weights_list)
    gateway = (options & 0x10) != 0
    return LinkState(
        psid=psid,
        sn=sn,
        zid=zid,
        whatami=whatami,
        locators=locators,
        links=links,
        weights=weights,
        gateway=gateway,
    )


def skip_link_state(r: Reader) -> None:
    """Pass over the rest of LinkState (a structure)."""
    options = r.vle(0xFFFFFFFFFFFFFFFF)
    r.skip_vle()
    r.skip_vle()
    if options & 0x01:
        r.skip(r.vle(16))
    if options & 0x02:
        r.skip(1)
    if options & 0x04:
        locators_count = r.count(0xFFFFFFFFFFFFFFFF, 1)
        for _ in range(locators_count):
            r.skip(r.vle(0xFF))
    links_count = r.count(0xFFFFFFFFFFFFFFFF, 1)
    for _ in range(links_count):
        r.skip_vle()
    if options & 0x08:
        for _ in range(links_count):
            r.skip_vle()


class LinkStates(Message):
    """The body of an Oam message with id 1."""

    __slots__ = ("entries",)

    NAME: ClassVar[str] = "LinkStates"
    FIELDS: ClassVar[tuple[str, ...]] = ("entries",)

    def __init__(self, *, entries: tuple[LinkState, ...]) -> None:
        """Make it from its fields, in wire order."""
        self.entries: tuple[LinkState, ...] = entries

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        w.vle(len(self.entries), 0xFFFFFFFFFFFFFFFF)
        for entrie in self.entries:
            entrie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "LinkStates"}
        fields["entries"] = [item.to_dict() for item in self.entries]
        return fields


def read_link_states(r: Reader) -> LinkStates:
    """Read the rest of LinkStates (a structure)."""
    entries_count = r.count(0xFFFFFFFFFFFFFFFF, 4)
    entries_list: list[LinkState] = []
    for _ in range(entries_count):
        entries_list.append(read_link_state(r))
    entries = tuple(entries_list)
    return LinkStates(entries=entries)


def skip_link_states(r: Reader) -> None:
    """Pass over the rest of LinkStates (a structure)."""
    entries_count = r.count(0xFFFFFFFFFFFFFFFF, 4)
    for _ in range(entries_count):
        skip_link_state(r)


def read_one_query(r: Reader) -> Query:
    """Read one message: Query."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x03:
        return read_query(r, header)
    raise DecodeError(f"0x{kind:02x} at offset {r.pos - 1} is none of: Query 0x03", r.pos - 1)


def skip_one_query(r: Reader) -> None:
    """Pass over one message: Query."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x03:
        skip_query(r, header)
        return
    raise DecodeError(f"0x{kind:02x} at offset {r.pos - 1} is none of: Query 0x03", r.pos - 1)


def read_reply_or_err(r: Reader) -> Reply | Err:
    """Read one message: Reply | Err."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x05:
        return read_err(r, header)
    if kind == 0x04:
        return read_reply(r, header)
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: Reply 0x04, Err 0x05", r.pos - 1
    )


def skip_reply_or_err(r: Reader) -> None:
    """Pass over one message: Reply | Err."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x05:
        skip_err(r, header)
        return
    if kind == 0x04:
        skip_reply(r, header)
        return
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: Reply 0x04, Err 0x05", r.pos - 1
    )


def read_declare_body(
    r: Reader,
) -> (
    DeclareKeyExpr
    | UndeclareKeyExpr
    | DeclareSubscriber
    | UndeclareSubscriber
    | DeclareQueryable
    | UndeclareQueryable
    | DeclareToken
    | UndeclareToken
    | DeclareFinal
):
    """Read one message: DeclareKeyExpr | UndeclareKeyExpr | DeclareSubscriber | UndeclareSubscriber | DeclareQueryable | UndeclareQueryable | DeclareToken | UndeclareToken | DeclareFinal."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x05:
        return read_undeclare_queryable(r, header)
    if kind == 0x00:
        return read_declare_key_expr(r, header)
    if kind == 0x01:
        return read_undeclare_key_expr(r, header)
    if kind == 0x02:
        return read_declare_subscriber(r, header)
    if kind == 0x03:
        return read_undeclare_subscriber(r, header)
    if kind == 0x04:
        return read_declare_queryable(r, header)
    if kind == 0x06:
        return read_declare_token(r, header)
    if kind == 0x07:
        return read_undeclare_token(r, header)
    if kind == 0x1A:
        return read_declare_final(r, header)
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: DeclareKeyExpr 0x00, UndeclareKeyExpr 0x01, DeclareSubscriber 0x02, UndeclareSubscriber 0x03, DeclareQueryable 0x04, UndeclareQueryable 0x05, DeclareToken 0x06, UndeclareToken 0x07, DeclareFinal 0x1a",
        r.pos - 1,
    )


def skip_declare_body(r: Reader) -> None:
    """Pass over one message: DeclareKeyExpr | UndeclareKeyExpr | DeclareSubscriber | UndeclareSubscriber | DeclareQueryable | UndeclareQueryable | DeclareToken | UndeclareToken | DeclareFinal."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x05:
        skip_undeclare_queryable(r, header)
        return
    if kind == 0x00:
        skip_declare_key_expr(r, header)
        return
    if kind == 0x01:
        skip_undeclare_key_expr(r, header)
        return
    if kind == 0x02:
        skip_declare_subscriber(r, header)
        return
    if kind == 0x03:
        skip_undeclare_subscriber(r, header)
        return
    if kind == 0x04:
        skip_declare_queryable(r, header)
        return
    if kind == 0x06:
        skip_declare_token(r, header)
        return
    if kind == 0x07:
        skip_undeclare_token(r, header)
        return
    if kind == 0x1A:
        skip_declare_final(r, header)
        return
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: DeclareKeyExpr 0x00, UndeclareKeyExpr 0x01, DeclareSubscriber 0x02, UndeclareSubscriber 0x03, DeclareQueryable 0x04, UndeclareQueryable 0x05, DeclareToken 0x06, UndeclareToken 0x07, DeclareFinal 0x1a",
        r.pos - 1,
    )


def read_network(r: Reader) -> Push | Request | Response | ResponseFinal | Declare | Interest | Oam:
    """Read one message: Push | Request | Response | ResponseFinal | Declare | Interest | Oam."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x1D:
        return read_push(r, header)
    if kind == 0x19:
        return read_interest(r, header)
    if kind == 0x1A:
        return read_response_final(r, header)
    if kind == 0x1B:
        return read_response(r, header)
    if kind == 0x1C:
        return read_request(r, header)
    if kind == 0x1E:
        return read_declare(r, header)
    if kind == 0x1F:
        return read_oam(r, header)
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: Push 0x1d, Request 0x1c, Response 0x1b, ResponseFinal 0x1a, Declare 0x1e, Interest 0x19, Oam 0x1f",
        r.pos - 1,
    )


def skip_network(r: Reader) -> None:
    """Pass over one message: Push | Request | Response | ResponseFinal | Declare | Interest | Oam."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x1D:
        skip_push(r, header)
        return
    if kind == 0x19:
        skip_interest(r, header)
        return
    if kind == 0x1A:
        skip_response_final(r, header)
        return
    if kind == 0x1B:
        skip_response(r, header)
        return
    if kind == 0x1C:
        skip_request(r, header)
        return
    if kind == 0x1E:
        skip_declare(r, header)
        return
    if kind == 0x1F:
        skip_oam(r, header)
        return
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: Push 0x1d, Request 0x1c, Response 0x1b, ResponseFinal 0x1a, Declare 0x1e, Interest 0x19, Oam 0x1f",
        r.pos - 1,
    )

"""Messages of Zenoh 2018: classes and codec.

Generated from `xrce/declared.py` by `make wire`. Do not edit: change the declarations.
"""

# ruff: noqa: SIM102, SIM103, PLR, E501

from __future__ import annotations

from typing import ClassVar

from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message


class Conduit(Message):
    """The next message travels on this conduit; without it, on conduit 0."""

    __slots__ = ("compact", "id")

    NAME: ClassVar[str] = "Conduit"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "compact")

    def __init__(self, *, id: int, compact: bool = True) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.compact: bool = compact

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x13
        if self.compact:
            if not 1 <= self.id <= 4:
                raise EncodeError(f"a compact id is 1 to 4, not {self.id}: use compact=False")
            header |= 0x80 | ((self.id - 1) << 5)
        w.u8(header)
        if not self.compact:
            w.nat(self.id)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Conduit"}
        fields["id"] = self.id
        fields["compact"] = self.compact
        return fields


def read_conduit(r: Reader, header: int) -> Conduit:
    """Read the rest of Conduit."""
    compact = (header & 0x80) != 0
    id = 1 + ((header >> 5) & 3) if compact else r.nat()
    return Conduit(id=id, compact=compact)


class Frag(Message):
    """The next message carries a slice of a payload."""

    __slots__ = ("count", "sn_base")

    NAME: ClassVar[str] = "Frag"
    FIELDS: ClassVar[tuple[str, ...]] = ("sn_base", "count")

    def __init__(self, *, sn_base: int, count: int | None = None) -> None:
        """Make it from its fields, in wire order."""
        self.sn_base: int = sn_base
        self.count: int | None = count

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = self.count is not None
        header = 0x12
        if flag_n:
            header |= 0x40
        w.u8(header)
        w.nat(self.sn_base)
        if flag_n:
            value = self.count
            assert value is not None
            w.nat(value)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Frag"}
        fields["sn_base"] = self.sn_base
        if self.count is not None:
            fields["count"] = self.count
        return fields


def read_frag(r: Reader, header: int) -> Frag:
    """Read the rest of Frag."""
    sn_base = r.nat()
    count: int | None = None
    if header & 0x40:
        count = r.nat()
    return Frag(sn_base=sn_base, count=count)


class RSpace(Message):
    """The ids of the next message belong to this resource space; without it, to space 0."""

    __slots__ = ("compact", "id")

    NAME: ClassVar[str] = "RSpace"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "compact")

    def __init__(self, *, id: int, compact: bool = False) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.compact: bool = compact

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x18
        if self.compact:
            if not 1 <= self.id <= 4:
                raise EncodeError(f"a compact id is 1 to 4, not {self.id}: use compact=False")
            header |= 0x80 | ((self.id - 1) << 5)
        w.u8(header)
        if not self.compact:
            w.nat(self.id)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "RSpace"}
        fields["id"] = self.id
        fields["compact"] = self.compact
        return fields


def read_r_space(r: Reader, header: int) -> RSpace:
    """Read the rest of RSpace."""
    compact = (header & 0x80) != 0
    id = 1 + ((header >> 5) & 3) if compact else r.nat()
    return RSpace(id=id, compact=compact)


class Property(Message):
    """A property: even ids are standard, odd ones a vendor's; the value may trail off."""

    __slots__ = ("id", "value")

    NAME: ClassVar[str] = "Property"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "value")

    def __init__(self, *, id: int, value: bytes) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.value: bytes = value

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        w.nat(self.id)
        w.nat(len(self.value))
        w.raw(self.value)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Property"}
        fields["id"] = self.id
        fields["value"] = self.value.hex()
        return fields


def read_property(r: Reader) -> Property:
    """Read the rest of Property (a structure)."""
    id = r.nat()
    value = r.take(r.nat())
    return Property(id=id, value=value)


class Scout(Message):
    """Is anybody there?"""

    __slots__ = ("markers", "mask", "properties")

    NAME: ClassVar[str] = "Scout"
    FIELDS: ClassVar[tuple[str, ...]] = ("mask", "properties", "markers")

    def __init__(
        self,
        *,
        mask: int,
        properties: tuple[Property, ...] = (),
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.mask: int = mask
        self.properties: tuple[Property, ...] = properties
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_p = len(self.properties) > 0
        header = 0x01
        if flag_p:
            header |= 0x20
        w.u8(header)
        w.nat(self.mask)
        if flag_p:
            w.nat(len(self.properties))
            for propertie in self.properties:
                propertie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Scout"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["mask"] = self.mask
        if len(self.properties) > 0:
            fields["properties"] = [item.to_dict() for item in self.properties]
        return fields


def read_scout(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Scout:
    """Read the rest of Scout."""
    mask = r.nat()
    properties: tuple[Property, ...] = ()
    if header & 0x20:
        start = r.pos
        properties_count = r.nat()
        r.room(properties_count, 2, start)
        properties_list: list[Property] = []
        for _ in range(properties_count):
            properties_list.append(read_property(r))
        properties = tuple(properties_list)
    return Scout(mask=mask, properties=properties, markers=markers)


class Hello(Message):
    """I am here, and can be reached there."""

    __slots__ = ("locators", "markers", "mask", "properties")

    NAME: ClassVar[str] = "Hello"
    FIELDS: ClassVar[tuple[str, ...]] = ("mask", "locators", "properties", "markers")

    def __init__(
        self,
        *,
        mask: int,
        locators: tuple[str, ...],
        properties: tuple[Property, ...] = (),
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.mask: int = mask
        self.locators: tuple[str, ...] = locators
        self.properties: tuple[Property, ...] = properties
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_p = len(self.properties) > 0
        header = 0x02
        if flag_p:
            header |= 0x20
        w.u8(header)
        w.nat(self.mask)
        w.nat(len(self.locators))
        for locator in self.locators:
            encoded = w.utf8(locator)
            w.nat(len(encoded))
            w.raw(encoded)
        if flag_p:
            w.nat(len(self.properties))
            for propertie in self.properties:
                propertie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Hello"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["mask"] = self.mask
        fields["locators"] = list(self.locators)
        if len(self.properties) > 0:
            fields["properties"] = [item.to_dict() for item in self.properties]
        return fields


def read_hello(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Hello:
    """Read the rest of Hello."""
    mask = r.nat()
    start = r.pos
    locators_count = r.nat()
    r.room(locators_count, 1, start)
    locators_list: list[str] = []
    for _ in range(locators_count):
        locators_list.append(r.text(r.nat()))
    locators = tuple(locators_list)
    properties: tuple[Property, ...] = ()
    if header & 0x20:
        start = r.pos
        properties_count = r.nat()
        r.room(properties_count, 2, start)
        properties_list: list[Property] = []
        for _ in range(properties_count):
            properties_list.append(read_property(r))
        properties = tuple(properties_list)
    return Hello(mask=mask, locators=locators, properties=properties, markers=markers)


class Open(Message):
    """Let us have a session."""

    __slots__ = ("lease", "locators", "markers", "pid", "properties", "version")

    NAME: ClassVar[str] = "Open"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "version",
        "pid",
        "lease",
        "locators",
        "properties",
        "markers",
    )

    def __init__(
        self,
        *,
        version: int,
        pid: bytes,
        lease: int,
        locators: tuple[str, ...],
        properties: tuple[Property, ...] = (),
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.version: int = version
        self.pid: bytes = pid
        self.lease: int = lease
        self.locators: tuple[str, ...] = locators
        self.properties: tuple[Property, ...] = properties
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_p = len(self.properties) > 0
        header = 0x03
        if flag_p:
            header |= 0x20
        w.u8(header)
        w.u8(self.version)
        w.nat(len(self.pid))
        w.raw(self.pid)
        w.nat(self.lease)
        w.nat(len(self.locators))
        for locator in self.locators:
            encoded = w.utf8(locator)
            w.nat(len(encoded))
            w.raw(encoded)
        if flag_p:
            w.nat(len(self.properties))
            for propertie in self.properties:
                propertie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Open"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["version"] = self.version
        fields["pid"] = self.pid.hex()
        fields["lease"] = self.lease
        fields["locators"] = list(self.locators)
        if len(self.properties) > 0:
            fields["properties"] = [item.to_dict() for item in self.properties]
        return fields


def read_open(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Open:
    """Read the rest of Open."""
    version = r.u8()
    pid = r.take(r.nat())
    lease = r.nat()
    start = r.pos
    locators_count = r.nat()
    r.room(locators_count, 1, start)
    locators_list: list[str] = []
    for _ in range(locators_count):
        locators_list.append(r.text(r.nat()))
    locators = tuple(locators_list)
    properties: tuple[Property, ...] = ()
    if header & 0x20:
        start = r.pos
        properties_count = r.nat()
        r.room(properties_count, 2, start)
        properties_list: list[Property] = []
        for _ in range(properties_count):
            properties_list.append(read_property(r))
        properties = tuple(properties_list)
    return Open(
        version=version,
        pid=pid,
        lease=lease,
        locators=locators,
        properties=properties,
        markers=markers,
    )


class Accept(Message):
    """We have a session."""

    __slots__ = ("accept_pid", "lease", "markers", "open_pid", "properties")

    NAME: ClassVar[str] = "Accept"
    FIELDS: ClassVar[tuple[str, ...]] = ("open_pid", "accept_pid", "lease", "properties", "markers")

    def __init__(
        self,
        *,
        open_pid: bytes,
        accept_pid: bytes,
        lease: int,
        properties: tuple[Property, ...] = (),
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.open_pid: bytes = open_pid
        self.accept_pid: bytes = accept_pid
        self.lease: int = lease
        self.properties: tuple[Property, ...] = properties
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_p = len(self.properties) > 0
        header = 0x04
        if flag_p:
            header |= 0x20
        w.u8(header)
        w.nat(len(self.open_pid))
        w.raw(self.open_pid)
        w.nat(len(self.accept_pid))
        w.raw(self.accept_pid)
        w.nat(self.lease)
        if flag_p:
            w.nat(len(self.properties))
            for propertie in self.properties:
                propertie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Accept"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["open_pid"] = self.open_pid.hex()
        fields["accept_pid"] = self.accept_pid.hex()
        fields["lease"] = self.lease
        if len(self.properties) > 0:
            fields["properties"] = [item.to_dict() for item in self.properties]
        return fields


def read_accept(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Accept:
    """Read the rest of Accept."""
    open_pid = r.take(r.nat())
    accept_pid = r.take(r.nat())
    lease = r.nat()
    properties: tuple[Property, ...] = ()
    if header & 0x20:
        start = r.pos
        properties_count = r.nat()
        r.room(properties_count, 2, start)
        properties_list: list[Property] = []
        for _ in range(properties_count):
            properties_list.append(read_property(r))
        properties = tuple(properties_list)
    return Accept(
        open_pid=open_pid,
        accept_pid=accept_pid,
        lease=lease,
        properties=properties,
        markers=markers,
    )


class Close(Message):
    """We have no session, or no longer."""

    __slots__ = ("markers", "pid", "reason")

    NAME: ClassVar[str] = "Close"
    FIELDS: ClassVar[tuple[str, ...]] = ("pid", "reason", "markers")

    def __init__(
        self, *, pid: bytes, reason: int, markers: tuple[Conduit | Frag | RSpace, ...] = ()
    ) -> None:
        """Make it from its fields, in wire order."""
        self.pid: bytes = pid
        self.reason: int = reason
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        header = 0x05
        w.u8(header)
        w.nat(len(self.pid))
        w.raw(self.pid)
        w.u8(self.reason)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Close"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["pid"] = self.pid.hex()
        fields["reason"] = self.reason
        return fields


def read_close(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Close:
    """Read the rest of Close."""
    pid = r.take(r.nat())
    reason = r.u8()
    return Close(pid=pid, reason=reason, markers=markers)


class KeepAlive(Message):
    """I am still here."""

    __slots__ = ("markers", "pid")

    NAME: ClassVar[str] = "KeepAlive"
    FIELDS: ClassVar[tuple[str, ...]] = ("pid", "markers")

    def __init__(self, *, pid: bytes, markers: tuple[Conduit | Frag | RSpace, ...] = ()) -> None:
        """Make it from its fields, in wire order."""
        self.pid: bytes = pid
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        header = 0x10
        w.u8(header)
        w.nat(len(self.pid))
        w.raw(self.pid)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "KeepAlive"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["pid"] = self.pid.hex()
        return fields


def read_keep_alive(
    r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]
) -> KeepAlive:
    """Read the rest of KeepAlive."""
    pid = r.take(r.nat())
    return KeepAlive(pid=pid, markers=markers)


class PingPong(Message):
    """How far away are you? An older draft called a pong 13: so it is read, never written."""

    __slots__ = ("hash", "markers", "pong")

    NAME: ClassVar[str] = "PingPong"
    FIELDS: ClassVar[tuple[str, ...]] = ("pong", "hash", "markers")

    def __init__(
        self, *, pong: bool = False, hash: int, markers: tuple[Conduit | Frag | RSpace, ...] = ()
    ) -> None:
        """Make it from its fields, in wire order."""
        self.pong: bool = pong
        self.hash: int = hash
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        header = 0x0C
        if self.pong:
            header |= 0x20
        w.u8(header)
        w.nat(self.hash)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "PingPong"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["pong"] = self.pong
        fields["hash"] = self.hash
        return fields


def read_ping_pong(
    r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]
) -> PingPong:
    """Read the rest of PingPong."""
    pong = (header & 0x20) != 0
    hash = r.nat()
    return PingPong(pong=pong, hash=hash, markers=markers)


class Synch(Message):
    """This is where my channel stands."""

    __slots__ = ("count", "markers", "reliable", "sn", "synch")

    NAME: ClassVar[str] = "Synch"
    FIELDS: ClassVar[tuple[str, ...]] = ("synch", "reliable", "sn", "count", "markers")

    def __init__(
        self,
        *,
        synch: bool = False,
        reliable: bool = False,
        sn: int,
        count: int = 0,
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.synch: bool = synch
        self.reliable: bool = reliable
        self.sn: int = sn
        self.count: int = count
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_u = self.count != 0
        header = 0x0E
        if self.synch:
            header |= 0x20
        if self.reliable:
            header |= 0x40
        if flag_u:
            header |= 0x80
        w.u8(header)
        w.nat(self.sn)
        if flag_u:
            w.nat(self.count)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Synch"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["synch"] = self.synch
        fields["reliable"] = self.reliable
        fields["sn"] = self.sn
        if self.count != 0:
            fields["count"] = self.count
        return fields


def read_synch(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Synch:
    """Read the rest of Synch."""
    synch = (header & 0x20) != 0
    reliable = (header & 0x40) != 0
    sn = r.nat()
    count: int = 0
    if header & 0x80:
        count = r.nat()
    return Synch(synch=synch, reliable=reliable, sn=sn, count=count, markers=markers)


class AckNack(Message):
    """This is what I have, and what I miss."""

    __slots__ = ("markers", "mask", "sn")

    NAME: ClassVar[str] = "AckNack"
    FIELDS: ClassVar[tuple[str, ...]] = ("sn", "mask", "markers")

    def __init__(
        self, *, sn: int, mask: int | None = None, markers: tuple[Conduit | Frag | RSpace, ...] = ()
    ) -> None:
        """Make it from its fields, in wire order."""
        self.sn: int = sn
        self.mask: int | None = mask
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_m = self.mask is not None
        header = 0x0F
        if flag_m:
            header |= 0x20
        w.u8(header)
        w.nat(self.sn)
        if flag_m:
            value = self.mask
            assert value is not None
            w.nat(value)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "AckNack"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["sn"] = self.sn
        if self.mask is not None:
            fields["mask"] = self.mask
        return fields


def read_ack_nack(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> AckNack:
    """Read the rest of AckNack."""
    sn = r.nat()
    mask: int | None = None
    if header & 0x20:
        mask = r.nat()
    return AckNack(sn=sn, mask=mask, markers=markers)


class Migrate(Message):
    """What went over another conduit goes over this one."""

    __slots__ = ("bech_last_sn", "id", "markers", "ocid", "rch_last_sn")

    NAME: ClassVar[str] = "Migrate"
    FIELDS: ClassVar[tuple[str, ...]] = ("ocid", "id", "rch_last_sn", "bech_last_sn", "markers")

    def __init__(
        self,
        *,
        ocid: int,
        id: int | None = None,
        rch_last_sn: int,
        bech_last_sn: int,
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.ocid: int = ocid
        self.id: int | None = id
        self.rch_last_sn: int = rch_last_sn
        self.bech_last_sn: int = bech_last_sn
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_i = self.id is not None
        header = 0x14
        if flag_i:
            header |= 0x20
        w.u8(header)
        w.nat(self.ocid)
        if flag_i:
            value = self.id
            assert value is not None
            w.nat(value)
        w.nat(self.rch_last_sn)
        w.nat(self.bech_last_sn)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Migrate"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["ocid"] = self.ocid
        if self.id is not None:
            fields["id"] = self.id
        fields["rch_last_sn"] = self.rch_last_sn
        fields["bech_last_sn"] = self.bech_last_sn
        return fields


def read_migrate(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Migrate:
    """Read the rest of Migrate."""
    ocid = r.nat()
    id: int | None = None
    if header & 0x20:
        id = r.nat()
    rch_last_sn = r.nat()
    bech_last_sn = r.nat()
    return Migrate(
        ocid=ocid, id=id, rch_last_sn=rch_last_sn, bech_last_sn=bech_last_sn, markers=markers
    )


class StreamData(Message):
    """A sample of a resource or selection, by id: four bytes of overhead."""

    __slots__ = ("id", "markers", "payload", "prid", "reliable", "sn", "synch")

    NAME: ClassVar[str] = "StreamData"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "synch",
        "reliable",
        "sn",
        "id",
        "prid",
        "payload",
        "markers",
    )

    def __init__(
        self,
        *,
        synch: bool = False,
        reliable: bool = False,
        sn: int,
        id: int,
        prid: int | None = None,
        payload: bytes,
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.synch: bool = synch
        self.reliable: bool = reliable
        self.sn: int = sn
        self.id: int = id
        self.prid: int | None = prid
        self.payload: bytes = payload
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_a = self.prid is not None
        header = 0x07
        if self.synch:
            header |= 0x20
        if self.reliable:
            header |= 0x40
        if flag_a:
            header |= 0x80
        w.u8(header)
        w.nat(self.sn)
        w.nat(self.id)
        if flag_a:
            value = self.prid
            assert value is not None
            w.nat(value)
        w.nat(len(self.payload))
        w.raw(self.payload)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "StreamData"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["synch"] = self.synch
        fields["reliable"] = self.reliable
        fields["sn"] = self.sn
        fields["id"] = self.id
        if self.prid is not None:
            fields["prid"] = self.prid
        fields["payload"] = self.payload.hex()
        return fields


def read_stream_data(
    r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]
) -> StreamData:
    """Read the rest of StreamData."""
    synch = (header & 0x20) != 0
    reliable = (header & 0x40) != 0
    sn = r.nat()
    id = r.nat()
    prid: int | None = None
    if header & 0x80:
        prid = r.nat()
    payload = r.take(r.nat())
    return StreamData(
        synch=synch, reliable=reliable, sn=sn, id=id, prid=prid, payload=payload, markers=markers
    )


class BatchedSample(Message):
    """One sample of an attributed batch."""

    __slots__ = ("payload", "prid")

    NAME: ClassVar[str] = "BatchedSample"
    FIELDS: ClassVar[tuple[str, ...]] = ("prid", "payload")

    def __init__(self, *, prid: int, payload: bytes) -> None:
        """Make it from its fields, in wire order."""
        self.prid: int = prid
        self.payload: bytes = payload

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        w.nat(self.prid)
        w.nat(len(self.payload))
        w.raw(self.payload)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "BatchedSample"}
        fields["prid"] = self.prid
        fields["payload"] = self.payload.hex()
        return fields


def read_batched_sample(r: Reader) -> BatchedSample:
    """Read the rest of BatchedSample (a structure)."""
    prid = r.nat()
    payload = r.take(r.nat())
    return BatchedSample(prid=prid, payload=payload)


class BatchedData(Message):
    """Several samples of one resource, or of one selection with the resource of each."""

    __slots__ = ("attributed", "id", "markers", "payloads", "reliable", "samples", "sn", "synch")

    NAME: ClassVar[str] = "BatchedData"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "synch",
        "reliable",
        "attributed",
        "sn",
        "id",
        "payloads",
        "samples",
        "markers",
    )

    def __init__(
        self,
        *,
        synch: bool = False,
        reliable: bool = False,
        attributed: bool = False,
        sn: int,
        id: int,
        payloads: tuple[bytes, ...] = (),
        samples: tuple[BatchedSample, ...] = (),
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.synch: bool = synch
        self.reliable: bool = reliable
        self.attributed: bool = attributed
        self.sn: int = sn
        self.id: int = id
        self.payloads: tuple[bytes, ...] = payloads
        self.samples: tuple[BatchedSample, ...] = samples
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        header = 0x08
        if self.synch:
            header |= 0x20
        if self.reliable:
            header |= 0x40
        if self.attributed:
            header |= 0x80
        w.u8(header)
        w.nat(self.sn)
        w.nat(self.id)
        if not self.attributed:
            w.nat(len(self.payloads))
            for payload in self.payloads:
                w.nat(len(payload))
                w.raw(payload)
        elif len(self.payloads) > 0:
            raise EncodeError(
                f"BatchedData.payloads has no place if attributed is {self.attributed}: leave it out"
            )
        if self.attributed:
            w.nat(len(self.samples))
            for sample in self.samples:
                sample.write(w)
        elif len(self.samples) > 0:
            raise EncodeError(
                f"BatchedData.samples has no place if attributed is {self.attributed}: leave it out"
            )

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "BatchedData"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["synch"] = self.synch
        fields["reliable"] = self.reliable
        fields["attributed"] = self.attributed
        fields["sn"] = self.sn
        fields["id"] = self.id
        if not self.attributed:
            fields["payloads"] = [item.hex() for item in self.payloads]
        if self.attributed:
            fields["samples"] = [item.to_dict() for item in self.samples]
        return fields


def read_batched_data(
    r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]
) -> BatchedData:
    """Read the rest of BatchedData."""
    synch = (header & 0x20) != 0
    reliable = (header & 0x40) != 0
    attributed = (header & 0x80) != 0
    sn = r.nat()
    id = r.nat()
    payloads: tuple[bytes, ...] = ()
    if not attributed:
        start = r.pos
        payloads_count = r.nat()
        r.room(payloads_count, 1, start)
        payloads_list: list[bytes] = []
        for _ in range(payloads_count):
            payloads_list.append(r.take(r.nat()))
        payloads = tuple(payloads_list)
    samples: tuple[BatchedSample, ...] = ()
    if attributed:
        start = r.pos
        samples_count = r.nat()
        r.room(samples_count, 2, start)
        samples_list: list[BatchedSample] = []
        for _ in range(samples_count):
            samples_list.append(read_batched_sample(r))
        samples = tuple(samples_list)
    return BatchedData(
        synch=synch,
        reliable=reliable,
        attributed=attributed,
        sn=sn,
        id=id,
        payloads=payloads,
        samples=samples,
        markers=markers,
    )


class WriteData(Message):
    """A sample of a resource, by name."""

    __slots__ = ("markers", "payload", "reliable", "resource", "sn", "synch")

    NAME: ClassVar[str] = "WriteData"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "synch",
        "reliable",
        "sn",
        "resource",
        "payload",
        "markers",
    )

    def __init__(
        self,
        *,
        synch: bool = False,
        reliable: bool = False,
        sn: int,
        resource: str,
        payload: bytes,
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.synch: bool = synch
        self.reliable: bool = reliable
        self.sn: int = sn
        self.resource: str = resource
        self.payload: bytes = payload
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        header = 0x09
        if self.synch:
            header |= 0x20
        if self.reliable:
            header |= 0x40
        w.u8(header)
        w.nat(self.sn)
        encoded = w.utf8(self.resource)
        w.nat(len(encoded))
        w.raw(encoded)
        w.nat(len(self.payload))
        w.raw(self.payload)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "WriteData"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["synch"] = self.synch
        fields["reliable"] = self.reliable
        fields["sn"] = self.sn
        fields["resource"] = self.resource
        fields["payload"] = self.payload.hex()
        return fields


def read_write_data(
    r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]
) -> WriteData:
    """Read the rest of WriteData."""
    synch = (header & 0x20) != 0
    reliable = (header & 0x40) != 0
    sn = r.nat()
    resource = r.text(r.nat())
    payload = r.take(r.nat())
    return WriteData(
        synch=synch, reliable=reliable, sn=sn, resource=resource, payload=payload, markers=markers
    )


class Pull(Message):
    """Send me what you keep for me."""

    __slots__ = ("final", "id", "markers", "max_samples", "sn", "synch")

    NAME: ClassVar[str] = "Pull"
    FIELDS: ClassVar[tuple[str, ...]] = ("synch", "final", "sn", "id", "max_samples", "markers")

    def __init__(
        self,
        *,
        synch: bool = False,
        final: bool = False,
        sn: int,
        id: int,
        max_samples: int | None = None,
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.synch: bool = synch
        self.final: bool = final
        self.sn: int = sn
        self.id: int = id
        self.max_samples: int | None = max_samples
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        flag_n = self.max_samples is not None
        header = 0x0B
        if self.synch:
            header |= 0x20
        if flag_n:
            header |= 0x40
        if self.final:
            header |= 0x80
        w.u8(header)
        w.nat(self.sn)
        w.nat(self.id)
        if flag_n:
            value = self.max_samples
            assert value is not None
            w.nat(value)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Pull"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["synch"] = self.synch
        fields["final"] = self.final
        fields["sn"] = self.sn
        fields["id"] = self.id
        if self.max_samples is not None:
            fields["max_samples"] = self.max_samples
        return fields


def read_pull(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Pull:
    """Read the rest of Pull."""
    synch = (header & 0x20) != 0
    final = (header & 0x80) != 0
    sn = r.nat()
    id = r.nat()
    max_samples: int | None = None
    if header & 0x40:
        max_samples = r.nat()
    return Pull(synch=synch, final=final, sn=sn, id=id, max_samples=max_samples, markers=markers)


class Declare(Message):
    """Declarations, at once or as part of a transaction."""

    __slots__ = ("committed", "declarations", "markers", "sn", "synch")

    NAME: ClassVar[str] = "Declare"
    FIELDS: ClassVar[tuple[str, ...]] = ("synch", "committed", "sn", "declarations", "markers")

    def __init__(
        self,
        *,
        synch: bool = False,
        committed: bool = False,
        sn: int,
        declarations: tuple[
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
            | ForgetSelection,
            ...,
        ],
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.synch: bool = synch
        self.committed: bool = committed
        self.sn: int = sn
        self.declarations: tuple[
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
            | ForgetSelection,
            ...,
        ] = declarations
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        if self.markers:
            write_markers(self.markers, w)
        header = 0x06
        if self.synch:
            header |= 0x20
        if self.committed:
            header |= 0x40
        w.u8(header)
        w.nat(self.sn)
        w.nat(len(self.declarations))
        for declaration in self.declarations:
            item: Message = declaration
            item.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Declare"}
        if self.markers:
            fields["markers"] = [marker.to_dict() for marker in self.markers]
        fields["synch"] = self.synch
        fields["committed"] = self.committed
        fields["sn"] = self.sn
        fields["declarations"] = [item.to_dict() for item in self.declarations]
        return fields


def read_declare(r: Reader, header: int, markers: tuple[Conduit | Frag | RSpace, ...]) -> Declare:
    """Read the rest of Declare."""
    synch = (header & 0x20) != 0
    committed = (header & 0x40) != 0
    sn = r.nat()
    start = r.pos
    declarations_count = r.nat()
    r.room(declarations_count, 2, start)
    declarations_list: list[
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
    ] = []
    for _ in range(declarations_count):
        declarations_list.append(read_declare_body(r))
    declarations = tuple(declarations_list)
    return Declare(
        synch=synch, committed=committed, sn=sn, declarations=declarations, markers=markers
    )


class Resource(Message):
    """This number stands for that name."""

    __slots__ = ("properties", "rid", "uri")

    NAME: ClassVar[str] = "Resource"
    FIELDS: ClassVar[tuple[str, ...]] = ("rid", "uri", "properties")

    def __init__(self, *, rid: int, uri: str, properties: tuple[Property, ...] = ()) -> None:
        """Make it from its fields, in wire order."""
        self.rid: int = rid
        self.uri: str = uri
        self.properties: tuple[Property, ...] = properties

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_p = len(self.properties) > 0
        header = 0x01
        if flag_p:
            header |= 0x20
        w.u8(header)
        w.nat(self.rid)
        encoded = w.utf8(self.uri)
        w.nat(len(encoded))
        w.raw(encoded)
        if flag_p:
            w.nat(len(self.properties))
            for propertie in self.properties:
                propertie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Resource"}
        fields["rid"] = self.rid
        fields["uri"] = self.uri
        if len(self.properties) > 0:
            fields["properties"] = [item.to_dict() for item in self.properties]
        return fields


def read_resource(r: Reader, header: int) -> Resource:
    """Read the rest of Resource."""
    rid = r.nat()
    uri = r.text(r.nat())
    properties: tuple[Property, ...] = ()
    if header & 0x20:
        start = r.pos
        properties_count = r.nat()
        r.room(properties_count, 2, start)
        properties_list: list[Property] = []
        for _ in range(properties_count):
            properties_list.append(read_property(r))
        properties = tuple(properties_list)
    return Resource(rid=rid, uri=uri, properties=properties)


class Publisher(Message):
    """I publish this."""

    __slots__ = ("properties", "rid")

    NAME: ClassVar[str] = "Publisher"
    FIELDS: ClassVar[tuple[str, ...]] = ("rid", "properties")

    def __init__(self, *, rid: int, properties: tuple[Property, ...] = ()) -> None:
        """Make it from its fields, in wire order."""
        self.rid: int = rid
        self.properties: tuple[Property, ...] = properties

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_p = len(self.properties) > 0
        header = 0x02
        if flag_p:
            header |= 0x20
        w.u8(header)
        w.nat(self.rid)
        if flag_p:
            w.nat(len(self.properties))
            for propertie in self.properties:
                propertie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Publisher"}
        fields["rid"] = self.rid
        if len(self.properties) > 0:
            fields["properties"] = [item.to_dict() for item in self.properties]
        return fields


def read_publisher(r: Reader, header: int) -> Publisher:
    """Read the rest of Publisher."""
    rid = r.nat()
    properties: tuple[Property, ...] = ()
    if header & 0x20:
        start = r.pos
        properties_count = r.nat()
        r.room(properties_count, 2, start)
        properties_list: list[Property] = []
        for _ in range(properties_count):
            properties_list.append(read_property(r))
        properties = tuple(properties_list)
    return Publisher(rid=rid, properties=properties)


class Subscriber(Message):
    """I want this."""

    __slots__ = ("duration", "id", "mode", "origin", "period", "properties")

    NAME: ClassVar[str] = "Subscriber"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "mode", "origin", "period", "duration", "properties")

    def __init__(
        self,
        *,
        id: int,
        mode: int,
        origin: int = 0,
        period: int = 0,
        duration: int = 0,
        properties: tuple[Property, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.mode: int = mode
        self.origin: int = origin
        self.period: int = period
        self.duration: int = duration
        self.properties: tuple[Property, ...] = properties

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_p = len(self.properties) > 0
        header = 0x03
        if flag_p:
            header |= 0x20
        w.u8(header)
        w.nat(self.id)
        if self.mode not in (1, 2, 3, 4):
            raise EncodeError(f"Subscriber: {self.mode} is not one of (1, 2, 3, 4)")
        w.u8(self.mode)
        if 3 <= self.mode <= 4:
            w.nat(self.origin)
        elif self.origin != 0:
            raise EncodeError(
                f"Subscriber.origin has no place if mode is {self.mode}: leave it out"
            )
        if 3 <= self.mode <= 4:
            w.nat(self.period)
        elif self.period != 0:
            raise EncodeError(
                f"Subscriber.period has no place if mode is {self.mode}: leave it out"
            )
        if 3 <= self.mode <= 4:
            w.nat(self.duration)
        elif self.duration != 0:
            raise EncodeError(
                f"Subscriber.duration has no place if mode is {self.mode}: leave it out"
            )
        if flag_p:
            w.nat(len(self.properties))
            for propertie in self.properties:
                propertie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Subscriber"}
        fields["id"] = self.id
        fields["mode"] = self.mode
        if 3 <= self.mode <= 4:
            fields["origin"] = self.origin
        if 3 <= self.mode <= 4:
            fields["period"] = self.period
        if 3 <= self.mode <= 4:
            fields["duration"] = self.duration
        if len(self.properties) > 0:
            fields["properties"] = [item.to_dict() for item in self.properties]
        return fields


def read_subscriber(r: Reader, header: int) -> Subscriber:
    """Read the rest of Subscriber."""
    id = r.nat()
    mode = r.u8()
    if mode not in (1, 2, 3, 4):
        raise DecodeError(
            f"Subscriber.mode is {mode} before offset {r.pos}: one of (1, 2, 3, 4)", r.pos
        )
    origin: int = 0
    if 3 <= mode <= 4:
        origin = r.nat()
    period: int = 0
    if 3 <= mode <= 4:
        period = r.nat()
    duration: int = 0
    if 3 <= mode <= 4:
        duration = r.nat()
    properties: tuple[Property, ...] = ()
    if header & 0x20:
        start = r.pos
        properties_count = r.nat()
        r.room(properties_count, 2, start)
        properties_list: list[Property] = []
        for _ in range(properties_count):
            properties_list.append(read_property(r))
        properties = tuple(properties_list)
    return Subscriber(
        id=id, mode=mode, origin=origin, period=period, duration=duration, properties=properties
    )


class Selection(Message):
    """This number stands for that query."""

    __slots__ = ("is_global", "properties", "query", "sid")

    NAME: ClassVar[str] = "Selection"
    FIELDS: ClassVar[tuple[str, ...]] = ("is_global", "sid", "query", "properties")

    def __init__(
        self,
        *,
        is_global: bool = False,
        sid: int,
        query: str,
        properties: tuple[Property, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.is_global: bool = is_global
        self.sid: int = sid
        self.query: str = query
        self.properties: tuple[Property, ...] = properties

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_p = len(self.properties) > 0
        header = 0x04
        if flag_p:
            header |= 0x20
        if self.is_global:
            header |= 0x80
        w.u8(header)
        w.nat(self.sid)
        encoded = w.utf8(self.query)
        w.nat(len(encoded))
        w.raw(encoded)
        if flag_p:
            w.nat(len(self.properties))
            for propertie in self.properties:
                propertie.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Selection"}
        fields["is_global"] = self.is_global
        fields["sid"] = self.sid
        fields["query"] = self.query
        if len(self.properties) > 0:
            fields["properties"] = [item.to_dict() for item in self.properties]
        return fields


def read_selection(r: Reader, header: int) -> Selection:
    """Read the rest of Selection."""
    is_global = (header & 0x80) != 0
    sid = r.nat()
    query = r.text(r.nat())
    properties: tuple[Property, ...] = ()
    if header & 0x20:
        start = r.pos
        properties_count = r.nat()
        r.room(properties_count, 2, start)
        properties_list: list[Property] = []
        for _ in range(properties_count):
            properties_list.append(read_property(r))
        properties = tuple(properties_list)
    return Selection(is_global=is_global, sid=sid, query=query, properties=properties)


class Binding(Message):
    """This selection has that number, too."""

    __slots__ = ("is_global", "new_id", "old_id")

    NAME: ClassVar[str] = "Binding"
    FIELDS: ClassVar[tuple[str, ...]] = ("is_global", "old_id", "new_id")

    def __init__(self, *, is_global: bool = False, old_id: int, new_id: int) -> None:
        """Make it from its fields, in wire order."""
        self.is_global: bool = is_global
        self.old_id: int = old_id
        self.new_id: int = new_id

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x05
        if self.is_global:
            header |= 0x80
        w.u8(header)
        w.nat(self.old_id)
        w.nat(self.new_id)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Binding"}
        fields["is_global"] = self.is_global
        fields["old_id"] = self.old_id
        fields["new_id"] = self.new_id
        return fields


def read_binding(r: Reader, header: int) -> Binding:
    """Read the rest of Binding."""
    is_global = (header & 0x80) != 0
    old_id = r.nat()
    new_id = r.nat()
    return Binding(is_global=is_global, old_id=old_id, new_id=new_id)


class Commit(Message):
    """Put into force all that was declared."""

    __slots__ = ("commit_id",)

    NAME: ClassVar[str] = "Commit"
    FIELDS: ClassVar[tuple[str, ...]] = ("commit_id",)

    def __init__(self, *, commit_id: int) -> None:
        """Make it from its fields, in wire order."""
        self.commit_id: int = commit_id

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x06
        w.u8(header)
        w.u8(self.commit_id)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Commit"}
        fields["commit_id"] = self.commit_id
        return fields


def read_commit(r: Reader, header: int) -> Commit:
    """Read the rest of Commit."""
    commit_id = r.u8()
    return Commit(commit_id=commit_id)


class Result(Message):
    """What came of a commit."""

    __slots__ = ("commit_id", "id", "status")

    NAME: ClassVar[str] = "Result"
    FIELDS: ClassVar[tuple[str, ...]] = ("commit_id", "status", "id")

    def __init__(self, *, commit_id: int, status: int, id: int = 0) -> None:
        """Make it from its fields, in wire order."""
        self.commit_id: int = commit_id
        self.status: int = status
        self.id: int = id

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x07
        w.u8(header)
        w.u8(self.commit_id)
        w.u8(self.status)
        if 1 <= self.status <= 254:
            w.nat(self.id)
        elif self.id != 0:
            raise EncodeError(f"Result.id has no place if status is {self.status}: leave it out")

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Result"}
        fields["commit_id"] = self.commit_id
        fields["status"] = self.status
        if 1 <= self.status <= 254:
            fields["id"] = self.id
        return fields


def read_result(r: Reader, header: int) -> Result:
    """Read the rest of Result."""
    commit_id = r.u8()
    status = r.u8()
    id: int = 0
    if 1 <= status <= 254:
        id = r.nat()
    return Result(commit_id=commit_id, status=status, id=id)


class ForgetResource(Message):
    """The number no longer stands for a name."""

    __slots__ = ("rid",)

    NAME: ClassVar[str] = "ForgetResource"
    FIELDS: ClassVar[tuple[str, ...]] = ("rid",)

    def __init__(self, *, rid: int) -> None:
        """Make it from its fields, in wire order."""
        self.rid: int = rid

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x08
        w.u8(header)
        w.nat(self.rid)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "ForgetResource"}
        fields["rid"] = self.rid
        return fields


def read_forget_resource(r: Reader, header: int) -> ForgetResource:
    """Read the rest of ForgetResource."""
    rid = r.nat()
    return ForgetResource(rid=rid)


class ForgetPublisher(Message):
    """I no longer publish this."""

    __slots__ = ("id",)

    NAME: ClassVar[str] = "ForgetPublisher"
    FIELDS: ClassVar[tuple[str, ...]] = ("id",)

    def __init__(self, *, id: int) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x09
        w.u8(header)
        w.nat(self.id)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "ForgetPublisher"}
        fields["id"] = self.id
        return fields


def read_forget_publisher(r: Reader, header: int) -> ForgetPublisher:
    """Read the rest of ForgetPublisher."""
    id = r.nat()
    return ForgetPublisher(id=id)


class ForgetSubscriber(Message):
    """I no longer want this."""

    __slots__ = ("id",)

    NAME: ClassVar[str] = "ForgetSubscriber"
    FIELDS: ClassVar[tuple[str, ...]] = ("id",)

    def __init__(self, *, id: int) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x0A
        w.u8(header)
        w.nat(self.id)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "ForgetSubscriber"}
        fields["id"] = self.id
        return fields


def read_forget_subscriber(r: Reader, header: int) -> ForgetSubscriber:
    """Read the rest of ForgetSubscriber."""
    id = r.nat()
    return ForgetSubscriber(id=id)


class ForgetSelection(Message):
    """The number no longer stands for a query."""

    __slots__ = ("sid",)

    NAME: ClassVar[str] = "ForgetSelection"
    FIELDS: ClassVar[tuple[str, ...]] = ("sid",)

    def __init__(self, *, sid: int) -> None:
        """Make it from its fields, in wire order."""
        self.sid: int = sid

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x0B
        w.u8(header)
        w.nat(self.sid)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "ForgetSelection"}
        fields["sid"] = self.sid
        return fields


def read_forget_selection(r: Reader, header: int) -> ForgetSelection:
    """Read the rest of ForgetSelection."""
    sid = r.nat()
    return ForgetSelection(sid=sid)


def read_declare_body(
    r: Reader,
) -> (
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
):
    """Read one message: Resource | Publisher | Subscriber | Selection | Binding | Commit | Result | ForgetResource | ForgetPublisher | ForgetSubscriber | ForgetSelection."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x05:
        return read_binding(r, header)
    if kind == 0x01:
        return read_resource(r, header)
    if kind == 0x02:
        return read_publisher(r, header)
    if kind == 0x03:
        return read_subscriber(r, header)
    if kind == 0x04:
        return read_selection(r, header)
    if kind == 0x06:
        return read_commit(r, header)
    if kind == 0x07:
        return read_result(r, header)
    if kind == 0x08:
        return read_forget_resource(r, header)
    if kind == 0x09:
        return read_forget_publisher(r, header)
    if kind == 0x0A:
        return read_forget_subscriber(r, header)
    if kind == 0x0B:
        return read_forget_selection(r, header)
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: Resource 0x01, Publisher 0x02, Subscriber 0x03, Selection 0x04, Binding 0x05, Commit 0x06, Result 0x07, ForgetResource 0x08, ForgetPublisher 0x09, ForgetSubscriber 0x0a, ForgetSelection 0x0b",
        r.pos - 1,
    )


def read_message(
    r: Reader,
) -> (
    StreamData
    | WriteData
    | Scout
    | Hello
    | Open
    | Accept
    | Close
    | Declare
    | BatchedData
    | Pull
    | PingPong
    | Synch
    | AckNack
    | KeepAlive
    | Migrate
):
    """Read one message and the markers that decorate it."""
    header = r.u8()
    kind = header & 0x1F
    markers: tuple[Conduit | Frag | RSpace, ...] = ()
    if kind == 19 or kind == 18 or kind == 24:
        markers = read_markers(r, header)
        header = r.u8()
        kind = header & 0x1F
    if kind == 7:
        return read_stream_data(r, header, markers)
    if kind == 9:
        return read_write_data(r, header, markers)
    if kind == 1:
        return read_scout(r, header, markers)
    if kind == 2:
        return read_hello(r, header, markers)
    if kind == 3:
        return read_open(r, header, markers)
    if kind == 4:
        return read_accept(r, header, markers)
    if kind == 5:
        return read_close(r, header, markers)
    if kind == 6:
        return read_declare(r, header, markers)
    if kind == 8:
        return read_batched_data(r, header, markers)
    if kind == 11:
        return read_pull(r, header, markers)
    if kind == 12:
        return read_ping_pong(r, header, markers)
    if kind == 14:
        return read_synch(r, header, markers)
    if kind == 15:
        return read_ack_nack(r, header, markers)
    if kind == 16:
        return read_keep_alive(r, header, markers)
    if kind == 20:
        return read_migrate(r, header, markers)
    if kind == 13:
        return read_ping_pong(r, 0x2C, markers)
    raise DecodeError(
        f"the message {kind} at offset {r.pos - 1} is none of: Scout 1, Hello 2, Open 3, Accept 4, Close 5, Declare 6, StreamData 7, BatchedData 8, WriteData 9, Pull 11, PingPong 12, Synch 14, AckNack 15, KeepAlive 16, Migrate 20",
        r.pos - 1,
    )


def read_markers(r: Reader, header: int) -> tuple[Conduit | Frag | RSpace, ...]:
    """Read the markers that begin with `header`; the next byte begins their message."""
    start = r.pos - 1
    markers: list[Conduit | Frag | RSpace] = []
    while True:
        kind = header & 0x1F
        if kind == 19:
            markers.append(read_conduit(r, header))
        elif kind == 18:
            markers.append(read_frag(r, header))
        elif kind == 24:
            markers.append(read_r_space(r, header))
        else:
            r.pos -= 1
            return tuple(markers)
        if len(markers) > 8:
            raise DecodeError(f"the message at offset {start} has more than 8 markers", start)
        if r.pos >= r.end:
            raise DecodeError(
                f"the marker at offset {start} decorates nothing: the bytes end at {r.end}", start
            )
        header = r.u8()


def write_markers(markers: tuple[Conduit | Frag | RSpace, ...], w: Writer) -> None:
    """Append the markers of a message, in their order."""
    if len(markers) > 8:
        raise EncodeError(f"a message has at most 8 markers, not {len(markers)}")
    for marker in markers:
        decoration: Message = marker
        decoration.write(w)

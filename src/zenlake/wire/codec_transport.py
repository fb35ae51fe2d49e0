"""Transport messages of Zenoh 1.x: classes and codec.

Generated from `wire/declared/transport.py` by `make wire`. Do not edit: change the declarations.
"""

# ruff: noqa: SIM102, SIM103, PLR, E501

from __future__ import annotations

from typing import ClassVar

from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.codec_network import read_network, skip_network
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message, zid_text


class InitSyn(Message):
    """Here I am: the first message of the side that connects."""

    __slots__ = (
        "auth",
        "batch_size",
        "compression",
        "low_latency",
        "multilink",
        "patch",
        "qos",
        "qos_link",
        "region_name",
        "resolution",
        "shm",
        "version",
        "whatami",
        "zid",
    )

    NAME: ClassVar[str] = "InitSyn"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "version",
        "whatami",
        "zid",
        "resolution",
        "batch_size",
        "qos",
        "qos_link",
        "shm",
        "auth",
        "multilink",
        "low_latency",
        "compression",
        "patch",
        "region_name",
    )

    def __init__(
        self,
        *,
        version: int,
        whatami: int,
        zid: bytes,
        resolution: int = 10,
        batch_size: int = 65535,
        qos: bool = False,
        qos_link: int = 0,
        shm: bytes | None = None,
        auth: bytes | None = None,
        multilink: bytes | None = None,
        low_latency: bool = False,
        compression: bool = False,
        patch: int = 0,
        region_name: bytes | None = None,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.version: int = version
        self.whatami: int = whatami
        self.zid: bytes = zid
        self.resolution: int = resolution
        self.batch_size: int = batch_size
        self.qos: bool = qos
        self.qos_link: int = qos_link
        self.shm: bytes | None = shm
        self.auth: bytes | None = auth
        self.multilink: bytes | None = multilink
        self.low_latency: bool = low_latency
        self.compression: bool = compression
        self.patch: int = patch
        self.region_name: bytes | None = region_name

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_s = self.resolution != 10 or self.batch_size != 65535
        header = 0x01
        if flag_s:
            header |= 0x40
        more = 0
        if self.qos:
            more += 1
        if self.qos_link != 0:
            more += 1
        if self.shm is not None:
            more += 1
        if self.auth is not None:
            more += 1
        if self.multilink is not None:
            more += 1
        if self.low_latency:
            more += 1
        if self.compression:
            more += 1
        if self.patch != 0:
            more += 1
        if self.region_name is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.u8(self.version)
        if self.whatami not in (0, 1, 2):
            raise EncodeError(f"InitSyn.whatami is {self.whatami}: one of (0, 1, 2)")
        if not 1 <= len(self.zid) <= 16:
            raise EncodeError(f"a node id has 1 to 16 bytes, not {len(self.zid)}")
        w.u8(((len(self.zid) - 1) << 4) | self.whatami)
        w.zid(self.zid)
        if flag_s:
            w.vle(self.resolution, 0x3F)
        if flag_s:
            w.u16(self.batch_size)
        if self.qos:
            more -= 1
            w.u8(0x01 | (0x80 if more else 0))
        if self.qos_link != 0:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos_link, 0xFFFFFFFFFFFFFFFF)
        if self.shm is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            w.sized(self.shm, 0xFFFFFFFF)
        if self.auth is not None:
            more -= 1
            w.u8(0x43 | (0x80 if more else 0))
            w.sized(self.auth, 0xFFFFFFFF)
        if self.multilink is not None:
            more -= 1
            w.u8(0x44 | (0x80 if more else 0))
            w.sized(self.multilink, 0xFFFFFFFF)
        if self.low_latency:
            more -= 1
            w.u8(0x05 | (0x80 if more else 0))
        if self.compression:
            more -= 1
            w.u8(0x06 | (0x80 if more else 0))
        if self.patch != 0:
            more -= 1
            w.u8(0x27 | (0x80 if more else 0))
            w.vle(self.patch, 0xFF)
        if self.region_name is not None:
            more -= 1
            w.u8(0x48 | (0x80 if more else 0))
            w.sized(self.region_name, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "InitSyn"}
        fields["version"] = self.version
        fields["whatami"] = self.whatami
        fields["zid"] = zid_text(self.zid)
        if self.resolution != 10:
            fields["resolution"] = self.resolution
        if self.batch_size != 65535:
            fields["batch_size"] = self.batch_size
        if self.qos:
            fields["qos"] = self.qos
        if self.qos_link != 0:
            fields["qos_link"] = self.qos_link
        if self.shm is not None:
            fields["shm"] = self.shm.hex()
        if self.auth is not None:
            fields["auth"] = self.auth.hex()
        if self.multilink is not None:
            fields["multilink"] = self.multilink.hex()
        if self.low_latency:
            fields["low_latency"] = self.low_latency
        if self.compression:
            fields["compression"] = self.compression
        if self.patch != 0:
            fields["patch"] = self.patch
        if self.region_name is not None:
            fields["region_name"] = self.region_name.hex()
        return fields


def read_init_syn(r: Reader, header: int) -> InitSyn:
    """Read the rest of InitSyn."""
    version = r.u8()
    packed = r.u8()
    whatami = packed & 0x03
    if whatami not in (0, 1, 2):
        raise DecodeError(
            f"InitSyn.whatami is {whatami} before offset {r.pos}: one of (0, 1, 2)", r.pos
        )
    zid = r.zid((packed >> 4) + 1)
    resolution: int = 10
    if header & 0x40:
        resolution = r.u8() & 0x3F
    batch_size: int = 65535
    if header & 0x40:
        batch_size = r.u16()
    qos: bool = False
    qos_link: int = 0
    shm: bytes | None = None
    auth: bytes | None = None
    multilink: bytes | None = None
    low_latency: bool = False
    compression: bool = False
    patch: int = 0
    region_name: bytes | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x01:
                qos = True
            elif kind == 0x21:
                qos_link = r.vle(0xFFFFFFFFFFFFFFFF)
            elif kind == 0x42:
                shm = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x43:
                auth = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x44:
                multilink = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x05:
                low_latency = True
            elif kind == 0x06:
                compression = True
            elif kind == 0x27:
                patch = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x48:
                region_name = r.take(r.vle(0xFFFFFFFF))
            else:
                r.skip_extension(tag, "InitSyn")
            if tag < 0x80:
                break
    return InitSyn(
        version=version,
        whatami=whatami,
        zid=zid,
        resolution=resolution,
        batch_size=batch_size,
        qos=qos,
        qos_link=qos_link,
        shm=shm,
        auth=auth,
        multilink=multilink,
        low_latency=low_latency,
        compression=compression,
        patch=patch,
        region_name=region_name,
    )


def skip_init_syn(r: Reader, header: int) -> None:
    """Pass over the rest of InitSyn."""
    r.skip(1)
    packed = r.u8()
    r.skip((packed >> 4) + 1)
    if header & 0x40:
        r.skip(1)
    if header & 0x40:
        r.skip(2)
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "InitSyn")
            if tag < 0x80:
                break


class InitAck(Message):
    """Welcome; show me this cookie when you open."""

    __slots__ = (
        "auth",
        "batch_size",
        "compression",
        "cookie",
        "low_latency",
        "multilink",
        "patch",
        "qos",
        "qos_link",
        "region_name",
        "resolution",
        "shm",
        "version",
        "whatami",
        "zid",
    )

    NAME: ClassVar[str] = "InitAck"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "version",
        "whatami",
        "zid",
        "resolution",
        "batch_size",
        "cookie",
        "qos",
        "qos_link",
        "shm",
        "auth",
        "multilink",
        "low_latency",
        "compression",
        "patch",
        "region_name",
    )

    def __init__(
        self,
        *,
        version: int,
        whatami: int,
        zid: bytes,
        resolution: int = 10,
        batch_size: int = 65535,
        cookie: bytes,
        qos: bool = False,
        qos_link: int = 0,
        shm: bytes | None = None,
        auth: bytes | None = None,
        multilink: bytes | None = None,
        low_latency: bool = False,
        compression: bool = False,
        patch: int = 0,
        region_name: bytes | None = None,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.version: int = version
        self.whatami: int = whatami
        self.zid: bytes = zid
        self.resolution: int = resolution
        self.batch_size: int = batch_size
        self.cookie: bytes = cookie
        self.qos: bool = qos
        self.qos_link: int = qos_link
        self.shm: bytes | None = shm
        self.auth: bytes | None = auth
        self.multilink: bytes | None = multilink
        self.low_latency: bool = low_latency
        self.compression: bool = compression
        self.patch: int = patch
        self.region_name: bytes | None = region_name

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_s = self.resolution != 10 or self.batch_size != 65535
        header = 0x21
        if flag_s:
            header |= 0x40
        more = 0
        if self.qos:
            more += 1
        if self.qos_link != 0:
            more += 1
        if self.shm is not None:
            more += 1
        if self.auth is not None:
            more += 1
        if self.multilink is not None:
            more += 1
        if self.low_latency:
            more += 1
        if self.compression:
            more += 1
        if self.patch != 0:
            more += 1
        if self.region_name is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.u8(self.version)
        if self.whatami not in (0, 1, 2):
            raise EncodeError(f"InitAck.whatami is {self.whatami}: one of (0, 1, 2)")
        if not 1 <= len(self.zid) <= 16:
            raise EncodeError(f"a node id has 1 to 16 bytes, not {len(self.zid)}")
        w.u8(((len(self.zid) - 1) << 4) | self.whatami)
        w.zid(self.zid)
        if flag_s:
            w.vle(self.resolution, 0x3F)
        if flag_s:
            w.u16(self.batch_size)
        w.sized(self.cookie, 0xFFFF)
        if self.qos:
            more -= 1
            w.u8(0x01 | (0x80 if more else 0))
        if self.qos_link != 0:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.qos_link, 0xFFFFFFFFFFFFFFFF)
        if self.shm is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            w.sized(self.shm, 0xFFFFFFFF)
        if self.auth is not None:
            more -= 1
            w.u8(0x43 | (0x80 if more else 0))
            w.sized(self.auth, 0xFFFFFFFF)
        if self.multilink is not None:
            more -= 1
            w.u8(0x44 | (0x80 if more else 0))
            w.sized(self.multilink, 0xFFFFFFFF)
        if self.low_latency:
            more -= 1
            w.u8(0x05 | (0x80 if more else 0))
        if self.compression:
            more -= 1
            w.u8(0x06 | (0x80 if more else 0))
        if self.patch != 0:
            more -= 1
            w.u8(0x27 | (0x80 if more else 0))
            w.vle(self.patch, 0xFF)
        if self.region_name is not None:
            more -= 1
            w.u8(0x48 | (0x80 if more else 0))
            w.sized(self.region_name, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "InitAck"}
        fields["version"] = self.version
        fields["whatami"] = self.whatami
        fields["zid"] = zid_text(self.zid)
        if self.resolution != 10:
            fields["resolution"] = self.resolution
        if self.batch_size != 65535:
            fields["batch_size"] = self.batch_size
        fields["cookie"] = self.cookie.hex()
        if self.qos:
            fields["qos"] = self.qos
        if self.qos_link != 0:
            fields["qos_link"] = self.qos_link
        if self.shm is not None:
            fields["shm"] = self.shm.hex()
        if self.auth is not None:
            fields["auth"] = self.auth.hex()
        if self.multilink is not None:
            fields["multilink"] = self.multilink.hex()
        if self.low_latency:
            fields["low_latency"] = self.low_latency
        if self.compression:
            fields["compression"] = self.compression
        if self.patch != 0:
            fields["patch"] = self.patch
        if self.region_name is not None:
            fields["region_name"] = self.region_name.hex()
        return fields


def read_init_ack(r: Reader, header: int) -> InitAck:
    """Read the rest of InitAck."""
    version = r.u8()
    packed = r.u8()
    whatami = packed & 0x03
    if whatami not in (0, 1, 2):
        raise DecodeError(
            f"InitAck.whatami is {whatami} before offset {r.pos}: one of (0, 1, 2)", r.pos
        )
    zid = r.zid((packed >> 4) + 1)
    resolution: int = 10
    if header & 0x40:
        resolution = r.u8() & 0x3F
    batch_size: int = 65535
    if header & 0x40:
        batch_size = r.u16()
    cookie = r.take(r.vle(0xFFFF))
    qos: bool = False
    qos_link: int = 0
    shm: bytes | None = None
    auth: bytes | None = None
    multilink: bytes | None = None
    low_latency: bool = False
    compression: bool = False
    patch: int = 0
    region_name: bytes | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x01:
                qos = True
            elif kind == 0x21:
                qos_link = r.vle(0xFFFFFFFFFFFFFFFF)
            elif kind == 0x42:
                shm = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x43:
                auth = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x44:
                multilink = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x05:
                low_latency = True
            elif kind == 0x06:
                compression = True
            elif kind == 0x27:
                patch = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            elif kind == 0x48:
                region_name = r.take(r.vle(0xFFFFFFFF))
            else:
                r.skip_extension(tag, "InitAck")
            if tag < 0x80:
                break
    return InitAck(
        version=version,
        whatami=whatami,
        zid=zid,
        resolution=resolution,
        batch_size=batch_size,
        cookie=cookie,
        qos=qos,
        qos_link=qos_link,
        shm=shm,
        auth=auth,
        multilink=multilink,
        low_latency=low_latency,
        compression=compression,
        patch=patch,
        region_name=region_name,
    )


def skip_init_ack(r: Reader, header: int) -> None:
    """Pass over the rest of InitAck."""
    r.skip(1)
    packed = r.u8()
    r.skip((packed >> 4) + 1)
    if header & 0x40:
        r.skip(1)
    if header & 0x40:
        r.skip(2)
    r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "InitAck")
            if tag < 0x80:
                break


class OpenSyn(Message):
    """Let us begin: my lease, my first sequence number, your cookie."""

    __slots__ = (
        "auth",
        "compression",
        "cookie",
        "initial_sn",
        "lease",
        "low_latency",
        "multilink",
        "qos",
        "remote_bound",
        "shm",
    )

    NAME: ClassVar[str] = "OpenSyn"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "lease",
        "initial_sn",
        "cookie",
        "qos",
        "shm",
        "auth",
        "multilink",
        "low_latency",
        "compression",
        "remote_bound",
    )

    def __init__(
        self,
        *,
        lease: int,
        initial_sn: int,
        cookie: bytes,
        qos: bool = False,
        shm: bytes | None = None,
        auth: bytes | None = None,
        multilink: bytes | None = None,
        low_latency: bool = False,
        compression: bool = False,
        remote_bound: int | None = None,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.lease: int = lease
        self.initial_sn: int = initial_sn
        self.cookie: bytes = cookie
        self.qos: bool = qos
        self.shm: bytes | None = shm
        self.auth: bytes | None = auth
        self.multilink: bytes | None = multilink
        self.low_latency: bool = low_latency
        self.compression: bool = compression
        self.remote_bound: int | None = remote_bound

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x02
        if self.lease % 1000 == 0:
            header |= 0x40
        more = 0
        if self.qos:
            more += 1
        if self.shm is not None:
            more += 1
        if self.auth is not None:
            more += 1
        if self.multilink is not None:
            more += 1
        if self.low_latency:
            more += 1
        if self.compression:
            more += 1
        if self.remote_bound is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.lease // 1000 if self.lease % 1000 == 0 else self.lease, 0xFFFFFFFFFFFFFFFF)
        w.vle(self.initial_sn, 0xFFFFFFFF)
        w.sized(self.cookie, 0xFFFF)
        if self.qos:
            more -= 1
            w.u8(0x01 | (0x80 if more else 0))
        if self.shm is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            w.sized(self.shm, 0xFFFFFFFF)
        if self.auth is not None:
            more -= 1
            w.u8(0x43 | (0x80 if more else 0))
            w.sized(self.auth, 0xFFFFFFFF)
        if self.multilink is not None:
            more -= 1
            w.u8(0x44 | (0x80 if more else 0))
            w.sized(self.multilink, 0xFFFFFFFF)
        if self.low_latency:
            more -= 1
            w.u8(0x05 | (0x80 if more else 0))
        if self.compression:
            more -= 1
            w.u8(0x06 | (0x80 if more else 0))
        if self.remote_bound is not None:
            more -= 1
            w.u8(0x27 | (0x80 if more else 0))
            if self.remote_bound not in (0, 1):
                raise EncodeError(f"OpenSyn: {self.remote_bound} is not one of (0, 1)")
            w.vle(self.remote_bound, 0xFFFFFFFFFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "OpenSyn"}
        fields["lease"] = self.lease
        fields["initial_sn"] = self.initial_sn
        fields["cookie"] = self.cookie.hex()
        if self.qos:
            fields["qos"] = self.qos
        if self.shm is not None:
            fields["shm"] = self.shm.hex()
        if self.auth is not None:
            fields["auth"] = self.auth.hex()
        if self.multilink is not None:
            fields["multilink"] = self.multilink.hex()
        if self.low_latency:
            fields["low_latency"] = self.low_latency
        if self.compression:
            fields["compression"] = self.compression
        if self.remote_bound is not None:
            fields["remote_bound"] = self.remote_bound
        return fields


def read_open_syn(r: Reader, header: int) -> OpenSyn:
    """Read the rest of OpenSyn."""
    lease = r.vle(0xFFFFFFFFFFFFFFFF)
    if header & 0x40:
        lease *= 1000
    initial_sn = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    cookie = r.take(r.vle(0xFFFF))
    qos: bool = False
    shm: bytes | None = None
    auth: bytes | None = None
    multilink: bytes | None = None
    low_latency: bool = False
    compression: bool = False
    remote_bound: int | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x01:
                qos = True
            elif kind == 0x42:
                shm = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x43:
                auth = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x44:
                multilink = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x05:
                low_latency = True
            elif kind == 0x06:
                compression = True
            elif kind == 0x27:
                remote_bound = r.vle(0xFFFFFFFFFFFFFFFF)
                if remote_bound not in (0, 1):
                    raise DecodeError(
                        f"OpenSyn.remote_bound is {remote_bound} before offset {r.pos}: one of (0, 1)",
                        r.pos,
                    )
            else:
                r.skip_extension(tag, "OpenSyn")
            if tag < 0x80:
                break
    return OpenSyn(
        lease=lease,
        initial_sn=initial_sn,
        cookie=cookie,
        qos=qos,
        shm=shm,
        auth=auth,
        multilink=multilink,
        low_latency=low_latency,
        compression=compression,
        remote_bound=remote_bound,
    )


def skip_open_syn(r: Reader, header: int) -> None:
    """Pass over the rest of OpenSyn."""
    r.skip_vle()
    r.skip_vle()
    r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "OpenSyn")
            if tag < 0x80:
                break


class OpenAck(Message):
    """We have begun."""

    __slots__ = (
        "auth",
        "compression",
        "initial_sn",
        "lease",
        "low_latency",
        "multilink",
        "qos",
        "remote_bound",
        "shm",
    )

    NAME: ClassVar[str] = "OpenAck"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "lease",
        "initial_sn",
        "qos",
        "shm",
        "auth",
        "multilink",
        "low_latency",
        "compression",
        "remote_bound",
    )

    def __init__(
        self,
        *,
        lease: int,
        initial_sn: int,
        qos: bool = False,
        shm: bytes | None = None,
        auth: bytes | None = None,
        multilink: bool = False,
        low_latency: bool = False,
        compression: bool = False,
        remote_bound: int | None = None,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.lease: int = lease
        self.initial_sn: int = initial_sn
        self.qos: bool = qos
        self.shm: bytes | None = shm
        self.auth: bytes | None = auth
        self.multilink: bool = multilink
        self.low_latency: bool = low_latency
        self.compression: bool = compression
        self.remote_bound: int | None = remote_bound

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x22
        if self.lease % 1000 == 0:
            header |= 0x40
        more = 0
        if self.qos:
            more += 1
        if self.shm is not None:
            more += 1
        if self.auth is not None:
            more += 1
        if self.multilink:
            more += 1
        if self.low_latency:
            more += 1
        if self.compression:
            more += 1
        if self.remote_bound is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.lease // 1000 if self.lease % 1000 == 0 else self.lease, 0xFFFFFFFFFFFFFFFF)
        w.vle(self.initial_sn, 0xFFFFFFFF)
        if self.qos:
            more -= 1
            w.u8(0x01 | (0x80 if more else 0))
        if self.shm is not None:
            more -= 1
            w.u8(0x42 | (0x80 if more else 0))
            w.sized(self.shm, 0xFFFFFFFF)
        if self.auth is not None:
            more -= 1
            w.u8(0x43 | (0x80 if more else 0))
            w.sized(self.auth, 0xFFFFFFFF)
        if self.multilink:
            more -= 1
            w.u8(0x04 | (0x80 if more else 0))
        if self.low_latency:
            more -= 1
            w.u8(0x05 | (0x80 if more else 0))
        if self.compression:
            more -= 1
            w.u8(0x06 | (0x80 if more else 0))
        if self.remote_bound is not None:
            more -= 1
            w.u8(0x27 | (0x80 if more else 0))
            if self.remote_bound not in (0, 1):
                raise EncodeError(f"OpenAck: {self.remote_bound} is not one of (0, 1)")
            w.vle(self.remote_bound, 0xFFFFFFFFFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "OpenAck"}
        fields["lease"] = self.lease
        fields["initial_sn"] = self.initial_sn
        if self.qos:
            fields["qos"] = self.qos
        if self.shm is not None:
            fields["shm"] = self.shm.hex()
        if self.auth is not None:
            fields["auth"] = self.auth.hex()
        if self.multilink:
            fields["multilink"] = self.multilink
        if self.low_latency:
            fields["low_latency"] = self.low_latency
        if self.compression:
            fields["compression"] = self.compression
        if self.remote_bound is not None:
            fields["remote_bound"] = self.remote_bound
        return fields


def read_open_ack(r: Reader, header: int) -> OpenAck:
    """Read the rest of OpenAck."""
    lease = r.vle(0xFFFFFFFFFFFFFFFF)
    if header & 0x40:
        lease *= 1000
    initial_sn = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    qos: bool = False
    shm: bytes | None = None
    auth: bytes | None = None
    multilink: bool = False
    low_latency: bool = False
    compression: bool = False
    remote_bound: int | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x01:
                qos = True
            elif kind == 0x42:
                shm = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x43:
                auth = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x04:
                multilink = True
            elif kind == 0x05:
                low_latency = True
            elif kind == 0x06:
                compression = True
            elif kind == 0x27:
                remote_bound = r.vle(0xFFFFFFFFFFFFFFFF)
                if remote_bound not in (0, 1):
                    raise DecodeError(
                        f"OpenAck.remote_bound is {remote_bound} before offset {r.pos}: one of (0, 1)",
                        r.pos,
                    )
            else:
                r.skip_extension(tag, "OpenAck")
            if tag < 0x80:
                break
    return OpenAck(
        lease=lease,
        initial_sn=initial_sn,
        qos=qos,
        shm=shm,
        auth=auth,
        multilink=multilink,
        low_latency=low_latency,
        compression=compression,
        remote_bound=remote_bound,
    )


def skip_open_ack(r: Reader, header: int) -> None:
    """Pass over the rest of OpenAck."""
    r.skip_vle()
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "OpenAck")
            if tag < 0x80:
                break


class Close(Message):
    """Goodbye, and why."""

    __slots__ = ("reason", "session")

    NAME: ClassVar[str] = "Close"
    FIELDS: ClassVar[tuple[str, ...]] = ("session", "reason")

    def __init__(self, *, session: bool = False, reason: int) -> None:
        """Make it from its fields, in wire order."""
        self.session: bool = session
        self.reason: int = reason

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x03
        if self.session:
            header |= 0x20
        w.u8(header)
        w.u8(self.reason)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Close"}
        fields["session"] = self.session
        fields["reason"] = self.reason
        return fields


def read_close(r: Reader, header: int) -> Close:
    """Read the rest of Close."""
    session = (header & 0x20) != 0
    reason = r.u8()
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Close")
            if tag < 0x80:
                break
    return Close(session=session, reason=reason)


def skip_close(r: Reader, header: int) -> None:
    """Pass over the rest of Close."""
    r.skip(1)
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Close")
            if tag < 0x80:
                break


class KeepAlive(Message):
    """I am still here."""

    __slots__ = ()

    NAME: ClassVar[str] = "KeepAlive"
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x04
        w.u8(header)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "KeepAlive"}
        return fields


def read_keep_alive(r: Reader, header: int) -> KeepAlive:
    """Read the rest of KeepAlive."""
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "KeepAlive")
            if tag < 0x80:
                break
    return KeepAlive()


def skip_keep_alive(r: Reader, header: int) -> None:
    """Pass over the rest of KeepAlive."""
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "KeepAlive")
            if tag < 0x80:
                break


class Frame(Message):
    """Network messages on one lane."""

    __slots__ = ("messages", "priority", "reliable", "sn")

    NAME: ClassVar[str] = "Frame"
    FIELDS: ClassVar[tuple[str, ...]] = ("reliable", "sn", "priority", "messages")

    def __init__(
        self,
        *,
        reliable: bool = False,
        sn: int,
        priority: int = 5,
        messages: tuple[Message, ...] = (),
    ) -> None:
        """Make it from its fields, in wire order."""
        self.reliable: bool = reliable
        self.sn: int = sn
        self.priority: int = priority
        self.messages: tuple[Message, ...] = messages

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x05
        if self.reliable:
            header |= 0x20
        more = 0
        if self.priority != 5:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.sn, 0xFFFFFFFF)
        if self.priority != 5:
            more -= 1
            w.u8(0x31 | (0x80 if more else 0))
            w.vle(self.priority, 0x7)
        for message in self.messages:
            message.write(w)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Frame"}
        fields["reliable"] = self.reliable
        fields["sn"] = self.sn
        if self.priority != 5:
            fields["priority"] = self.priority
        fields["messages"] = [item.to_dict() for item in self.messages]
        return fields


def read_frame(r: Reader, header: int) -> Frame:
    """Read the rest of Frame."""
    reliable = (header & 0x20) != 0
    sn = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    priority: int = 5
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x31:
                priority = r.vle(0xFFFFFFFFFFFFFFFF) & 0x07
            else:
                r.skip_extension(tag, "Frame")
            if tag < 0x80:
                break
    read: list[Message] = []
    while r.pos < r.end and r.data[r.pos] & 0x1F >= 0x19:
        read.append(read_network(r))
    messages = tuple(read)
    return Frame(reliable=reliable, sn=sn, priority=priority, messages=messages)


def skip_frame(r: Reader, header: int) -> None:
    """Pass over the rest of Frame."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x31:
                r.skip_vle()
            else:
                r.skip_extension(tag, "Frame")
            if tag < 0x80:
                break
    while r.pos < r.end and r.data[r.pos] & 0x1F >= 0x19:
        skip_network(r)


class Fragment(Message):
    """A piece of a network message that did not fit one batch."""

    __slots__ = ("drop", "first", "more", "payload", "priority", "reliable", "sn")

    NAME: ClassVar[str] = "Fragment"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "reliable",
        "more",
        "sn",
        "priority",
        "first",
        "drop",
        "payload",
    )

    def __init__(
        self,
        *,
        reliable: bool = False,
        more: bool = False,
        sn: int,
        priority: int = 5,
        first: bool = False,
        drop: bool = False,
        payload: bytes,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.reliable: bool = reliable
        self.more: bool = more
        self.sn: int = sn
        self.priority: int = priority
        self.first: bool = first
        self.drop: bool = drop
        self.payload: bytes = payload

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x06
        if self.reliable:
            header |= 0x20
        if self.more:
            header |= 0x40
        more = 0
        if self.priority != 5:
            more += 1
        if self.first:
            more += 1
        if self.drop:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.sn, 0xFFFFFFFF)
        if self.priority != 5:
            more -= 1
            w.u8(0x31 | (0x80 if more else 0))
            w.vle(self.priority, 0x7)
        if self.first:
            more -= 1
            w.u8(0x02 | (0x80 if more else 0))
        if self.drop:
            more -= 1
            w.u8(0x03 | (0x80 if more else 0))
        w.raw(self.payload)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Fragment"}
        fields["reliable"] = self.reliable
        fields["more"] = self.more
        fields["sn"] = self.sn
        if self.priority != 5:
            fields["priority"] = self.priority
        if self.first:
            fields["first"] = self.first
        if self.drop:
            fields["drop"] = self.drop
        fields["payload"] = self.payload.hex()
        return fields


def read_fragment(r: Reader, header: int) -> Fragment:
    """Read the rest of Fragment."""
    reliable = (header & 0x20) != 0
    more = (header & 0x40) != 0
    sn = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    priority: int = 5
    first: bool = False
    drop: bool = False
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x31:
                priority = r.vle(0xFFFFFFFFFFFFFFFF) & 0x07
            elif kind == 0x02:
                first = True
            elif kind == 0x03:
                drop = True
            else:
                r.skip_extension(tag, "Fragment")
            if tag < 0x80:
                break
    payload = r.rest()
    return Fragment(
        reliable=reliable,
        more=more,
        sn=sn,
        priority=priority,
        first=first,
        drop=drop,
        payload=payload,
    )


def skip_fragment(r: Reader, header: int) -> None:
    """Pass over the rest of Fragment."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x31:
                r.skip_vle()
            else:
                r.skip_extension(tag, "Fragment")
            if tag < 0x80:
                break
    r.pos = r.end


class Join(Message):
    """Here I am, said to a multicast group."""

    __slots__ = (
        "batch_size",
        "lane_sns",
        "lease",
        "next_sn_best_effort",
        "next_sn_reliable",
        "patch",
        "resolution",
        "shm",
        "version",
        "whatami",
        "zid",
    )

    NAME: ClassVar[str] = "Join"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "version",
        "whatami",
        "zid",
        "resolution",
        "batch_size",
        "lease",
        "next_sn_reliable",
        "next_sn_best_effort",
        "lane_sns",
        "shm",
        "patch",
    )

    def __init__(
        self,
        *,
        version: int,
        whatami: int,
        zid: bytes,
        resolution: int = 10,
        batch_size: int = 8192,
        lease: int,
        next_sn_reliable: int,
        next_sn_best_effort: int,
        lane_sns: tuple[int, ...] | None = None,
        shm: bytes | None = None,
        patch: int = 0,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.version: int = version
        self.whatami: int = whatami
        self.zid: bytes = zid
        self.resolution: int = resolution
        self.batch_size: int = batch_size
        self.lease: int = lease
        self.next_sn_reliable: int = next_sn_reliable
        self.next_sn_best_effort: int = next_sn_best_effort
        self.lane_sns: tuple[int, ...] | None = lane_sns
        self.shm: bytes | None = shm
        self.patch: int = patch

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_s = self.resolution != 10 or self.batch_size != 8192
        header = 0x07
        if flag_s:
            header |= 0x40
        if self.lease % 1000 == 0:
            header |= 0x20
        more = 0
        if self.lane_sns is not None:
            more += 1
        if self.shm is not None:
            more += 1
        if self.patch != 0:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.u8(self.version)
        if self.whatami not in (0, 1, 2):
            raise EncodeError(f"Join.whatami is {self.whatami}: one of (0, 1, 2)")
        if not 1 <= len(self.zid) <= 16:
            raise EncodeError(f"a node id has 1 to 16 bytes, not {len(self.zid)}")
        w.u8(((len(self.zid) - 1) << 4) | self.whatami)
        w.zid(self.zid)
        if flag_s:
            w.vle(self.resolution, 0x3F)
        if flag_s:
            w.u16(self.batch_size)
        w.vle(self.lease // 1000 if self.lease % 1000 == 0 else self.lease, 0xFFFFFFFFFFFFFFFF)
        w.vle(self.next_sn_reliable, 0xFFFFFFFF)
        w.vle(self.next_sn_best_effort, 0xFFFFFFFF)
        if self.lane_sns is not None:
            more -= 1
            w.u8(0x51 | (0x80 if more else 0))
            if len(self.lane_sns) != 16:
                raise EncodeError(f"Join.lane_sns has {len(self.lane_sns)} numbers: 16")
            place = w.hold()
            start = w.size
            for item in self.lane_sns:
                w.vle(item, 0xFFFFFFFF)
            w.fill(place, start, 0xFFFFFFFF)
        if self.shm is not None:
            more -= 1
            w.u8(0x52 | (0x80 if more else 0))
            w.sized(self.shm, 0xFFFFFFFF)
        if self.patch != 0:
            more -= 1
            w.u8(0x27 | (0x80 if more else 0))
            w.vle(self.patch, 0xFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Join"}
        fields["version"] = self.version
        fields["whatami"] = self.whatami
        fields["zid"] = zid_text(self.zid)
        if self.resolution != 10:
            fields["resolution"] = self.resolution
        if self.batch_size != 8192:
            fields["batch_size"] = self.batch_size
        fields["lease"] = self.lease
        fields["next_sn_reliable"] = self.next_sn_reliable
        fields["next_sn_best_effort"] = self.next_sn_best_effort
        if self.lane_sns is not None:
            fields["lane_sns"] = list(self.lane_sns)
        if self.shm is not None:
            fields["shm"] = self.shm.hex()
        if self.patch != 0:
            fields["patch"] = self.patch
        return fields


def read_join(r: Reader, header: int) -> Join:
    """Read the rest of Join."""
    version = r.u8()
    packed = r.u8()
    whatami = packed & 0x03
    if whatami not in (0, 1, 2):
        raise DecodeError(
            f"Join.whatami is {whatami} before offset {r.pos}: one of (0, 1, 2)", r.pos
        )
    zid = r.zid((packed >> 4) + 1)
    resolution: int = 10
    if header & 0x40:
        resolution = r.u8() & 0x3F
    batch_size: int = 8192
    if header & 0x40:
        batch_size = r.u16()
    lease = r.vle(0xFFFFFFFFFFFFFFFF)
    if header & 0x20:
        lease *= 1000
    next_sn_reliable = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    next_sn_best_effort = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    lane_sns: tuple[int, ...] | None = None
    shm: bytes | None = None
    patch: int = 0
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x51:
                former = r.narrow(r.vle(0xFFFFFFFF))
                lane_sns_list: list[int] = []
                for _ in range(16):
                    lane_sns_list.append(r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF)
                lane_sns = tuple(lane_sns_list)
                r.widen(former, "Join.lane_sns")
            elif kind == 0x52:
                shm = r.take(r.vle(0xFFFFFFFF))
            elif kind == 0x27:
                patch = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFF
            else:
                r.skip_extension(tag, "Join")
            if tag < 0x80:
                break
    return Join(
        version=version,
        whatami=whatami,
        zid=zid,
        resolution=resolution,
        batch_size=batch_size,
        lease=lease,
        next_sn_reliable=next_sn_reliable,
        next_sn_best_effort=next_sn_best_effort,
        lane_sns=lane_sns,
        shm=shm,
        patch=patch,
    )


def skip_join(r: Reader, header: int) -> None:
    """Pass over the rest of Join."""
    r.skip(1)
    packed = r.u8()
    r.skip((packed >> 4) + 1)
    if header & 0x40:
        r.skip(1)
    if header & 0x40:
        r.skip(2)
    r.skip_vle()
    r.skip_vle()
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x51:
                r.skip(r.vle(0xFFFFFFFF))
            elif kind == 0x52:
                r.skip(r.vle(0xFFFFFFFF))
            else:
                r.skip_extension(tag, "Join")
            if tag < 0x80:
                break


class TransportOam(Message):
    """Operation and maintenance of a link."""

    __slots__ = ("body", "id", "priority")

    NAME: ClassVar[str] = "TransportOam"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "priority", "body")

    def __init__(self, *, id: int, priority: int = 5, body: int | bytes | None = None) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.priority: int = priority
        self.body: int | bytes | None = body

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x00
        body = self.body
        if body is not None:
            header |= 0x20 if isinstance(body, int) else 0x40
        more = 0
        if self.priority != 5:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFF)
        if self.priority != 5:
            more -= 1
            w.u8(0x31 | (0x80 if more else 0))
            w.vle(self.priority, 0x7)
        if isinstance(body, int):
            w.vle(body, 0xFFFFFFFFFFFFFFFF)
        elif body is not None:
            w.sized(body, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "TransportOam"}
        fields["id"] = self.id
        if self.priority != 5:
            fields["priority"] = self.priority
        if self.body is not None:
            fields["body"] = self.body.hex() if isinstance(self.body, bytes) else self.body
        return fields


def read_transport_oam(r: Reader, header: int) -> TransportOam:
    """Read the rest of TransportOam."""
    id = r.vle(0xFFFF)
    priority: int = 5
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x31:
                priority = r.vle(0xFFFFFFFFFFFFFFFF) & 0x07
            else:
                r.skip_extension(tag, "TransportOam")
            if tag < 0x80:
                break
    body: int | bytes | None = None
    shape = header & 0x60
    if shape == 0x20:
        body = r.vle(0xFFFFFFFFFFFFFFFF)
    elif shape == 0x40:
        body = r.take(r.vle(0xFFFFFFFF))
    elif shape == 0x60:
        raise DecodeError(f"TransportOam has the reserved encoding 3 at offset {r.pos}", r.pos)
    return TransportOam(id=id, priority=priority, body=body)


def skip_transport_oam(r: Reader, header: int) -> None:
    """Pass over the rest of TransportOam."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x31:
                r.skip_vle()
            else:
                r.skip_extension(tag, "TransportOam")
            if tag < 0x80:
                break
    shape = header & 0x60
    if shape == 0x20:
        r.skip_vle()
    elif shape == 0x40:
        r.skip(r.vle(0xFFFFFFFF))
    elif shape == 0x60:
        raise DecodeError(f"TransportOam has the reserved encoding 3 at offset {r.pos}", r.pos)


def read_transport(
    r: Reader,
) -> (
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
):
    """Read one message: InitSyn | InitAck | OpenSyn | OpenAck | Close | KeepAlive | Frame | Fragment | Join | TransportOam."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x05:
        return read_frame(r, header)
    if kind == 0x00:
        return read_transport_oam(r, header)
    if kind == 0x01:
        if not header & 0x20:
            return read_init_syn(r, header)
        if header & 0x20:
            return read_init_ack(r, header)
    if kind == 0x02:
        if not header & 0x20:
            return read_open_syn(r, header)
        if header & 0x20:
            return read_open_ack(r, header)
    if kind == 0x03:
        return read_close(r, header)
    if kind == 0x04:
        return read_keep_alive(r, header)
    if kind == 0x06:
        return read_fragment(r, header)
    if kind == 0x07:
        return read_join(r, header)
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: InitSyn 0x01, InitAck 0x01, OpenSyn 0x02, OpenAck 0x02, Close 0x03, KeepAlive 0x04, Frame 0x05, Fragment 0x06, Join 0x07, TransportOam 0x00",
        r.pos - 1,
    )

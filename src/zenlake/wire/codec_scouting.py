"""Scouting messages of Zenoh 1.x: classes and codec.

Generated from `wire/declared/scouting.py` by `make wire`. Do not edit: change the declarations.
"""

# ruff: noqa: SIM102, SIM103, PLR, E501

from __future__ import annotations

from typing import ClassVar

from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message, zid_text


class Scout(Message):
    """Is anybody there? `what` says whom I look for: router 1, peer 2, client 4."""

    __slots__ = ("version", "what", "zid")

    NAME: ClassVar[str] = "Scout"
    FIELDS: ClassVar[tuple[str, ...]] = ("version", "what", "zid")

    def __init__(self, *, version: int, what: int, zid: bytes = b"") -> None:
        """Make it from its fields, in wire order."""
        self.version: int = version
        self.what: int = what
        self.zid: bytes = zid

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x01
        w.u8(header)
        w.u8(self.version)
        if self.what not in (0, 1, 2, 3, 4, 5, 6, 7):
            raise EncodeError(f"Scout.what is {self.what}: one of (0, 1, 2, 3, 4, 5, 6, 7)")
        if self.zid:
            w.u8(((len(self.zid) - 1) << 4) | 0x08 | self.what)
            w.zid(self.zid)
        else:
            w.u8(self.what)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Scout"}
        fields["version"] = self.version
        fields["what"] = self.what
        fields["zid"] = zid_text(self.zid)
        return fields


def read_scout(r: Reader, header: int) -> Scout:
    """Read the rest of Scout."""
    version = r.u8()
    packed = r.u8()
    what = packed & 0x07
    zid = r.zid((packed >> 4) + 1) if packed & 0x08 else b""
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Scout")
            if tag < 0x80:
                break
    return Scout(version=version, what=what, zid=zid)


def skip_scout(r: Reader, header: int) -> None:
    """Pass over the rest of Scout."""
    r.skip(1)
    packed = r.u8()
    if packed & 0x08:
        r.skip((packed >> 4) + 1)
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Scout")
            if tag < 0x80:
                break


class Hello(Message):
    """I am, and this is where I listen."""

    __slots__ = ("locators", "version", "whatami", "zid")

    NAME: ClassVar[str] = "Hello"
    FIELDS: ClassVar[tuple[str, ...]] = ("version", "whatami", "zid", "locators")

    def __init__(
        self, *, version: int, whatami: int, zid: bytes, locators: tuple[str, ...] = ()
    ) -> None:
        """Make it from its fields, in wire order."""
        self.version: int = version
        self.whatami: int = whatami
        self.zid: bytes = zid
        self.locators: tuple[str, ...] = locators

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_l = len(self.locators) > 0
        header = 0x02
        if flag_l:
            header |= 0x20
        w.u8(header)
        w.u8(self.version)
        if self.whatami not in (0, 1, 2):
            raise EncodeError(f"Hello.whatami is {self.whatami}: one of (0, 1, 2)")
        if not 1 <= len(self.zid) <= 16:
            raise EncodeError(f"a node id has 1 to 16 bytes, not {len(self.zid)}")
        w.u8(((len(self.zid) - 1) << 4) | self.whatami)
        w.zid(self.zid)
        if flag_l:
            w.vle(len(self.locators), 0xFFFFFFFFFFFFFFFF)
            for locator in self.locators:
                w.text(locator, 0xFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "Hello"}
        fields["version"] = self.version
        fields["whatami"] = self.whatami
        fields["zid"] = zid_text(self.zid)
        if len(self.locators) > 0:
            fields["locators"] = list(self.locators)
        return fields


def read_hello(r: Reader, header: int) -> Hello:
    """Read the rest of Hello."""
    version = r.u8()
    packed = r.u8()
    whatami = packed & 0x03
    if whatami not in (0, 1, 2):
        raise DecodeError(
            f"Hello.whatami is {whatami} before offset {r.pos}: one of (0, 1, 2)", r.pos
        )
    zid = r.zid((packed >> 4) + 1)
    locators: tuple[str, ...] = ()
    if header & 0x20:
        locators_count = r.count(0xFFFFFFFFFFFFFFFF, 1)
        locators_list: list[str] = []
        for _ in range(locators_count):
            locators_list.append(r.text(r.vle(0xFF)))
        locators = tuple(locators_list)
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Hello")
            if tag < 0x80:
                break
    return Hello(version=version, whatami=whatami, zid=zid, locators=locators)


def skip_hello(r: Reader, header: int) -> None:
    """Pass over the rest of Hello."""
    r.skip(1)
    packed = r.u8()
    r.skip((packed >> 4) + 1)
    if header & 0x20:
        locators_count = r.count(0xFFFFFFFFFFFFFFFF, 1)
        for _ in range(locators_count):
            r.skip(r.vle(0xFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "Hello")
            if tag < 0x80:
                break


def read_scouting(r: Reader) -> Scout | Hello:
    """Read one message: Scout | Hello."""
    header = r.u8()
    kind = header & 0x1F
    if kind == 0x01:
        return read_scout(r, header)
    if kind == 0x02:
        return read_hello(r, header)
    raise DecodeError(
        f"0x{kind:02x} at offset {r.pos - 1} is none of: Scout 0x01, Hello 0x02", r.pos - 1
    )

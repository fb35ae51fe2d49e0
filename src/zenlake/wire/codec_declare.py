"""Declarations of Zenoh 1.x: classes and codec.

Generated from `wire/declared/declare.py` by `make wire`. Do not edit: change the declarations.
"""

# ruff: noqa: SIM102, SIM103, PLR, E501

from __future__ import annotations

from typing import ClassVar

from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message


class KeyExt(Message):
    """The key of an undeclared entity, for nodes that know it by its key only."""

    __slots__ = ("scope", "sender_mapping", "suffix")

    NAME: ClassVar[str] = "KeyExt"
    FIELDS: ClassVar[tuple[str, ...]] = ("scope", "suffix", "sender_mapping")

    def __init__(self, *, scope: int, suffix: str = "", sender_mapping: bool = False) -> None:
        """Make it from its fields, in wire order."""
        self.scope: int = scope
        self.suffix: str = suffix
        self.sender_mapping: bool = sender_mapping

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = len(self.suffix) > 0
        flags = 0
        if flag_n:
            flags |= 0x01
        if self.sender_mapping:
            flags |= 0x02
        w.u8(flags)
        w.vle(self.scope, 0xFFFF)
        if flag_n:
            w.raw(w.utf8(self.suffix))

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "KeyExt"}
        fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        fields["sender_mapping"] = self.sender_mapping
        return fields


def read_key_ext(r: Reader) -> KeyExt:
    """Read the rest of KeyExt (a structure)."""
    flags = r.u8()
    scope = r.vle(0xFFFF)
    suffix: str = ""
    if flags & 0x01:
        suffix = r.text(r.end - r.pos)
    sender_mapping = (flags & 0x02) != 0
    return KeyExt(scope=scope, suffix=suffix, sender_mapping=sender_mapping)


def skip_key_ext(r: Reader) -> None:
    """Pass over the rest of KeyExt (a structure)."""
    flags = r.u8()
    r.skip_vle()
    if flags & 0x01:
        r.pos = r.end


class DeclareKeyExpr(Message):
    """From now on `id` stands for this key expression; the scope is always the sender's."""

    __slots__ = ("id", "scope", "suffix")

    NAME: ClassVar[str] = "DeclareKeyExpr"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "scope", "suffix")

    def __init__(self, *, id: int, scope: int, suffix: str = "") -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.scope: int = scope
        self.suffix: str = suffix

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = len(self.suffix) > 0
        header = 0x00
        if flag_n:
            header |= 0x20
        w.u8(header)
        w.vle(self.id, 0xFFFF)
        w.vle(self.scope, 0xFFFF)
        if flag_n:
            w.text(self.suffix, 0xFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "DeclareKeyExpr"}
        fields["id"] = self.id
        fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        return fields


def read_declare_key_expr(r: Reader, header: int) -> DeclareKeyExpr:
    """Read the rest of DeclareKeyExpr."""
    id = r.vle(0xFFFF)
    scope = r.vle(0xFFFF)
    suffix: str = ""
    if header & 0x20:
        suffix = r.text(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "DeclareKeyExpr")
            if tag < 0x80:
                break
    return DeclareKeyExpr(id=id, scope=scope, suffix=suffix)


def skip_declare_key_expr(r: Reader, header: int) -> None:
    """Pass over the rest of DeclareKeyExpr."""
    r.skip_vle()
    r.skip_vle()
    if header & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "DeclareKeyExpr")
            if tag < 0x80:
                break


class UndeclareKeyExpr(Message):
    """The id means nothing any more."""

    __slots__ = ("id",)

    NAME: ClassVar[str] = "UndeclareKeyExpr"
    FIELDS: ClassVar[tuple[str, ...]] = ("id",)

    def __init__(self, *, id: int) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x01
        w.u8(header)
        w.vle(self.id, 0xFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "UndeclareKeyExpr"}
        fields["id"] = self.id
        return fields


def read_undeclare_key_expr(r: Reader, header: int) -> UndeclareKeyExpr:
    """Read the rest of UndeclareKeyExpr."""
    id = r.vle(0xFFFF)
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "UndeclareKeyExpr")
            if tag < 0x80:
                break
    return UndeclareKeyExpr(id=id)


def skip_undeclare_key_expr(r: Reader, header: int) -> None:
    """Pass over the rest of UndeclareKeyExpr."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "UndeclareKeyExpr")
            if tag < 0x80:
                break


class DeclareSubscriber(Message):
    """The sender wants the samples of a key expression."""

    __slots__ = ("filter", "id", "scope", "sender_mapping", "suffix")

    NAME: ClassVar[str] = "DeclareSubscriber"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "scope", "suffix", "sender_mapping", "filter")

    def __init__(
        self,
        *,
        id: int,
        scope: int,
        suffix: str = "",
        sender_mapping: bool = True,
        filter: bytes | None = None,
    ) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.scope: int = scope
        self.suffix: str = suffix
        self.sender_mapping: bool = sender_mapping
        self.filter: bytes | None = filter

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = len(self.suffix) > 0
        header = 0x02
        if flag_n:
            header |= 0x20
        if self.sender_mapping:
            header |= 0x40
        more = 0
        if self.filter is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        w.vle(self.scope, 0xFFFF)
        if flag_n:
            w.text(self.suffix, 0xFFFF)
        if self.filter is not None:
            more -= 1
            w.u8(0x4E | (0x80 if more else 0))
            w.sized(self.filter, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "DeclareSubscriber"}
        fields["id"] = self.id
        fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        fields["sender_mapping"] = self.sender_mapping
        if self.filter is not None:
            fields["filter"] = self.filter.hex()
        return fields


def read_declare_subscriber(r: Reader, header: int) -> DeclareSubscriber:
    """Read the rest of DeclareSubscriber."""
    id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    scope = r.vle(0xFFFF)
    suffix: str = ""
    if header & 0x20:
        suffix = r.text(r.vle(0xFFFF))
    sender_mapping = (header & 0x40) != 0
    filter: bytes | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x4E:
                filter = r.take(r.vle(0xFFFFFFFF))
            else:
                r.skip_extension(tag, "DeclareSubscriber")
            if tag < 0x80:
                break
    return DeclareSubscriber(
        id=id, scope=scope, suffix=suffix, sender_mapping=sender_mapping, filter=filter
    )


def skip_declare_subscriber(r: Reader, header: int) -> None:
    """Pass over the rest of DeclareSubscriber."""
    r.skip_vle()
    r.skip_vle()
    if header & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "DeclareSubscriber")
            if tag < 0x80:
                break


class UndeclareSubscriber(Message):
    """The sender does not want them any more."""

    __slots__ = ("id", "key")

    NAME: ClassVar[str] = "UndeclareSubscriber"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "key")

    def __init__(self, *, id: int, key: KeyExt | None = None) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.key: KeyExt | None = key

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x03
        more = 0
        if self.key is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        if self.key is not None:
            more -= 1
            w.u8(0x5F | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.key.write(w)
            w.fill(place, start, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "UndeclareSubscriber"}
        fields["id"] = self.id
        if self.key is not None:
            fields["key"] = self.key.to_dict()
        return fields


def read_undeclare_subscriber(r: Reader, header: int) -> UndeclareSubscriber:
    """Read the rest of UndeclareSubscriber."""
    id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    key: KeyExt | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x5F:
                former = r.narrow(r.vle(0xFFFFFFFF))
                key = read_key_ext(r)
                r.widen(former, "UndeclareSubscriber.key")
            else:
                r.skip_extension(tag, "UndeclareSubscriber")
            if tag < 0x80:
                break
    return UndeclareSubscriber(id=id, key=key)


def skip_undeclare_subscriber(r: Reader, header: int) -> None:
    """Pass over the rest of UndeclareSubscriber."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x5F:
                r.skip(r.vle(0xFFFFFFFF))
            else:
                r.skip_extension(tag, "UndeclareSubscriber")
            if tag < 0x80:
                break


class DeclareQueryable(Message):
    """The sender replies to queries about a key expression."""

    __slots__ = ("id", "info", "scope", "sender_mapping", "suffix")

    NAME: ClassVar[str] = "DeclareQueryable"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "scope", "suffix", "sender_mapping", "info")

    def __init__(
        self, *, id: int, scope: int, suffix: str = "", sender_mapping: bool = True, info: int = 0
    ) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.scope: int = scope
        self.suffix: str = suffix
        self.sender_mapping: bool = sender_mapping
        self.info: int = info

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = len(self.suffix) > 0
        header = 0x04
        if flag_n:
            header |= 0x20
        if self.sender_mapping:
            header |= 0x40
        more = 0
        if self.info != 0:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        w.vle(self.scope, 0xFFFF)
        if flag_n:
            w.text(self.suffix, 0xFFFF)
        if self.info != 0:
            more -= 1
            w.u8(0x21 | (0x80 if more else 0))
            w.vle(self.info, 0xFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "DeclareQueryable"}
        fields["id"] = self.id
        fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        fields["sender_mapping"] = self.sender_mapping
        if self.info != 0:
            fields["info"] = self.info
        return fields


def read_declare_queryable(r: Reader, header: int) -> DeclareQueryable:
    """Read the rest of DeclareQueryable."""
    id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    scope = r.vle(0xFFFF)
    suffix: str = ""
    if header & 0x20:
        suffix = r.text(r.vle(0xFFFF))
    sender_mapping = (header & 0x40) != 0
    info: int = 0
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x21:
                info = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFF
            else:
                r.skip_extension(tag, "DeclareQueryable")
            if tag < 0x80:
                break
    return DeclareQueryable(
        id=id, scope=scope, suffix=suffix, sender_mapping=sender_mapping, info=info
    )


def skip_declare_queryable(r: Reader, header: int) -> None:
    """Pass over the rest of DeclareQueryable."""
    r.skip_vle()
    r.skip_vle()
    if header & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "DeclareQueryable")
            if tag < 0x80:
                break


class UndeclareQueryable(Message):
    """The sender does not reply to them any more."""

    __slots__ = ("id", "key")

    NAME: ClassVar[str] = "UndeclareQueryable"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "key")

    def __init__(self, *, id: int, key: KeyExt | None = None) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.key: KeyExt | None = key

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x05
        more = 0
        if self.key is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        if self.key is not None:
            more -= 1
            w.u8(0x5F | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.key.write(w)
            w.fill(place, start, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "UndeclareQueryable"}
        fields["id"] = self.id
        if self.key is not None:
            fields["key"] = self.key.to_dict()
        return fields


def read_undeclare_queryable(r: Reader, header: int) -> UndeclareQueryable:
    """Read the rest of UndeclareQueryable."""
    id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    key: KeyExt | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x5F:
                former = r.narrow(r.vle(0xFFFFFFFF))
                key = read_key_ext(r)
                r.widen(former, "UndeclareQueryable.key")
            else:
                r.skip_extension(tag, "UndeclareQueryable")
            if tag < 0x80:
                break
    return UndeclareQueryable(id=id, key=key)


def skip_undeclare_queryable(r: Reader, header: int) -> None:
    """Pass over the rest of UndeclareQueryable."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x5F:
                r.skip(r.vle(0xFFFFFFFF))
            else:
                r.skip_extension(tag, "UndeclareQueryable")
            if tag < 0x80:
                break


class DeclareToken(Message):
    """Something of the sender is alive."""

    __slots__ = ("id", "scope", "sender_mapping", "suffix")

    NAME: ClassVar[str] = "DeclareToken"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "scope", "suffix", "sender_mapping")

    def __init__(
        self, *, id: int, scope: int, suffix: str = "", sender_mapping: bool = True
    ) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.scope: int = scope
        self.suffix: str = suffix
        self.sender_mapping: bool = sender_mapping

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        flag_n = len(self.suffix) > 0
        header = 0x06
        if flag_n:
            header |= 0x20
        if self.sender_mapping:
            header |= 0x40
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        w.vle(self.scope, 0xFFFF)
        if flag_n:
            w.text(self.suffix, 0xFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "DeclareToken"}
        fields["id"] = self.id
        fields["scope"] = self.scope
        if len(self.suffix) > 0:
            fields["suffix"] = self.suffix
        fields["sender_mapping"] = self.sender_mapping
        return fields


def read_declare_token(r: Reader, header: int) -> DeclareToken:
    """Read the rest of DeclareToken."""
    id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    scope = r.vle(0xFFFF)
    suffix: str = ""
    if header & 0x20:
        suffix = r.text(r.vle(0xFFFF))
    sender_mapping = (header & 0x40) != 0
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "DeclareToken")
            if tag < 0x80:
                break
    return DeclareToken(id=id, scope=scope, suffix=suffix, sender_mapping=sender_mapping)


def skip_declare_token(r: Reader, header: int) -> None:
    """Pass over the rest of DeclareToken."""
    r.skip_vle()
    r.skip_vle()
    if header & 0x20:
        r.skip(r.vle(0xFFFF))
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "DeclareToken")
            if tag < 0x80:
                break


class UndeclareToken(Message):
    """It is not alive any more."""

    __slots__ = ("id", "key")

    NAME: ClassVar[str] = "UndeclareToken"
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "key")

    def __init__(self, *, id: int, key: KeyExt | None = None) -> None:
        """Make it from its fields, in wire order."""
        self.id: int = id
        self.key: KeyExt | None = key

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x07
        more = 0
        if self.key is not None:
            more += 1
        if more:
            header |= 0x80
        w.u8(header)
        w.vle(self.id, 0xFFFFFFFF)
        if self.key is not None:
            more -= 1
            w.u8(0x5F | (0x80 if more else 0))
            place = w.hold()
            start = w.size
            self.key.write(w)
            w.fill(place, start, 0xFFFFFFFF)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "UndeclareToken"}
        fields["id"] = self.id
        if self.key is not None:
            fields["key"] = self.key.to_dict()
        return fields


def read_undeclare_token(r: Reader, header: int) -> UndeclareToken:
    """Read the rest of UndeclareToken."""
    id = r.vle(0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF
    key: KeyExt | None = None
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x5F:
                former = r.narrow(r.vle(0xFFFFFFFF))
                key = read_key_ext(r)
                r.widen(former, "UndeclareToken.key")
            else:
                r.skip_extension(tag, "UndeclareToken")
            if tag < 0x80:
                break
    return UndeclareToken(id=id, key=key)


def skip_undeclare_token(r: Reader, header: int) -> None:
    """Pass over the rest of UndeclareToken."""
    r.skip_vle()
    if header & 0x80:
        while True:
            tag = r.u8()
            kind = tag & 0x7F
            if kind == 0x5F:
                r.skip(r.vle(0xFFFFFFFF))
            else:
                r.skip_extension(tag, "UndeclareToken")
            if tag < 0x80:
                break


class DeclareFinal(Message):
    """That was all that there is now."""

    __slots__ = ()

    NAME: ClassVar[str] = "DeclareFinal"
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x1A
        w.u8(header)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them; what is absent on the wire is left out."""
        fields: dict[str, object] = {"message": "DeclareFinal"}
        return fields


def read_declare_final(r: Reader, header: int) -> DeclareFinal:
    """Read the rest of DeclareFinal."""
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "DeclareFinal")
            if tag < 0x80:
                break
    return DeclareFinal()


def skip_declare_final(r: Reader, header: int) -> None:
    """Pass over the rest of DeclareFinal."""
    if header & 0x80:
        while True:
            tag = r.u8()
            r.skip_extension(tag, "DeclareFinal")
            if tag < 0x80:
                break

"""The vocabulary in which messages are declared.

A page of declarations is the protocol: one class a message, its attributes the fields in wire
order. From it come the codec and its classes (`generate`), the documentation, the dissector
(`dissect`) and the test strategies. Nothing here reads or writes a byte.

    @message(0x1D, flags="N M Z")
    class Push:
        '''A sample on its way to subscribers.'''

        scope = z16()
        suffix = text(16).when("N")
        sender_mapping = flag("M", default=True)
        qos = ext(0x21, z8(), default=5)
        body = one_of("Put", "Del")

Flags are letters. A message names the letters of its header bits 5, 6, 7; a `flag_byte` inside
a message adds eight more. A flag is never stored: it is set if a field that depends on it
differs from its default, so that an inconsistent message cannot be built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from zenlake.wire.declared.kinds import (
    ByEncoding,
    Bytes,
    CompactId,
    Flag,
    FlagByte,
    HeaderBits,
    Identity,
    Int,
    Kind,
    Lease,
    Many,
    Messages,
    Ntp64,
    OneOf,
    Rest,
    Struct,
    Text,
    Unit,
    Zid,
)

__all__ = [
    "ByEncoding",
    "Bytes",
    "CompactId",
    "Condition",
    "Field",
    "Flag",
    "FlagByte",
    "HeaderBits",
    "Identity",
    "Int",
    "Kind",
    "Lease",
    "Many",
    "MessageSpec",
    "Messages",
    "Ntp64",
    "OneOf",
    "ProtocolPage",
    "Rest",
    "Struct",
    "Text",
    "Unit",
    "Zid",
]


# -------------------------------------------------------------------------------------- fields


@dataclass(frozen=True)
class Condition:
    """When a field is there: a flag is set, or another field has one of some values."""

    flag: str = ""
    name: str = ""
    values: tuple[int, ...] = ()
    negated: bool = False


#: How many 2018 markers may stand before one message: each kind twice and some, a bound only.
MARKERS_MAX = 8

#: A default that no value equals: the field is always there and must be given.
REQUIRED: object = object()


@dataclass(frozen=True)
class Field:
    """One place in a message."""

    kind: Kind
    name: str = ""
    default: object = REQUIRED
    conditions: tuple[Condition, ...] = ()
    extension: int = 0  # the extension's header byte without its Z bit; 0: a plain field
    doc: str = ""

    def when(self, letter: str, default: object = REQUIRED) -> Field:
        """There if the flag is set; without it the field has its default."""
        value = self.default if default is REQUIRED else default
        if value is REQUIRED:
            value = zero_of(self.kind)
        return replace(self, conditions=(*self.conditions, Condition(flag=letter)), default=value)

    def given(self, name: str, *values: int, default: object = REQUIRED) -> Field:
        """There if the earlier field `name` has one of `values` (none given: is true)."""
        value = zero_of(self.kind) if default is REQUIRED else default
        condition = Condition(name=name, values=values)
        return replace(self, conditions=(*self.conditions, condition), default=value)

    def unless(self, name: str, *values: int, default: object = REQUIRED) -> Field:
        """There unless the earlier field `name` has one of `values` (none given: is true)."""
        value = zero_of(self.kind) if default is REQUIRED else default
        condition = Condition(name=name, values=values, negated=True)
        return replace(self, conditions=(*self.conditions, condition), default=value)

    def says(self, doc: str) -> Field:
        """What the field means, in a few words for people."""
        return replace(self, doc=doc)


def zero_of(kind: Kind) -> object:
    """The natural default of a kind: what is not there."""
    match kind:
        case Int() | CompactId() | HeaderBits():
            return 0
        case Bytes() | Zid():
            return b""
        case Text():
            return ""
        case Rest(utf8=utf8):
            return "" if utf8 else b""
        case Flag() | Unit():
            return False
        case Many():
            return ()
        case _:
            return None


# ---------------------------------------------------------------------------- words for fields

Names = Mapping[int, str]


def _names(names: Names | None) -> tuple[tuple[int, str], ...]:
    return tuple((names or {}).items())


def u8(names: Names | None = None, legal: Iterable[int] = (), mask: int = 0) -> Field:
    """One byte."""
    return Field(Int("u8", 0xFF, legal=tuple(legal), mask=mask, names=_names(names)))


def u16() -> Field:
    """Two bytes, little-endian."""
    return Field(Int("u16", 0xFFFF))


def vle(
    bits: int,
    *,
    wrap: bool = False,
    mask: int = 0,
    legal: Iterable[int] = (),
    low_flag: str = "",
    names: Names | None = None,
) -> Field:
    """A variable-length integer that fits `bits` bits."""
    limit = (1 << bits) - 1
    return Field(Int("vle", limit, wrap, mask, tuple(legal), low_flag, _names(names)))


def z8(**options: object) -> Field:
    """A variable-length integer that fits a byte."""
    return vle(8, **options)  # type: ignore[arg-type]


def z16() -> Field:
    """A variable-length integer that fits two bytes."""
    return vle(16)


def z32(wrap: bool = False) -> Field:
    """A variable-length integer that fits four bytes."""
    return vle(32, wrap=wrap)


def z64() -> Field:
    """A variable-length integer of any size."""
    return vle(64)


def nat(names: Names | None = None) -> Field:
    """A natural number of the 2018 protocol."""
    return Field(Int("nat", 0xFFFF_FFFF_FFFF_FFFF, names=_names(names)))


def zbuf(bits: int) -> Field:
    """Bytes behind a length that fits `bits` bits."""
    return Field(Bytes((1 << bits) - 1))


def octets() -> Field:
    """Bytes behind a natural number (2018)."""
    return Field(Bytes(0xFFFF_FFFF_FFFF_FFFF, "nat"))


def text(bits: int) -> Field:
    """UTF-8 behind a length that fits `bits` bits."""
    return Field(Text((1 << bits) - 1))


def string() -> Field:
    """UTF-8 behind a natural number (2018)."""
    return Field(Text(0xFFFF_FFFF_FFFF_FFFF, "nat"))


def rest(utf8: bool = False) -> Field:
    """Everything up to the end."""
    return Field(Rest(utf8))


def unit() -> Field:
    """Presence alone."""
    return Field(Unit())


def zid() -> Field:
    """A node id behind its length."""
    return Field(Zid())


def identity(
    low: str = "", bits: int = 0, legal: Iterable[int] = (), names: Names | None = None,
    optional: bool = False,
) -> Field:  # fmt: skip
    """A node id packed with some low bits."""
    return Field(Identity(low, bits, tuple(legal), optional, _names(names)))


def ntp64() -> Field:
    """A 64-bit time in two halves."""
    return Field(Ntp64())


def lease(letter: str) -> Field:
    """A duration, in seconds on the wire if the flag is set."""
    return Field(Lease(letter))


def flag(letter: str, default: bool = False, within: str = "") -> Field:
    """A truth value kept in a flag."""
    return Field(Flag(letter, within), default=default)


def flag_byte(letters: str, form: str = "u8") -> Field:
    """A byte of flags, named from bit 0 up."""
    return Field(FlagByte(tuple(letters.split()), form), default=None)


def header_bits(names: Names) -> Field:
    """A small number in the header's bits 5 and 6."""
    return Field(HeaderBits(tuple(names), _names(names)))


def compact_id(compact: bool = True) -> Field:
    """A conduit or space id of the 2018 protocol, by default in its one-byte form or not."""
    return Field(CompactId(compact))


def struct(name: str) -> Field:
    """A declared structure."""
    return Field(Struct(name))


def many(item: Field, *, fixed: int = 0, like: str = "", limit: int = 0) -> Field:
    """Several of one kind."""
    form = "nat" if isinstance(item.kind, Int | Bytes | Text) and item.kind.form == "nat" else "vle"
    return Field(Many(item.kind, fixed, like, limit or 0xFFFF_FFFF_FFFF_FFFF, form))


def many_nat(item: Field) -> Field:
    """Several structures or messages behind a natural number (2018)."""
    return Field(Many(item.kind, form="nat"))


def one_of(*names: str) -> Field:
    """One of several messages."""
    return Field(OneOf(names))


def messages() -> Field:
    """Network messages to the end."""
    return Field(Messages(), default=())


def by_encoding() -> Field:
    """A body shaped by the header."""
    return Field(ByEncoding(), default=None)


#: The encoding of an extension's body, by the two bits of its header.
EXT_UNIT, EXT_Z64, EXT_ZBUF = 0x00, 0x20, 0x40


def ext(header: int, body: Field, default: object = REQUIRED) -> Field:
    """An extension, by its whole header byte: encoding, mandatory bit and id are its identity."""
    shape = header & 0x60
    fits = {
        EXT_UNIT: isinstance(body.kind, Unit),
        EXT_Z64: isinstance(body.kind, Int),
        EXT_ZBUF: isinstance(body.kind, Rest | Struct | Many),
    }
    if not fits.get(shape, False):
        raise ValueError(f"extension 0x{header:02x}: {body.kind} does not fit its encoding")
    value = zero_of(body.kind) if default is REQUIRED else default
    if isinstance(body.kind, Rest) and default is REQUIRED:
        value = None  # an empty attachment is not an absent one
    if isinstance(body.kind, Many) and default is REQUIRED:
        value = None
    return replace(body, extension=header, default=value)


# ------------------------------------------------------------------------------------ messages


@dataclass(frozen=True)
class MessageSpec:
    """A declared message, structure or declaration."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    id: int = -1  # -1: a structure, without a header
    flags: tuple[str, str, str] = ("", "", "")  # the letters of header bits 5, 6, 7
    fixed: tuple[tuple[str, bool], ...] = ()  # letters that tell this message from another
    keeps_unknown: bool = False  # unknown extensions are kept and sent on
    marker: bool = False  # 2018: decorates the next message
    markers: tuple[str, ...] = ()  # 2018: what may decorate this message
    inner: bool = False  # stands inside another message only, with ids of its own
    aliases: tuple[tuple[int, str], ...] = ()  # ids it is read under, and the flag each implies
    refuses_stray: bool = False  # a field set where it has no place is refused, not dropped
    head: str = ""  # the field before which lanes cut it that make no message

    @property
    def extensible(self) -> bool:
        """Whether extensions may follow (flag Z in bit 7)."""
        return self.flags[2] == "Z" and not self.marker

    @property
    def plain(self) -> tuple[Field, ...]:
        """The fields that are not extensions, in wire order."""
        return tuple(f for f in self.fields if not f.extension)

    @property
    def extensions(self) -> tuple[Field, ...]:
        """The extensions, in the order in which they are written."""
        return tuple(f for f in self.fields if f.extension)

    def bit(self, letter: str) -> int:
        """The header bit of a flag letter, or 0 if the header has none."""
        return {name: 0x20 << i for i, name in enumerate(self.flags) if name}.get(letter, 0)


@dataclass
class ProtocolPage:
    """One page of declarations, and the pages whose messages it uses."""

    name: str
    title: str
    protocol: str  # "1.x" or "2018"
    imports: tuple[ProtocolPage, ...] = ()
    markers: tuple[str, ...] = ()  # 2018: the messages that decorate the others
    specs: dict[str, MessageSpec] = field(default_factory=dict)

    def find(self, name: str) -> MessageSpec:
        """A message of this page or of one it uses."""
        for page in self.closure():
            if name in page.specs:
                return page.specs[name]
        raise KeyError(name)

    def closure(self) -> list[ProtocolPage]:
        """This page and every page it uses, each once."""
        pages: list[ProtocolPage] = [self]
        for page in self.imports:
            pages.extend(p for p in page.closure() if p not in pages)
        return pages

    def message(
        self, id: int, flags: str = "", *, keeps_unknown: bool = False,
        marker: bool = False, inner: bool = False, aliases: Mapping[int, str] | None = None,
        head: str = "", **fixed: bool,
    ) -> Callable[[type], type]:  # fmt: skip
        """Declare a message; `flags` names header bits 5, 6 and 7 in that order.

        In 1.x bit 7 announces extensions unless `flags` says otherwise; in 2018 it is a flag.
        """
        old = self.protocol == "2018"
        letters = flags or ("- - -" if old else "- - Z")
        low, middle, high = (("" if letter == "-" else letter) for letter in letters.split())
        options = {
            "id": id, "flags": (low, middle, high), "fixed": tuple(fixed.items()),
            "keeps_unknown": keeps_unknown, "marker": marker, "inner": inner,
            "markers": () if marker or inner else self.markers,
            "aliases": tuple((aliases or {}).items()), "refuses_stray": old,
            "head": head,
        }  # fmt: skip
        return lambda declared: self._add(declared, **options)

    def structure(self, declared: type) -> type:
        """Declare a structure: fields without a header."""
        return self._add(declared)

    def _add(self, declared: type, **options: object) -> type:
        fields = tuple(
            replace(value, name=name)
            for name, value in vars(declared).items()
            if isinstance(value, Field)
        )
        plain = [f for f in fields if not f.extension]
        # Extensions stand between the plain fields and the body: declared order is wire order.
        spec = MessageSpec(
            declared.__name__, (declared.__doc__ or "").strip(), fields, **options  # type: ignore[arg-type]
        )  # fmt: skip
        known = {*spec.flags, *[letter for f in plain for letter in letters_of(f.kind)]}
        for used in fields:
            for condition in used.conditions:
                if condition.flag and condition.flag not in known:
                    raise ValueError(f"{spec.name}.{used.name}: no flag {condition.flag!r}")
        self.specs[spec.name] = spec
        return declared


def letters_of(kind: Kind) -> tuple[str, ...]:
    """The flag letters that a kind brings along."""
    match kind:
        case FlagByte(letters=letters):
            return letters
        case Int(low_flag=letter) if letter:
            return (letter,)
        case _:
            return ()

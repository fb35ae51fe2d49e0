"""Kinds of fields: how a value looks on the wire."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ByEncoding",
    "Bytes",
    "CompactId",
    "Flag",
    "FlagByte",
    "HeaderBits",
    "Identity",
    "Int",
    "Kind",
    "Lease",
    "Many",
    "Messages",
    "Ntp64",
    "OneOf",
    "Rest",
    "Struct",
    "Text",
    "Unit",
    "Zid",
]


@dataclass(frozen=True)
class Kind:
    """How a value looks on the wire."""


@dataclass(frozen=True)
class Int(Kind):
    """An unsigned integer: `u8`, `u16` (little-endian), `vle` (1.x) or `nat` (2018)."""

    form: str
    limit: int
    wrap: bool = False  # a larger value is cut to the limit's bits, as the reference does
    mask: int = 0  # keep these bits only (0: all)
    legal: tuple[int, ...] = ()  # any other value is refused
    low_flag: str = ""  # this flag letter lives in the lowest bit, the value above it
    names: tuple[tuple[int, str], ...] = ()  # what the values mean, for people


@dataclass(frozen=True)
class Bytes(Kind):
    """Bytes behind their length."""

    limit: int
    form: str = "vle"


@dataclass(frozen=True)
class Text(Kind):
    """UTF-8 behind its length in bytes."""

    limit: int
    form: str = "vle"


@dataclass(frozen=True)
class Rest(Kind):
    """All the bytes that are left; `utf8`: they are text."""

    utf8: bool = False


@dataclass(frozen=True)
class Unit(Kind):
    """Nothing: being there is the message (extensions only)."""


@dataclass(frozen=True)
class Zid(Kind):
    """A node id behind its length."""


@dataclass(frozen=True)
class Identity(Kind):
    """A node id packed with some low bits: `(size-1)<<4 | low`, then the id.

    `optional`: bit 3 tells whether the id is there at all.
    """

    low: str = ""
    bits: int = 0
    legal: tuple[int, ...] = ()
    optional: bool = False
    names: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Ntp64(Kind):
    """A 64-bit time, kept as two halves (`seconds`, `fraction`)."""


@dataclass(frozen=True)
class Lease(Kind):
    """A duration kept in milliseconds; the flag says that the wire has whole seconds."""

    letter: str


@dataclass(frozen=True)
class Flag(Kind):
    """A truth value that is nothing but a flag; `within`: only if that flag is set too."""

    letter: str
    within: str = ""


@dataclass(frozen=True)
class FlagByte(Kind):
    """A byte (or integer) of flags named from bit 0 up; never stored, always derived."""

    letters: tuple[str, ...]
    form: str = "u8"


@dataclass(frozen=True)
class HeaderBits(Kind):
    """A small number kept in the header's bits 5 and 6."""

    legal: tuple[int, ...] = (0, 1, 2, 3)
    names: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class CompactId(Kind):
    """A 2018 conduit or space id: 1 + L + 2·H if the flag Z is set, else a number."""

    compact: bool = True  # how it is written unless the message says otherwise


@dataclass(frozen=True)
class Struct(Kind):
    """A declared structure, inlined."""

    name: str


@dataclass(frozen=True)
class Many(Kind):
    """Several of one kind: behind a count, a fixed number, or as many as another field has."""

    item: Kind
    fixed: int = 0
    like: str = ""
    limit: int = 0xFFFF_FFFF_FFFF_FFFF
    form: str = "vle"


@dataclass(frozen=True)
class OneOf(Kind):
    """One of several messages, told apart by their header."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Messages(Kind):
    """Network messages until a byte that does not begin one."""


@dataclass(frozen=True)
class ByEncoding(Kind):
    """A body whose shape (nothing, a number, bytes) is told by the header's bits 5 and 6."""

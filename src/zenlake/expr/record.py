"""Fields of what was sent: of a JSON object, of CDR bytes with a declared type, or of plain bytes.

A type is declared as a few lines of IDL, the last struct being that of the sample:

    enum Mode { OFF, ON };
    struct Light { long luminosity; string<32> name; Mode mode; double place[3]; };

CDR is read as DDS sends it (XCDR1, plain): four bytes that tell the byte order, then the members
in their order, each aligned to its size.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from zenlake.errors import LocalError

_SIZES: Final = {
    "boolean": "?", "octet": "B", "uint8": "B", "int8": "b", "char": "c",
    "short": "h", "int16": "h", "unsigned short": "H", "uint16": "H",
    "long": "i", "int32": "i", "unsigned long": "I", "uint32": "I",
    "long long": "q", "int64": "q", "unsigned long long": "Q", "uint64": "Q",
    "float": "f", "float32": "f", "double": "d", "float64": "d",
}  # fmt: skip
#: Items of a sequence that are read; a longer one is no record.
ITEMS_MAX: Final = 65536
#: Characters of a number in text.
DIGITS_MAX: Final = 400
_BLANKS: Final = " \t\r\n"
_NUMBER: Final = re.compile(r"[+-]?(\d+|(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?)", re.ASCII)
_MEMBER: Final = re.compile(
    r"\s*(?:@\w+(?:\([^)]*\))?\s*)*(?P<type>(?:unsigned\s+)?(?:long\s+long|[A-Za-z_][\w:]*)"
    r"(?:\s*<\s*(?P<inner>[^>]+?)\s*>)?)\s+(?P<name>[A-Za-z_]\w*)(?:\s*\[\s*(?P<count>\d+)\s*\])?\s*"
)
_BLOCK: Final = re.compile(r"\b(struct|enum)\s+([A-Za-z_]\w*)\s*\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class StructMember:
    """A member of a struct."""

    name: str
    type: str
    #: Items of an array; 0: it is none.
    count: int = 0
    sequence: bool = False


@dataclass(frozen=True, slots=True)
class Type:
    """A declared type: structs and enumerations by name, and which of them the sample is."""

    root: str
    structs: Mapping[str, tuple[StructMember, ...]]
    enums: Mapping[str, tuple[str, ...]]

    def record(self, payload: bytes) -> dict[str, Any] | None:
        """The fields of a payload, or None if it is not of this type."""
        try:
            return _Cdr(payload, self).struct(self.root, 0)
        except (struct.error, IndexError, UnicodeDecodeError, ValueError):
            return None


@lru_cache(maxsize=256)
def parse_type(text: str) -> Type:
    """Read a declared type; raises `ValueError` for what is none."""
    structs: dict[str, tuple[StructMember, ...]] = {}
    enums: dict[str, tuple[str, ...]] = {}
    root = ""
    for kind, name, body in _BLOCK.findall(text):
        if kind == "enum":
            enums[name] = tuple(label.strip() for label in body.split(",") if label.strip())
            continue
        members = tuple(_member(line, text) for line in body.split(";") if line.strip())
        for member in members:
            if member.type not in (*_SIZES, "string", *structs, *enums):
                raise TypeDeclarationError(
                    f"'{member.type}' of '{member.name}' is not declared before it is used"
                )
        structs[name] = members
        root = name
    if not root:
        raise TypeDeclarationError(
            "a type is declared by a struct: struct Light { long luminosity; };"
        )
    return Type(root, structs, enums)


class TypeDeclarationError(LocalError, ValueError):
    """A declaration of a type that does not parse."""


def _member(line: str, text: str) -> StructMember:
    match = _MEMBER.fullmatch(line)
    if match is None:
        raise TypeDeclarationError(f"'{line.strip()}' is no member such as 'long luminosity'")
    kind = re.sub(r"\s+", " ", match["type"].split("<")[0]).strip().split("::")[-1]
    if kind == "sequence":
        inner = re.sub(r"\s+", " ", (match["inner"] or "").split(",")[0]).strip()
        return StructMember(match["name"], inner.split("::")[-1], sequence=True)
    return StructMember(match["name"], kind, int(match["count"] or 0))


class _Cdr:
    def __init__(self, payload: bytes, type: Type) -> None:
        if len(payload) < 4 or payload[0] != 0 or payload[1] > 1:
            raise ValueError("no plain CDR")
        self._data = payload[4:]
        self._order = "<" if payload[1] else ">"
        self._place = 0
        self._type = type

    def struct(self, name: str, depth: int) -> dict[str, Any]:
        if depth > 16:
            raise ValueError("too deep")
        return {member.name: self._member(member, depth) for member in self._type.structs[name]}

    def _member(self, member: StructMember, depth: int) -> Any:
        if not member.sequence and not member.count:
            return self._one(member.type, depth)
        count = self._number("I") if member.sequence else member.count
        if count > ITEMS_MAX:
            raise ValueError("too long")
        return [self._one(member.type, depth) for _ in range(count)]

    def _one(self, kind: str, depth: int) -> Any:
        if kind == "string":
            size = self._number("I")
            if size > len(self._data) - self._place:
                raise ValueError("too short")
            text = self._data[self._place : self._place + size]
            self._place += size
            return text.rstrip(b"\0").decode()
        if kind in self._type.enums:
            return self._type.enums[kind][self._number("I")]
        if kind in self._type.structs:
            return self.struct(kind, depth + 1)
        value = self._number(_SIZES[kind])
        return value.decode("latin-1") if isinstance(value, bytes) else value

    def _number(self, form: str) -> Any:
        size = struct.calcsize(form)
        self._place += -self._place % size
        (value,) = struct.unpack_from(self._order + form, self._data, self._place)
        self._place += size
        return value


def json_record(payload: bytes) -> dict[str, Any] | None:
    """The fields of a payload that is a JSON object; None if it is none."""
    if payload.lstrip()[:1] != b"{":
        return None
    value = json_value(payload)
    return value if isinstance(value, dict) else None


def json_value(payload: bytes) -> Any:
    """The value of a payload that is JSON; None if it is none.

    Strictly: in UTF-8, with finite numbers, and no name twice in one object.
    """
    try:
        return _DECODER.decode(payload.decode())
    except (ValueError, RecursionError):
        return None


def implied_value(payload: bytes) -> dict[str, Any] | list[Any] | int | float | str | bytes:
    """Return what a payload is whose publisher named no encoding, by its bytes alone.

    A JSON object or array is that; the text of a number is the number; other UTF-8 is text; and
    what is no UTF-8 stays bytes. The rule looks at one payload and at nothing before it.
    """
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return payload
    inner = text.strip(_BLANKS)
    if inner[:1] in ("{", "["):
        value = json_value(payload)
        return text if value is None else value
    number = number_of(inner)
    return text if number is None else number


def number_of(digits: str) -> int | float | None:
    """Return the number that a text spells; None if it spells none, or one too large to hold."""
    if len(digits) > DIGITS_MAX or not _NUMBER.fullmatch(digits):
        return None
    if digits.lstrip("+-").isdigit():
        integer = int(digits)
        return integer if -(1 << 63) <= integer < 1 << 63 else float(digits)
    value = float(digits)
    return value if math.isfinite(value) else None


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:40]} is beyond all doubles")
    return number


_DECODER: Final = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_named_once
)


def field_of(record: Mapping[str, Any], name: str) -> Any:
    """A field by its name, whose dots and indices lead inwards; None if it is not there."""
    value: Any = record
    for part in name.split("."):
        word, bracket, index = part.partition("[")
        if not isinstance(value, Mapping) or word not in value:
            return None
        value = value[word]
        if bracket:
            place = int(index[:-1])
            if not isinstance(value, list) or place >= len(value):
                return None
            value = value[place]
    return value if isinstance(value, int | float | str | bool) else None

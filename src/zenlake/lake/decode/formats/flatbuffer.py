"""FlatBuffers, read by a binary schema: `flatc -b --schema fleet.fbs` writes `fleet.bfbs`.

    type: {bfbs: "/etc/zenlake/fleet.bfbs", table: "fleet.Arm"}

Without `table` the encoding of a sample says it (`application/x-flatbuffers;fleet.Arm`), or it is
the root of the schema. Tables and structs inside are mappings, enumerations their names, vectors of
bytes are bytes. Nothing but the schema is needed: the library has no reader of such schemas.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, final

from zenlake.errors import ConfigError
from zenlake.lake.decode.formats.flatbuffer_pages import FlatPage, FlatTable
from zenlake.lake.model.decoder import Fields, Reason, Undecodable

__all__ = ["FlatBuffer", "demand_schema"]

MAGIC: Final = b"BFBS"
_UBYTE, _STRING, _VECTOR, _OBJECT, _UNION, _ARRAY = 4, 13, 14, 15, 16, 17
_SCALARS: Final = {
    code: struct.Struct(f"<{letter}")
    for code, letter in {
        **{1: "B", 2: "?", 3: "b", 4: "B", 5: "h", 6: "H", 7: "i", 8: "I", 9: "q", 10: "Q"},
        **{11: "f", 12: "d"},
    }.items()
}
_FLOATS: Final = (11, 12)
_BYTE, _SHORT, _INT = _SCALARS[3], _SCALARS[6], _SCALARS[7]
_LONG, _DOUBLE = _SCALARS[9], _SCALARS[12]


class FlatBuffer:
    """Reads FlatBuffers by the binary schema that the table's configuration names."""

    encodings = ("application/x-flatbuffers", "application/flatbuffers")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The fields by name; those that are absent and have no default are null."""
        if not isinstance(type, Mapping) or "bfbs" not in type:
            raise Undecodable(
                "a flatbuffer does not say what it holds; say it under `type`: "
                "{bfbs: 'file.bfbs', table: 'namespace.Name'}",
                Reason.DECODER,
            )
        known = _schema(str(type["bfbs"]))
        name = str(type.get("table") or schema.strip() or known.root)
        described = known.objects.get(name)
        if described is None or described.is_struct:
            raise Undecodable(f"'{type['bfbs']}' has no table '{name[:200]}'", Reason.DECODER)
        return known.fields(FlatPage(payload).root(), described)


def demand_schema(given: Mapping[str, Any], where: str) -> None:
    """Refuse a `type` with a schema that says something else, too."""
    for name, value in given.items():
        if name not in ("bfbs", "table") or not isinstance(value, str):
            raise ConfigError(
                f"{where}: {name}: {value!r} means nothing beside bfbs; write "
                "{bfbs: 'file.bfbs', table: 'namespace.Name'}"
            )


# --- what a schema says -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Type:
    base: int
    element: int
    index: int
    count: int


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    type: _Type
    slot: int
    offset: int
    default: int | float | None


@dataclass(slots=True)
class _Object:
    name: str
    is_struct: bool
    size: int
    fields: list[_Field]


@dataclass(slots=True)
class _Enum:
    names: dict[int, str]
    #: What a member of a union is.
    types: dict[int, _Type] = field(default_factory=dict)


@final
class _Schema:
    """The tables, structs and enumerations of a binary schema."""

    def __init__(self, page: FlatPage) -> None:
        top = page.root()
        self.order = [_object(one) for one in top.tables(0)]
        self.enums = [_enum(one) for one in top.tables(1)]
        root = top.inner(4)
        self.root = "" if root is None else root.text(0)
        self.objects = {one.name: one for one in self.order}
        for one in self.order:
            for each in one.fields:
                self._demand_known(each.type)
        for enum in self.enums:
            for type in enum.types.values():
                self._demand_known(type)

    def _demand_known(self, type: _Type) -> None:
        kinds = (type.base, type.element)
        places = len(self.order) if _OBJECT in kinds else len(self.enums)
        if type.index >= places or (type.index < 0 and (_OBJECT in kinds or _UNION in kinds)):
            raise Undecodable(f"a type that the schema does not have: {type.index}")

    # -------------------------------------------------------------------------------- values

    def fields(self, table: FlatTable, of: _Object) -> dict[str, object]:
        values: dict[str, object] = {}
        for one in of.fields:
            if one.type.base != _UNION:
                values[one.name] = self._field(table, one)
                continue
            # What it is stands in the field before it.
            kind = table.number(one.slot - 1, _SCALARS[1], 0)
            at, member = table.at(one.slot), self.enums[one.type.index].types.get(kind)
            values[one.name] = (
                None if at is None or member is None else self._inner(table, at, member)
            )
        return values

    def _field(self, table: FlatTable, one: _Field) -> object:
        at = table.at(one.slot)
        if at is None:
            return None if one.default is None else self._named(one.type, one.default)
        return self._inner(table, at, one.type)

    def _inner(self, table: FlatTable, at: int, type: _Type) -> object:
        """The value of a field of a table."""
        page = table.page
        page.walk(1)
        if type.base == _STRING:
            return page.text(page.place(at))
        if type.base == _OBJECT:
            described = self.order[type.index]
            if described.is_struct:
                return self._struct(page, at, described)
            return self.fields(page.table(page.place(at), table.depth + 1), described)
        if type.base == _VECTOR:
            return self._vector(table, page.place(at), type)
        return self._scalar(page, at, type)

    def _vector(self, table: FlatTable, at: int, type: _Type) -> object:
        page, element = table.page, type.element
        described = self.order[type.index] if element == _OBJECT else None
        inline = _SCALARS[element].size if element in _SCALARS else 4
        if described is not None and described.is_struct:
            inline = described.size
        start, count = page.vector(at, inline)
        if element == _UBYTE and type.index < 0:
            return page.data[start : start + count]
        page.walk(count)
        places = range(start, start + count * inline, inline)
        item = _Type(element, 0, type.index, 0)
        if described is not None and described.is_struct:
            return [self._struct(page, place, described) for place in places]
        if described is not None:
            return [
                self.fields(page.table(page.place(place), table.depth + 1), described)
                for place in places
            ]
        if element == _STRING:
            return [page.text(page.place(place)) for place in places]
        if element not in _SCALARS:
            raise Undecodable("vectors of unions are not read", Reason.DECODER)
        return [self._scalar(page, place, item) for place in places]

    def _struct(self, page: FlatPage, at: int, of: _Object, depth: int = 0) -> dict[str, object]:
        page.walk(1 + len(of.fields))
        if depth > len(self.order):
            raise Undecodable(f"{of.name} is inside of itself", Reason.DECODER)
        return {one.name: self._laid(page, at + one.offset, one.type, depth) for one in of.fields}

    def _laid(self, page: FlatPage, at: int, type: _Type, depth: int) -> object:
        """A value that lies in a struct itself."""
        if type.base == _OBJECT:
            return self._struct(page, at, self.order[type.index], depth + 1)
        if type.base != _ARRAY:
            return self._scalar(page, at, type)
        page.walk(type.count)
        item = _Type(type.element, 0, type.index, 0)
        size = self.order[type.index].size if type.element == _OBJECT else _form(type.element).size
        return [self._laid(page, at + n * size, item, depth) for n in range(type.count)]

    def _scalar(self, page: FlatPage, at: int, type: _Type) -> object:
        return self._named(type, page.value(_form(type.base), at))

    def _named(self, type: _Type, value: int | float | bool) -> object:
        """Members of enumerations by their names; truth values and numbers as they are."""
        if type.index >= 0 and type.base in _SCALARS and type.base not in _FLOATS:
            return self.enums[type.index].names.get(int(value), str(value))
        return bool(value) if type.base == 2 else value


def _form(base: int) -> struct.Struct:
    form = _SCALARS.get(base)
    if form is None:
        raise Undecodable(f"fields of kind {base} are not read", Reason.DECODER)
    return form


def _type(table: FlatTable | None) -> _Type:
    if table is None:
        raise Undecodable("a field without a type")
    return _Type(
        table.number(0, _BYTE, 0),
        table.number(1, _BYTE, 0),
        table.number(2, _INT, -1),
        table.number(3, _SHORT, 0),
    )


def _object(table: FlatTable) -> _Object:
    is_struct = bool(table.number(2, _BYTE, 0))
    fields = [_field(one) for one in table.tables(1) if not one.number(6, _BYTE, 0)]
    return _Object(
        table.text(0),
        is_struct,
        table.number(4, _INT, 0),
        sorted(fields, key=lambda one: one.slot),
    )


def _field(table: FlatTable) -> _Field:
    type = _type(table.inner(1))
    default: int | float | None = None
    if type.base in _SCALARS and not table.number(11, _BYTE, 0):
        default = table.number(4, _LONG, 0)
        if type.base in _FLOATS:
            at = table.at(5)
            default = 0.0 if at is None else float(table.page.value(_DOUBLE, at))
    return _Field(
        table.text(0), type, table.number(2, _SHORT, 0), table.number(3, _SHORT, 0), default
    )


def _enum(table: FlatTable) -> _Enum:
    made = _Enum({})
    for value in table.tables(1):
        number = value.number(1, _LONG, 0)
        made.names[number] = value.text(0)
        of = value.inner(3)
        if of is not None:
            type = _type(of)
            if type.base in (_OBJECT, _STRING):
                made.types[number] = type
    return made


@lru_cache(maxsize=64)
def _schema(path: str) -> _Schema:
    try:
        with open(path, "rb") as file:
            data = file.read()
        if data[4:8] != MAGIC:
            raise Undecodable("it does not begin like one")
        return _Schema(FlatPage(data))
    except (OSError, Undecodable) as error:
        raise Undecodable(
            f"'{path}' is no binary schema ({error}); make it with `flatc -b --schema FILE.fbs`",
            Reason.DECODER,
        ) from error

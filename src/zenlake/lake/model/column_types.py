"""Kinds of columns by name, as Spark writes types, and the Arrow types that they stand for.

    bigint · double · string · binary · boolean · tinyint · smallint · int · float · date
    timestamp · decimal(20,0) · array<bigint> · map<string,string> · struct<x:double,y:double>

A name can be put into a table's plan, sent to a task and compared; a type of Arrow cannot always,
for tables give the insides of lists other names than programs do.
"""

from __future__ import annotations

import re
from typing import Final, final

import pyarrow as pa

from zenlake.journal.schema import INSTANT
from zenlake.lake.model.value_types import name_key

__all__ = ["ARROW", "ArrowTypes", "kind_name"]

SIMPLE: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": INSTANT,
}
MOST_DEPTH: Final = 20
"""Of lists, structs and maps in a column."""
_NAMES: Final = {arrow: name for name, arrow in SIMPLE.items()}
_TOKEN: Final = re.compile(r"`(?P<quoted>[^`]+)`|(?P<word>\w+)|(?P<sign>[<>(),:])")
_PLAIN: Final = re.compile(r"\w+")


@final
class ArrowTypes(dict[str, pa.DataType]):
    """Arrow types by the names of kinds; those that are made of others are read when asked for."""

    MOST: Final = 10_000

    def __missing__(self, kind: str) -> pa.DataType:
        """Read a name; `KeyError` if it is none."""
        arrow = _Reader(kind).parsed()
        if len(self) < self.MOST:
            self[kind] = arrow
        return arrow


ARROW: Final = ArrowTypes(SIMPLE)


def kind_name(arrow: pa.DataType, depth: int = 0) -> str | None:
    """Return the name of the kind that holds values of this type; None if no column does.

    No column holds a struct whose fields readers would take for one (`name_key`), decimals of
    hundreds alone, and what is nested so deep that files of Parquet cannot be read.
    """
    if depth > MOST_DEPTH:
        return None
    if pa.types.is_struct(arrow):
        inner = [(field.name, kind_name(field.type, depth + 1)) for field in arrow]
        if not inner or any(kind is None or not name or "`" in name for name, kind in inner):
            return None
        if len({name_key(name) for name, _ in inner}) < len(inner):
            return None
        return f"struct<{','.join(f'{_quoted(name)}:{kind}' for name, kind in inner)}>"
    if pa.types.is_map(arrow):
        key, item = kind_name(arrow.key_type, depth + 1), kind_name(arrow.item_type, depth + 1)
        return None if key is None or item is None else f"map<{key},{item}>"
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        item = kind_name(arrow.value_type, depth + 1)
        return None if item is None else f"array<{item}>"
    if pa.types.is_decimal128(arrow):
        return f"decimal({arrow.precision},{arrow.scale})" if arrow.scale >= 0 else None
    if pa.types.is_timestamp(arrow):
        return "timestamp"
    if pa.types.is_large_string(arrow):
        return "string"
    if pa.types.is_large_binary(arrow):
        return "binary"
    return _NAMES.get(arrow)


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name}`"


class _Reader:
    """Reads one name from its start to its end."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._tokens = list(_TOKEN.finditer(kind))
        self._at = 0
        if "".join(one[0] for one in self._tokens) != kind:
            raise KeyError(kind)

    def parsed(self) -> pa.DataType:
        arrow = self._type()
        if self._at != len(self._tokens):
            raise KeyError(self._kind)
        return arrow

    def _type(self) -> pa.DataType:
        name = self._next("word")
        if name == "array":
            self._sign("<")
            item = self._type()
            self._sign(">")
            return pa.list_(item)
        if name == "map":
            self._sign("<")
            key = self._type()
            self._sign(",")
            item = self._type()
            self._sign(">")
            return pa.map_(key, item)
        if name == "struct":
            return self._struct()
        if name == "decimal":
            self._sign("(")
            precision = int(self._next("word"))
            self._sign(",")
            scale = int(self._next("word"))
            self._sign(")")
            return pa.decimal128(precision, scale)
        if name not in SIMPLE:
            raise KeyError(self._kind)
        return SIMPLE[name]

    def _struct(self) -> pa.DataType:
        fields: list[tuple[str, pa.DataType]] = []
        self._sign("<")
        while True:
            name = self._next("quoted", "word")
            self._sign(":")
            fields.append((name, self._type()))
            if self._next("sign") == ">":
                return pa.struct(fields)

    def _next(self, *kinds: str) -> str:
        if self._at >= len(self._tokens):
            raise KeyError(self._kind)
        token = self._tokens[self._at]
        self._at += 1
        for kind in kinds:
            if token[kind] is not None:
                return str(token[kind])
        raise KeyError(self._kind)

    def _sign(self, sign: str) -> None:
        if self._next("sign") != sign:
            raise KeyError(self._kind)

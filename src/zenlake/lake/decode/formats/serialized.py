"""Zenoh's own serialisation, which does not say what it holds: the configuration must.

type: "float64"                        one value
type: "list<float32>"                  a list of them
type: {x: "float64", name: "string"}   a tuple; its items are fields
type: "map<string, int32>"             the keys are fields
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from zenlake.errors import ConfigError, SerializeError
from zenlake.lake.model.decoder import WHOLE, Fields, Undecodable
from zenlake.values import (
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    z_deserialize,
)

__all__ = ["Serialized", "python_type"]

_NAMES: Final[Mapping[str, Any]] = {
    "bool": bool,
    "int8": Int8,
    "int16": Int16,
    "int32": Int32,
    "int64": Int64,
    "uint8": UInt8,
    "uint16": UInt16,
    "uint32": UInt32,
    "uint64": UInt64,
    "float32": Float32,
    "float64": Float64,
    "string": str,
    "bytes": bytes,
}
_LIST: Final = re.compile(r"list\s*<(.+)>")
_MAP: Final = re.compile(r"map\s*<\s*string\s*,(.+)>")


class Serialized:
    """Reads `zenoh/serialized` with the type that the table's configuration says."""

    encodings = ("zenoh/serialized",)

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The items of the tuple by the names in `type`, or the value."""
        if type is None:
            raise Undecodable("serialised values do not say their type; say it under `type`")
        try:
            value = z_deserialize(_plan(_frozen(type)), payload)
        except SerializeError as error:
            raise Undecodable(f"not of this type: {error}") from error
        plain = _plain(value, type)
        return plain if isinstance(plain, dict) else {WHOLE: plain}


def python_type(described: object) -> Any:
    """The Python type that `z_deserialize` reads for a `type` of the configuration."""
    if isinstance(described, Mapping):
        if not described:
            raise ConfigError("a type without fields holds nothing; write {name: type}")
        return tuple.__class_getitem__(tuple(python_type(item) for item in described.values()))
    if not isinstance(described, str):
        raise ConfigError(f"{described!r} is no type; write a name or an object of them")
    described = described.strip()
    if described in _NAMES:
        return _NAMES[described]
    inner = _LIST.fullmatch(described)
    if inner:
        return list[python_type(inner[1])]  # type: ignore[misc]
    inner = _MAP.fullmatch(described)
    if inner:
        return dict[str, python_type(inner[1])]  # type: ignore[misc]
    raise ConfigError(
        f"'{described}' is no type; write one of {', '.join(_NAMES)}, list<…>, map<string, …> "
        "or an object of them"
    )


@lru_cache(maxsize=256)
def _plan(frozen: object) -> Any:
    return python_type(_thawed(frozen))


def _frozen(described: object) -> object:
    if isinstance(described, Mapping):
        return tuple((name, _frozen(item)) for name, item in described.items())
    return described


def _thawed(frozen: object) -> object:
    if isinstance(frozen, tuple):
        return {name: _thawed(item) for name, item in frozen}
    return frozen


def _plain(value: object, type: object) -> object:
    if isinstance(type, Mapping) and isinstance(value, tuple):
        return {
            name: _plain(item, inner)
            for item, (name, inner) in zip(value, type.items(), strict=True)
        }
    if isinstance(value, dict):
        return {name: _plain(item, None) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, None) for item in value]
    if isinstance(value, bool | str | bytes):
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value

"""Protocol Buffers, read by a descriptor set: `protoc --include_imports --descriptor_set_out=…`.

    type: {descriptors: "/etc/zenlake/fleet.pb", message: "fleet.Pose"}

The message may be said by the sample instead, in the schema of its encoding:
`application/protobuf;fleet.Pose`. Messages inside are mappings, enumerations their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from zenlake.errors import ConfigError
from zenlake.lake.decode.formats.bounded import fields_of, library
from zenlake.lake.model.decoder import Fields, Reason, Undecodable

__all__ = ["Protobuf", "demand_type"]


class Protobuf:
    """Reads `application/protobuf` by the descriptor set that the table's configuration names."""

    encodings = ("application/protobuf",)

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The fields by name; those that have presence and are absent are null."""
        if not isinstance(type, Mapping) or "descriptors" not in type:
            raise Undecodable(
                "protobuf does not say what it holds; say it under `type`: "
                "{descriptors: 'file.pb', message: 'package.Name'}",
                Reason.DECODER,
            )
        name = str(type.get("message") or schema.strip())
        if not name:
            raise Undecodable("neither `type` nor the encoding says which message it is")
        message = _class(str(type["descriptors"]), name)()
        try:
            message.ParseFromString(payload)
        except Exception as error:  # DecodeError of a library that may not be there
            raise Undecodable(f"not a {name}: {error}") from error
        return fields_of(_values(message))


def demand_type(given: Mapping[str, Any], where: str) -> None:
    """Refuse a `type` with descriptors that says something else, too."""
    for name, value in given.items():
        if name not in ("descriptors", "message") or not isinstance(value, str):
            raise ConfigError(
                f"{where}: {name}: {value!r} means nothing beside descriptors; write "
                "{descriptors: 'file.pb', message: 'package.Name'}"
            )


@lru_cache(maxsize=256)
def _class(path: str, name: str) -> Any:
    try:
        descriptor = _pool(path).FindMessageTypeByName(name)
    except KeyError as error:
        raise Undecodable(f"'{path}' has no message '{name[:200]}'", Reason.DECODER) from error
    return library("google.protobuf.message_factory", "protobuf").GetMessageClass(descriptor)


@lru_cache(maxsize=64)
def _pool(path: str) -> Any:
    read = library("google.protobuf.descriptor_pb2", "protobuf").FileDescriptorSet()
    try:
        with open(path, "rb") as file:
            read.ParseFromString(file.read())
        pool = library("google.protobuf.descriptor_pool", "protobuf").DescriptorPool()
        for one in read.file:
            pool.Add(one)
    except Undecodable:
        raise
    except Exception as error:
        raise Undecodable(
            f"'{path}' is no descriptor set ({error}); make it with "
            "`protoc --include_imports --descriptor_set_out=FILE`",
            Reason.DECODER,
        ) from error
    return pool


def _values(message: Any) -> dict[str, object]:
    values: dict[str, object] = {}
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated:
            values[field.name] = _repeated(field, getattr(message, field.name))
        elif field.has_presence and not message.HasField(field.name):
            values[field.name] = None
        else:
            values[field.name] = _one(field, getattr(message, field.name))
    return values


def _repeated(field: Any, values: Any) -> object:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        inner = entry.fields_by_name["value"]
        return {str(key): _one(inner, values[key]) for key in values}
    return [_one(field, value) for value in values]


def _one(field: Any, value: Any) -> object:
    if field.message_type is not None:
        return _values(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value

"""The attributes that a declaration gives to the class of its message."""

from __future__ import annotations

from zenlake.wire.declared.schema import (
    REQUIRED,
    ByEncoding,
    Bytes,
    CompactId,
    Field,
    Flag,
    FlagByte,
    HeaderBits,
    Identity,
    Int,
    Kind,
    Lease,
    Many,
    Messages,
    MessageSpec,
    Ntp64,
    OneOf,
    Rest,
    Struct,
    Text,
    Unit,
    Zid,
)  # fmt: skip


def item_type(kind: Kind) -> str:
    """The Python type of one value of a kind."""
    match kind:
        case Int() | Lease() | HeaderBits():
            return "int"
        case Bytes() | Zid():
            return "bytes"
        case Text():
            return "str"
        case Rest(utf8=utf8):
            return "str" if utf8 else "bytes"
        case Flag() | Unit():
            return "bool"
        case Struct(name=name):
            return name
        case Many(item=item):
            return f"tuple[{item_type(item)}, ...]"
        case OneOf(names=names):
            return " | ".join(names)
        case Messages():
            return "tuple[Message, ...]"
        case ByEncoding():
            return "int | bytes | None"
        case _:
            raise TypeError(f"{kind} is not one value")


def attributes(field: Field) -> list[tuple[str, str, object]]:
    """The attributes that a field gives to its class: name, type and default."""
    match field.kind:
        case FlagByte():
            return []
        case Identity(low=low, optional=optional):
            rows: list[tuple[str, str, object]] = [(low, "int", REQUIRED)] if low else []
            return [*rows, ("zid", "bytes", b"" if optional else REQUIRED)]
        case Ntp64():
            return [("seconds", "int", REQUIRED), ("fraction", "int", REQUIRED)]
        case CompactId(compact=compact):
            return [("id", "int", REQUIRED), ("compact", "bool", compact)]
        case ByEncoding():
            return [(field.name, "int | bytes | None", None)]
        case kind:
            suffix = " | None" if field.default is None else ""
            return [(field.name, item_type(kind) + suffix, field.default)]


def markers_type(spec: MessageSpec) -> str:
    """The Python type of the markers that decorate a message."""
    return f"tuple[{' | '.join(spec.markers)}, ...]"


def spec_attributes(spec: MessageSpec) -> list[tuple[str, str, object]]:
    """All attributes of a message's class, in wire order; its markers come last."""
    listed = [attribute for field in spec.fields for attribute in attributes(field)]
    if spec.markers:
        listed.append(("markers", markers_type(spec), ()))
    if spec.keeps_unknown:
        listed.append(("extensions", "tuple[UnknownExtension, ...]", ()))
    return listed


def explicit_flags(spec: MessageSpec) -> dict[str, Field]:
    """The letters that are a field of their own."""
    return {f.kind.letter: f for f in spec.fields if isinstance(f.kind, Flag)}


def extension_place(spec: MessageSpec) -> int:
    """Before which field of a message its extensions stand; one past the last: behind all."""
    if not spec.extensible:
        return -1
    for index, field in enumerate(spec.fields):
        if field.extension or isinstance(field.kind, OneOf | Messages):
            return index
    return len(spec.fields)

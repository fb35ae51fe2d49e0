"""Descriptions of types as the text of `.msg` files, as MCAP files keep them (`ros2msg`).

The type itself comes first, then all that it refers to, each after a line of `=` and a line
`MSG: package/Name`.
"""

from __future__ import annotations

from typing import Final

from zenlake.ros2.description import (
    BASE_IDS,
    BOUNDED,
    BOUNDED_STRING,
    EMPTY_MEMBER,
    FIXED,
    NESTED,
    FieldType,
    Individual,
    TypeDescription,
)

__all__ = ["message_text"]

_LINE: Final = "=" * 80
_NAMES: Final = {number: name for name, number in BASE_IDS.items() if name != "octet"}
_BOUNDED_TEXT: Final = {BOUNDED_STRING: "string", BOUNDED_STRING + 1: "wstring"}


def message_text(description: TypeDescription) -> str:
    """The text of a type and of those that it refers to."""
    parts = [_fields(description.main)]
    for one in description.referenced:
        parts.append(f"{_LINE}\nMSG: {_short(one.name)}\n{_fields(one)}")
    return "".join(parts)


def _fields(one: Individual) -> str:
    return "".join(
        f"{_written(field.type)} {field.name}\n"
        for field in one.fields
        if field.name != EMPTY_MEMBER
    )


def _written(type: FieldType) -> str:
    base = type.base
    if base == NESTED:
        name = _short(type.nested)
    elif base in _BOUNDED_TEXT:
        name = f"{_BOUNDED_TEXT[base]}<={type.string_capacity}"
    else:
        name = _NAMES[base]
    if not type.container:
        return name
    if type.container == FIXED:
        return f"{name}[{type.capacity}]"
    return f"{name}[<={type.capacity}]" if type.container == BOUNDED else f"{name}[]"


def _short(name: str) -> str:
    package, _, rest = name.partition("/")
    return f"{package}/{rest.rpartition('/')[2]}"

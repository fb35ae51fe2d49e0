"""What a type of ROS 2 is made of, as nodes describe it to each other, and its hash.

A description names the type, its fields, and every type that these refer to. The hash of it
(REP-2016, RIHS01) is in every key, so a description can be checked wherever it came from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zenlake.errors import DecodeError

__all__ = [
    "BASE_IDS",
    "BOUNDED",
    "BOUNDED_STRING",
    "EMPTY_MEMBER",
    "FIXED",
    "NESTED",
    "UNBOUNDED",
    "FieldType",
    "Individual",
    "MessageField",
    "TypeDescription",
    "read_description",
]

NESTED: Final = 1
BASE_IDS: Final[Mapping[str, int]] = {
    "int8": 2,
    "uint8": 3,
    "int16": 4,
    "uint16": 5,
    "int32": 6,
    "uint32": 7,
    "int64": 8,
    "uint64": 9,
    "float32": 10,
    "float64": 11,
    "float128": 12,
    "char": 13,
    "wchar": 14,
    "bool": 15,
    "byte": 16,
    "octet": 16,
    "string": 17,
    "wstring": 18,
}
"""The numbers of the types that are not made of others."""

EMPTY_MEMBER: Final = "structure_needs_at_least_one_member"
"""The field of messages that have none."""

BOUNDED_STRING: Final = 21
FIXED: Final = 48
BOUNDED: Final = 96
UNBOUNDED: Final = 144
"""Added to the number of a type: a fixed array, a sequence with a bound, one without."""

MOST_TYPES: Final = 500
MOST_FIELDS: Final = 2000


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of one field."""

    type_id: int
    capacity: int = 0
    string_capacity: int = 0
    nested: str = ""

    @property
    def base(self) -> int:
        """The number of one item, whatever holds it."""
        return (self.type_id - 1) % FIXED + 1

    @property
    def container(self) -> int:
        """0 for a single value, else FIXED, BOUNDED or UNBOUNDED."""
        return (self.type_id - 1) // FIXED * FIXED


@dataclass(frozen=True, slots=True)
class MessageField:
    """A name and a type."""

    name: str
    type: FieldType


@dataclass(frozen=True, slots=True)
class Individual:
    """One type alone, without those that it refers to."""

    name: str
    fields: tuple[MessageField, ...]


@dataclass(frozen=True, slots=True)
class TypeDescription:
    """A type, and all types that it refers to in any depth."""

    main: Individual
    referenced: tuple[Individual, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what would be read without end or refers to what is not there."""
        if len(self.referenced) > MOST_TYPES:
            raise DecodeError(f"{self.main.name} refers to more than {MOST_TYPES} types")
        known = {one.name: one for one in (*self.referenced, self.main)}
        done: set[str] = set()
        _demand_tree(self.main, known, (), done)

    def individual(self, name: str) -> Individual:
        """A type that this one refers to."""
        for one in self.referenced:
            if one.name == name:
                return one
        raise DecodeError(f"{self.main.name} refers to {name}, which is not described")

    @property
    def hash(self) -> str:
        """`RIHS01_` and a SHA-256 over the description in a fixed form."""
        plain = {
            "type_description": _plain(self.main),
            "referenced_type_descriptions": [
                _plain(one) for one in sorted(self.referenced, key=lambda one: one.name)
            ],
        }
        text = json.dumps(plain, separators=(", ", ": "), ensure_ascii=True)
        return f"RIHS01_{hashlib.sha256(text.encode()).hexdigest()}"

    def to_json(self) -> str:
        """As `read_description` takes it."""
        plain = {
            "type_description": _plain(self.main),
            "referenced_type_descriptions": [_plain(one) for one in self.referenced],
        }
        return json.dumps(plain)


def read_description(plain: Any) -> TypeDescription:
    """A description from the plain values of JSON, as packages of ROS ship them."""
    try:
        return TypeDescription(
            _individual(plain["type_description"]),
            tuple(_individual(one) for one in plain["referenced_type_descriptions"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(
            f"not a description of a type: {type(error).__name__}: {error}"
        ) from error


def _individual(plain: Any) -> Individual:
    fields = tuple(
        MessageField(
            str(one["name"]),
            FieldType(
                int(one["type"]["type_id"]),
                int(one["type"]["capacity"]),
                int(one["type"]["string_capacity"]),
                str(one["type"]["nested_type_name"]),
            ),
        )
        for one in plain["fields"]
    )
    return Individual(str(plain["type_name"]), fields)


def _plain(one: Individual) -> dict[str, object]:
    return {
        "type_name": one.name,
        "fields": [
            {
                "name": field.name,
                "type": {
                    "type_id": field.type.type_id,
                    "capacity": field.type.capacity,
                    "string_capacity": field.type.string_capacity,
                    "nested_type_name": field.type.nested,
                },
            }
            for field in one.fields
        ],
    }


def _demand_tree(
    one: Individual, known: Mapping[str, Individual], above: tuple[str, ...], done: set[str]
) -> None:
    if one.name in above:
        raise DecodeError(f"{one.name} contains itself")
    if one.name in done:
        return
    if len(one.fields) > MOST_FIELDS:
        raise DecodeError(f"{one.name} has more than {MOST_FIELDS} fields")
    for name in _nested(one):
        inner = known.get(name)
        if inner is None:
            raise DecodeError(f"{one.name} refers to {name}, which is not described")
        _demand_tree(inner, known, (*above, one.name), done)
    done.add(one.name)


def _nested(one: Individual) -> Iterator[str]:
    return (field.type.nested for field in one.fields if field.type.base == NESTED)

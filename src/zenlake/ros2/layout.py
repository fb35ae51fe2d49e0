"""How a type lies in CDR: a plan for each type, and the places of all values in one payload.

Plain CDR (XCDR1) as ROS writes it: a header of four bytes, then the fields in order, each aligned
to its size as counted from after the header. Where a value lies depends on the lengths of the
strings and sequences before it, so places are found by walking over a payload once; payloads
with the same lengths have all values in the same places.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

from zenlake.errors import DecodeError
from zenlake.ros2.description import FIXED, NESTED, FieldType, TypeDescription

__all__ = [
    "HEADER",
    "MOST_ITEMS",
    "SLACK",
    "Items",
    "ItemsAt",
    "Layout",
    "MessagePlan",
    "Node",
    "RecordAt",
    "Scalar",
    "Scalars",
    "Text",
    "TextAt",
    "ValuesAt",
    "Walked",
    "order_of",
    "plan_of",
    "walk",
]

HEADER: Final = 4
SLACK: Final = 64
"""Bytes after a message that mean nothing. Serializers of ROS guess the size before they write,
too large by some bytes for each empty sequence, and `rclpy.serialization` gives all of it."""
MOST_DEPTH: Final = 64
MOST_ITEMS: Final = 1_000_000
"""Strings and nested messages in one payload; values of plain sequences do not count."""

_CODES: Final = {
    **{2: "i1", 3: "u1", 4: "i2", 5: "u2", 6: "i4", 7: "u4", 8: "i8", 9: "u8"},
    **{10: "f4", 11: "f8", 13: "u1", 15: "b1", 16: "u1"},
}
_STRINGS: Final = (17, 21)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number or a truth value: numpy's code for it, without the order of bytes."""

    code: str

    @property
    def size(self) -> int:
        """In bytes, which is its alignment too."""
        return int(self.code[1])


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""


@dataclass(frozen=True, slots=True)
class Scalars:
    """An array of scalars: `count` of them, or as many as the payload says."""

    item: Scalar
    count: int | None


@dataclass(frozen=True, slots=True)
class Items:
    """An array of strings or messages."""

    item: Node
    count: int | None


@dataclass(frozen=True, slots=True)
class MessagePlan:
    """A message."""

    type: str
    names: tuple[str, ...]
    nodes: tuple[Node, ...]


Node: TypeAlias = Scalar | Text | Scalars | Items | MessagePlan


@dataclass(frozen=True, slots=True)
class ValuesAt:
    """Where scalars lie: a single one, or all of an array."""

    node: Scalar | Scalars
    at: int
    count: int


@dataclass(frozen=True, slots=True)
class TextAt:
    """Where the bytes of a string lie, without the NUL at its end."""

    at: int
    size: int


@dataclass(frozen=True, slots=True)
class ItemsAt:
    """Where each item lies."""

    node: Items
    items: tuple[Layout, ...]


@dataclass(frozen=True, slots=True)
class RecordAt:
    """Where each field lies."""

    node: MessagePlan
    fields: tuple[Layout, ...]


Layout: TypeAlias = ValuesAt | TextAt | ItemsAt | RecordAt


@dataclass(frozen=True, slots=True)
class Walked:
    """Where everything lies in a payload, and what of the payload decides that."""

    layout: RecordAt
    lengths: list[int]
    """Where the lengths of strings and sequences are, four bytes each."""
    ends: list[int]
    """Where the NULs at the ends of strings are."""


def plan_of(description: TypeDescription) -> MessagePlan:
    """The plan of a type; one that cannot be read is refused with its field."""
    plans: dict[str, MessagePlan] = {}
    return _record(description, description.main.name, plans, 0)


def _record(
    description: TypeDescription, name: str, plans: dict[str, MessagePlan], depth: int
) -> MessagePlan:
    if name in plans:
        return plans[name]
    if depth > MOST_DEPTH:
        raise DecodeError(f"{name} lies deeper than {MOST_DEPTH} messages")
    main = description.main
    one = main if name == main.name else description.individual(name)
    nodes: list[Node] = []
    for field in one.fields:
        node = _single(description, field.type, plans, depth, f"{name}.{field.name}")
        if field.type.container:
            count = field.type.capacity if field.type.container == FIXED else None
            if count == 0:  # every item of an array takes a byte, which bounds their number
                raise DecodeError(f"{name}.{field.name} is an array of no items")
            node = Scalars(node, count) if isinstance(node, Scalar) else Items(node, count)
        nodes.append(node)
    plans[name] = MessagePlan(name, tuple(field.name for field in one.fields), tuple(nodes))
    return plans[name]


def _single(
    description: TypeDescription,
    type: FieldType,
    plans: dict[str, MessagePlan],
    depth: int,
    where: str,
) -> Node:
    if type.base == NESTED:
        return _record(description, type.nested, plans, depth + 1)
    if type.base in _STRINGS:
        return Text()
    code = _CODES.get(type.base)
    if code is None:
        raise DecodeError(f"{where}: fields of type {type.base} (wide or long) are not read")
    return Scalar(code)


def order_of(payload: bytes) -> str:
    """The order of bytes that the header says: `<` or `>`."""
    if len(payload) < HEADER:
        raise DecodeError(f"{len(payload)} bytes are too few for the header of CDR")
    if payload[0] or payload[1] > 1:
        raise DecodeError(f"the header says {payload[:2].hex()}; plain CDR says 0000 or 0001")
    return "<" if payload[1] else ">"


def walk(plan: MessagePlan, payload: bytes, order: str) -> Walked:
    """Find the places of all values in a payload whose order of bytes is known."""
    walker = _Walker(payload, order)
    layout = walker.record(plan)
    left = len(payload) - walker.at
    if left > SLACK:
        raise DecodeError(f"{left} bytes are left over after {plan.type}")
    return Walked(layout, walker.lengths, walker.ends)


class _Walker:
    __slots__ = ("at", "ends", "items", "lengths", "payload", "word")

    def __init__(self, payload: bytes, order: str) -> None:
        self.payload = payload
        self.at = HEADER
        self.lengths: list[int] = []
        self.ends: list[int] = []
        self.items = 0
        self.word = struct.Struct(f"{order}I")

    def record(self, plan: MessagePlan) -> RecordAt:
        return RecordAt(plan, tuple([self.node(node) for node in plan.nodes]))

    def node(self, node: Node) -> Layout:
        if isinstance(node, Scalar):
            return ValuesAt(node, self._take(node.size, 1, node.size), 1)
        if isinstance(node, Text):
            return self._text()
        if isinstance(node, MessagePlan):
            return self.record(node)
        count = self._count() if node.count is None else node.count
        if isinstance(node, Scalars):
            size = node.item.size
            at = self._take(size, count, size) if count else self.at
            return ValuesAt(node, at, count)
        self._demand(count)
        return ItemsAt(node, tuple([self.node(node.item) for _ in range(count)]))

    def _text(self) -> TextAt:
        self._demand(1)
        size = self._count()
        at = self._take(1, size, 1)
        if not size:  # some writers leave the NUL of an empty string out
            return TextAt(at, 0)
        if self.payload[at + size - 1]:
            raise DecodeError(f"the string at offset {at} does not end with NUL")
        self.ends.append(at + size - 1)
        return TextAt(at, size - 1)

    def _count(self) -> int:
        at = self._take(4, 1, 4)
        self.lengths.append(at)
        return int(self.word.unpack_from(self.payload, at)[0])

    def _take(self, size: int, count: int, align: int) -> int:
        at = self.at + (HEADER - self.at) % align
        end = at + size * count
        if end > len(self.payload):
            raise DecodeError(f"{end - len(self.payload)} bytes are missing at offset {at}")
        self.at = end
        return at

    def _demand(self, more: int) -> None:
        self.items += more
        if self.items > MOST_ITEMS:
            raise DecodeError(f"more than {MOST_ITEMS:,} strings and messages in one payload")

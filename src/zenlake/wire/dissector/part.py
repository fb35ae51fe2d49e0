"""A message while it is read, and the small nodes for parts of a byte."""

from __future__ import annotations

from dataclasses import dataclass, field

from zenlake.wire.declared.schema import EXT_UNIT, EXT_Z64, EXT_ZBUF, Field, MessageSpec
from zenlake.wire.dissector.node import FieldNode

__all__ = ["DissectedPart", "Fields", "bit_node", "extension_header"]

#: A message's fields as a program sees them, with its name under `message`.
Fields = dict[str, object]


@dataclass(slots=True)
class DissectedPart:
    """A message or structure while it is read."""

    spec: MessageSpec
    node: FieldNode
    header: int = 0
    values: Fields = field(default_factory=dict)
    letters: dict[str, bool] = field(default_factory=dict)

    def has(self, letter: str) -> bool:
        """Whether a flag is set."""
        bit = self.spec.bit(letter)
        return bool(self.header & bit) if bit else self.letters.get(letter, False)

    def holds(self, wanted: Field) -> bool:
        """Whether a field is there."""
        for condition in wanted.conditions:
            if condition.flag:
                if not self.has(condition.flag):
                    return False
                continue
            value = self.values[condition.name]
            true = value in condition.values if condition.values else bool(value)
            if true == condition.negated:
                return False
        return True


def bit_node(
    offset: int, name: str, byte: int, mask: int, value: object, meaning: str
) -> FieldNode:
    """A part of a byte."""
    digits = "".join(
        str(byte >> place & 1) if mask >> place & 1 else "." for place in range(7, -1, -1)
    )
    return FieldNode(offset, name, value=value, meaning=meaning, bits=f"{digits[:4]} {digits[4:]}")


def extension_header(offset: int, tag: int) -> FieldNode:
    """The header byte of an extension."""
    shape = {EXT_UNIT: "without a body", EXT_Z64: "a number", EXT_ZBUF: "bytes"}.get(tag & 0x60)
    must = "mandatory" if tag & 0x10 else "optional"
    after = "another follows" if tag & 0x80 else "the last"
    meaning = f"extension {tag & 0x0F}, {shape or 'reserved'}, {must}, {after}"
    return FieldNode(offset, "header", bytes((tag,)), f"0x{tag:02x}", meaning)

"""Draws a message from its declaration: one row a byte, or a wavy row for what can be longer."""

from __future__ import annotations

from zenlake.wire.declared.attributes import extension_place
from zenlake.wire.declared.schema import (
    ByEncoding,
    CompactId,
    Condition,
    Field,
    Flag,
    FlagByte,
    HeaderBits,
    Identity,
    Int,
    Messages,
    MessageSpec,
    OneOf,
)

__all__ = ["picture", "presence"]

RULE = "+---+---+---+---+---+---+---+---+"
INSIDE = len(RULE) - 2


def presence(field: Field) -> str:
    """When a field is there, in words; empty: always."""
    return " and ".join(_condition(condition) for condition in field.conditions)


def _condition(condition: Condition) -> str:
    if condition.flag:
        return condition.flag
    values, name = condition.values, condition.name
    if not values:
        return f"not {name}" if condition.negated else name
    listed = " or ".join(map(str, values))
    if len(values) > 3 and values == tuple(range(values[0], values[-1] + 1)):
        listed = f"{values[0]} to {values[-1]}"
    return f"{name} is not {listed}" if condition.negated else f"{name} is {listed}"


def picture(spec: MessageSpec, id_text: str) -> str:
    """The message as a drawing; its header first, if it has one."""
    lines = ["  7   6   5   4   3   2   1   0", RULE]

    def row(drawn: str, remark: str = "") -> None:
        lines.extend((f"{drawn}  {remark}".rstrip(), RULE))

    if spec.id >= 0:
        row(_header(spec, id_text))
    place = extension_place(spec)
    for index, field in enumerate(spec.fields):
        if index == place:
            row(_wavy("extensions"), "if Z")
        if not field.extension and not isinstance(field.kind, Flag | HeaderBits):
            remark = presence(field)
            for drawn, more in _field(field):
                row(drawn, more or (f"if {remark}" if remark else ""))
    if place == len(spec.fields):
        row(_wavy("extensions"), "if Z")
    return "\n".join(lines)


def _header(spec: MessageSpec, id_text: str) -> str:
    cells = [(letter or "-", 1) for letter in reversed(spec.flags)]
    for field in spec.fields:
        if isinstance(field.kind, HeaderBits | ByEncoding):
            name = field.name if isinstance(field.kind, HeaderBits) else "shape"
            cells = [cells[0], (name, 2)]
    return _cells([*cells, (id_text, 5)])


def _field(field: Field) -> list[tuple[str, str]]:
    """The rows of a field, each with a remark of its own or none."""
    match field.kind:
        case FlagByte(letters=letters):
            padded = [*letters, *"-" * (8 - len(letters))]
            return [(_cells([(letter, 1) for letter in reversed(padded)]), "")]
        case Identity(low=low, bits=bits, optional=optional):
            zeros = 4 - bits - (1 if optional else 0)
            cells = [("size - 1", 4), *[("I", 1)] * optional, *[("-", 1)] * zeros]
            cells += [(low, bits)] if low else []
            return [(_cells(cells), ""), (_wavy("zid"), "if I" if optional else "")]
        case Int(form="u8"):
            return [(f"|{field.name:^{INSIDE}}|", "")]
        case Int(form="u16"):
            return [(f"|{field.name + ', low byte':^{INSIDE}}|", ""),
                    (f"|{field.name + ', high byte':^{INSIDE}}|", "")]  # fmt: skip
        case Int(low_flag=letter) if letter:
            return [(_wavy(f"{field.name} << 1 | {letter}"), "")]
        case CompactId():
            return [(_wavy(field.name), "if not Z")]
        case OneOf(names=names) if len(names) <= 3:
            return [(_wavy(" or ".join(names)), "")]
        case Messages():
            return [(_wavy("network messages"), "")]
        case _:
            return [(_wavy(field.name), "")]


def _cells(cells: list[tuple[str, int]]) -> str:
    return "|" + "|".join(f"{text:^{4 * width - 1}}" for text, width in cells) + "|"


def _wavy(text: str) -> str:
    return f"~{text:^{INSIDE}}~"

"""What the emitters share: blocks of code, and the sense of a flag."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from zenlake.wire.declared.attributes import explicit_flags
from zenlake.wire.declared.schema import (
    Condition,
    Flag,
    Identity,
    Int,
    Kind,
    MessageSpec,
    OneOf,
    Rest,
    Struct,
    Zid,
)  # fmt: skip

Names = Mapping[str, MessageSpec]
UnionName = Callable[[tuple[str, ...], str], str]


def snake(name: str) -> str:
    """`DeclareKeyExpr` as `declare_key_expr`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def either(options: list[str]) -> str:
    """A condition that holds if one of several does."""
    return options[0] if len(options) == 1 else "(" + " or ".join(options) + ")"


class CodeBlock:
    """Lines of code under construction."""

    def __init__(self, depth: int = 0) -> None:
        """Begin with no line, indented by `depth` levels."""
        self.lines: list[str] = []
        self.depth = depth

    def __call__(self, line: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("    " * self.depth + line if line else "")

    @contextmanager
    def under(self, head: str) -> Iterator[None]:
        """Add a head line; what follows inside is indented under it."""
        self(head)
        self.depth += 1
        yield
        self.depth -= 1

    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"


def present(name: str, default: object) -> str:
    """The condition that an attribute differs from its default."""
    match default:
        case None:
            return f"self.{name} is not None"
        case False:
            return f"self.{name}"
        case "" | b"" | ():
            return f"len(self.{name}) > 0"
        case True:
            return f"not self.{name}"
        case _:
            return f"self.{name} != {default!r}"


def flag_conditions(spec: MessageSpec) -> dict[str, str]:
    """For each derived letter, the condition under which it is set."""
    explicit = explicit_flags(spec)
    conditions: dict[str, list[str]] = {}
    for field in spec.fields:
        # A field that an explicit flag keeps away cannot ask for a flag of its own.
        own = [
            f"self.{explicit[c.flag].name}" for c in field.conditions if c.flag in explicit
        ]  # fmt: skip
        wanted = " and ".join([*own, present(field.name, field.default)])
        for condition in field.conditions:
            if condition.flag and condition.flag not in explicit:
                conditions.setdefault(condition.flag, []).append(wanted)
    return {letter: either(options) for letter, options in conditions.items()}


def by_value(condition: Condition, variable: str) -> str:
    """The condition that an earlier field has one of some values."""
    values = condition.values
    if not values:
        text = variable
    elif len(values) == 1:
        return f"{variable} {'!=' if condition.negated else '=='} {values[0]}"
    elif values == tuple(range(values[0], values[-1] + 1)):
        text = f"{values[0]} <= {variable} <= {values[-1]}"
    else:
        text = f"{variable} in {values!r}"
    return f"not {text}" if condition.negated else text


def minimum_size(kind: Kind, names: Names) -> int:
    """The fewest bytes that a value can take, to refuse a count that cannot be true."""
    match kind:
        case Int(form="u16"):
            return 2
        case Struct(name=name):
            return sum(
                minimum_size(f.kind, names)
                for f in names[name].plain
                if not f.conditions and not isinstance(f.kind, Flag)
            )
        case OneOf(names=members):
            return 1 + min(minimum_size(Struct(name), names) for name in members)
        case Rest():
            return 0
        case Identity() | Zid():
            return 2
        case _:
            return 1

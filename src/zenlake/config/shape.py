"""The shapes that a configuration value may have: one object knows all about one kind of value.

A shape reads a located value into plain JSON, reporting what does not fit; builds from the plain
value what the node will use; and says in words what it expects. The words appear unchanged in
error messages and on the reference page.

    Flag · Whole · Real · Text · Choice       one value
    Sequence · Members · Either · FreeForm    values of values
    Section (in `declare`)                    named keys
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from zenlake.config.json5 import Located, Plain
from zenlake.config.problem import Report, shown

__all__ = [
    "MODES",
    "Choice",
    "Either",
    "FlagShape",
    "FreeForm",
    "Members",
    "Mode",
    "Path",
    "Real",
    "Sequence",
    "Shape",
    "TextShape",
    "Whole",
    "refuse",
]

Mode: TypeAlias = Literal["router", "peer", "client"]
MODES: tuple[Mode, ...] = ("router", "peer", "client")
Path: TypeAlias = tuple[str, ...]


class Shape(Protocol):
    """What every kind of value can do."""

    @property
    def words(self) -> str:
        """What is expected, as in "expected ...": "milliseconds (an integer >= 1)"."""

    def takes(self, value: object) -> bool:
        """Whether the value is of the right JSON type, so that its faults are ours to report."""

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The value in plain JSON with nothing left out, or None after reporting what is wrong."""

    def build(self, plain: Plain, mode: Mode) -> object:
        """What the node uses: immutable, with the value of `mode` where values differ by mode."""


def refuse(shape: Shape, node: Located, path: Path, report: Report) -> Plain:
    """Report that the value is not what the shape expects; None stands in for it."""
    got = "" if report.full else f", got {shown(node.plain())}"
    report.add(path, f"expected {shape.words}{got}", node.at)
    return None


class FlagShape:
    """True or false."""

    words = "true or false"

    def takes(self, value: object) -> bool:
        """Booleans."""
        return isinstance(value, bool)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The boolean."""
        if isinstance(node.value, bool):
            return node.value
        return refuse(self, node, path, report)

    def build(self, plain: Plain, mode: Mode) -> object:
        """The boolean."""
        return plain


class Whole:
    """An integer with a unit and bounds; `1e3` and `5.0` are integers too, as JSON sees them."""

    def __init__(self, unit: str = "", least: int = 0, most: int = 2**64 - 1) -> None:
        """Count `unit` (or nothing in particular) from `least` to `most`, both included."""
        self.unit = unit
        self.least = least
        self.most = most

    @property
    def words(self) -> str:
        """The unit and the bounds; a bound that only machine words set is not worth a word."""
        if self.most >= 2**63 - 1:
            bounds = "an integer" if self.least <= -(2**63) else f"an integer >= {self.least}"
        else:
            bounds = f"an integer from {self.least} to {self.most}"
        return f"{self.unit} ({bounds})" if self.unit else bounds

    def takes(self, value: object) -> bool:
        """Numbers."""
        return isinstance(value, int | float) and not isinstance(value, bool)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The integer."""
        value = node.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if self.least <= value <= self.most:
                return value
            if value > self.most >= 2**63 - 1:
                report.add(path, f"expected at most {self.most}, got {shown(value)}", node.at)
                return None
        return refuse(self, node, path, report)

    def build(self, plain: Plain, mode: Mode) -> object:
        """The integer."""
        return plain


class Real:
    """A finite number."""

    def __init__(self, unit: str = "", least: float = -math.inf) -> None:
        """Measure in `unit`, not below `least`."""
        self.unit = unit
        self.least = least

    @property
    def words(self) -> str:
        """The unit and the bound."""
        bound = "a number" if self.least == -math.inf else f"a number >= {self.least:g}"
        return f"{self.unit} ({bound})" if self.unit else bound

    def takes(self, value: object) -> bool:
        """Numbers."""
        return isinstance(value, int | float) and not isinstance(value, bool)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The number as a float, as JSON files of either kind may write it."""
        value = node.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                return refuse(self, node, path, report)
            if number >= self.least:
                return number
        return refuse(self, node, path, report)

    def build(self, plain: Plain, mode: Mode) -> object:
        """The number."""
        return plain


class TextShape:
    """A text, possibly of a grammar, and then used as what the grammar makes of it."""

    def __init__(self, words: str = "a text", parse: Callable[[str], object] = str) -> None:
        """Name the grammar in words; `parse` raises `ValueError` on a text that breaks it."""
        self.words = words
        self.parse = parse

    def takes(self, value: object) -> bool:
        """Texts."""
        return isinstance(value, str)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The text."""
        value = node.value
        if not isinstance(value, str):
            return refuse(self, node, path, report)
        try:
            self.parse(value)
        except ValueError as error:
            report.add(path, f"expected {self.words}, got {shown(value)}: {error}", node.at)
            return None
        return value

    def build(self, plain: Plain, mode: Mode) -> object:
        """What the text stands for."""
        return self.parse(str(plain))


class Choice:
    """One of a few texts."""

    def __init__(self, values: tuple[str, ...]) -> None:
        """List the texts in the order in which they are explained."""
        self.values = values

    @property
    def words(self) -> str:
        """The texts, quoted."""
        quoted = [f'"{value}"' for value in self.values]
        if len(quoted) == 1:
            return quoted[0]
        return f"{', '.join(quoted[:-1])} or {quoted[-1]}"

    def takes(self, value: object) -> bool:
        """Texts."""
        return isinstance(value, str)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The chosen text."""
        if isinstance(node.value, str) and node.value in self.values:
            return node.value
        return refuse(self, node, path, report)

    def build(self, plain: Plain, mode: Mode) -> object:
        """The chosen text."""
        return plain


class Sequence:
    """A list of values of one shape."""

    def __init__(self, item: Shape, least: int = 0) -> None:
        """A list of at least `least` items."""
        self.item = item
        self.least = least

    @property
    def words(self) -> str:
        """What the items are."""
        return f"a {'non-empty ' if self.least else ''}list, each item {self.item.words}"

    def takes(self, value: object) -> bool:
        """Lists."""
        return isinstance(value, list)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The items, each reported under its number."""
        if not isinstance(node.value, list) or len(node.value) < self.least:
            return refuse(self, node, path, report)
        return [
            self.item.read(item, (*path, str(number)), report)
            for number, item in enumerate(node.value)
        ]

    def build(self, plain: Plain, mode: Mode) -> object:
        """The items as a tuple."""
        items = plain if isinstance(plain, list) else []
        return tuple(self.item.build(item, mode) for item in items)


class Either:
    """A value of one of several shapes, told apart by their JSON types."""

    def __init__(self, shapes: tuple[Shape, ...]) -> None:
        """The shapes must take different JSON types, so that each fault has one owner."""
        self.shapes = shapes

    @property
    def words(self) -> str:
        """The alternatives."""
        return ", or ".join(shape.words for shape in self.shapes)

    def takes(self, value: object) -> bool:
        """What any of the shapes takes."""
        return any(shape.takes(value) for shape in self.shapes)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The value as the shape of its JSON type reads it."""
        for shape in self.shapes:
            if shape.takes(node.value):
                return shape.read(node, path, report)
        return refuse(self, node, path, report)

    def build(self, plain: Plain, mode: Mode) -> object:
        """The value as the shape of its JSON type builds it."""
        for shape in self.shapes:
            if shape.takes(plain):
                return shape.build(plain, mode)
        raise TypeError(f"{plain!r} was not read by {self.words}")


class FreeForm:
    """Anything JSON can write; whatever uses the value looks into it."""

    def __init__(
        self, members: bool = False, known: Callable[[], Mapping[str, Shape]] = dict
    ) -> None:
        """With `members`, an object and nothing else; those that are `known` have a shape."""
        self.members = members
        self._known = known

    @cached_property
    def known(self) -> Mapping[str, Shape]:
        """The members that have a shape; listed when it is asked for."""
        return self._known()

    @property
    def words(self) -> str:
        """How free it is."""
        return "an object" if self.members else "any JSON value"

    def takes(self, value: object) -> bool:
        """Objects, or everything."""
        return isinstance(value, dict) or not self.members

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The value as it stands; known members are checked, and complete."""
        if not self.takes(node.value):
            return refuse(self, node, path, report)
        plain = node.plain()
        if not self.known or not isinstance(node.value, dict) or not isinstance(plain, dict):
            return plain
        for name, shape in self.known.items():
            member = node.value.get(name)
            if member is not None and isinstance(member.value, dict):
                plain[name] = _read_plugin(shape, member, (*path, name), report)
        return plain

    def build(self, plain: Plain, mode: Mode) -> object:
        """The value, with lists and objects that cannot be changed."""
        return _frozen(plain)


def _read_plugin(shape: Shape, node: Located, path: Path, report: Report) -> Plain:
    """A member with a shape; keys like `__path__` are for Eclipse's loader of plugins."""
    assert isinstance(node.value, dict)
    loader = {name: member for name, member in node.value.items() if name.startswith("__")}
    rest = {name: member for name, member in node.value.items() if name not in loader}
    plain = shape.read(Located(rest, node.at, node.name_at), path, report)
    if isinstance(plain, dict):
        plain |= {name: member.plain() for name, member in loader.items()}
    return plain


class Members:
    """An object whose members have any names, and all the same shape."""

    def __init__(self, refused: Callable[[str], str], item: Shape) -> None:
        """`refused` says what is wrong with a name, or nothing."""
        self.refused = refused
        self.item = item

    @property
    def words(self) -> str:
        """What its members are."""
        return f"an object, each member {self.item.words}"

    def takes(self, value: object) -> bool:
        """Objects."""
        return isinstance(value, dict)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """Every member, complete."""
        if not isinstance(node.value, dict):
            return refuse(self, node, path, report)
        plain: dict[str, Plain] = {}
        for name, member in node.value.items():
            why = self.refused(name)
            if why:
                report.add((*path, name), why, member.name_at)
            elif self.item.takes(member.value):
                plain[name] = self.item.read(member, (*path, name), report)
            else:
                refuse(self.item, member, (*path, name), report)
        return plain

    def build(self, plain: Plain, mode: Mode) -> object:
        """The members as the node uses them."""
        members = plain if isinstance(plain, dict) else {}
        return MappingProxyType(
            {name: self.item.build(member, mode) for name, member in members.items()}
        )


def _frozen(plain: Plain) -> object:
    if isinstance(plain, dict):
        return MappingProxyType({name: _frozen(member) for name, member in plain.items()})
    if isinstance(plain, list):
        return tuple(_frozen(item) for item in plain)
    return plain

"""How a key of the configuration is declared, and what is derived from the declaration.

The model is made of frozen records whose annotations are the types *that the node uses*
(`lease: Milliseconds`, an `int`). `key()` adds the rest: default, sentence, who honours it. One
walk over the annotations turns a record into a `Section`, and everything else comes from
sections: reading, validation, suggestions, the defaults file and the reference page.

Why not a validation library: msgspec and its like stop at the first fault, forget where in the
text it stood, and cannot tell `{router: …}` (a value for each mode) from a value that is itself
an object. Here the walk is ours and short, and the records stay ordinary.

Modules that declare keys do without `from __future__ import annotations`: the walk needs types, and
annotations that are texts would have to be compiled whenever a program starts.

A key may be written differently from how it is used:

* *by mode*: its default is a `ByMode`, and a file may write one value, or one for each mode;
* *null*: a file may leave the choice to zenlake by writing `null`, which is also what
  `get_json` shows until one is chosen.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    overload,
)

from zenlake.config.json5 import Located, Plain
from zenlake.config.nearest import nearest
from zenlake.config.problem import Report, shown
from zenlake.config.shape import (
    MODES,
    Choice,
    Either,
    FlagShape,
    Mode,
    Path,
    Real,
    Sequence,
    Shape,
    TextShape,
    Whole,
    refuse,
)
from zenlake.records import record

__all__ = [
    "REQUIRED",
    "ByMode",
    "Key",
    "NonEmpty",
    "Section",
    "key",
    "misplaced",
    "section",
    "section_of",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

REQUIRED: Any = object()
"""The default of a key that has none: a file with its section must have it."""


@record(frozen=True, slots=True)
class ByMode(Generic[T_co]):
    """A default for each mode; a file may write the key by mode too."""

    router: T_co
    peer: T_co
    client: T_co

    def of(self, mode: Mode) -> T_co:
        """The value of one mode."""
        return {"router": self.router, "peer": self.peer, "client": self.client}[mode]


@record(frozen=True, slots=True)
class NonEmpty:
    """Marks a list that must have an item: an empty one would match nothing, by mistake."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
def section(made_of: type[T]) -> type[T]:
    """Make a class whose attributes are keys: an ordinary record, frozen and slotted."""
    return record(frozen=True, slots=True, kw_only=True)(made_of)


@overload
def key(
    default: ByMode[T],
    doc: str,
    *,
    null: bool = False,
    hidden: bool = False,
    secret: bool = False,
    honoured_by: str | None = None,
) -> T: ...


@overload
def key(
    default: type[T],
    doc: str,
    *,
    null: bool = False,
    hidden: bool = False,
    secret: bool = False,
    honoured_by: str | None = None,
) -> T: ...


@overload
def key(
    default: T,
    doc: str,
    *,
    null: bool = False,
    hidden: bool = False,
    secret: bool = False,
    honoured_by: str | None = None,
) -> T: ...


def key(
    default: Any,
    doc: str,
    *,
    null: bool = False,
    hidden: bool = False,
    secret: bool = False,
    honoured_by: str | None = None,
) -> Any:
    """Declare a key of a section.

    Args:
        default: What holds when nothing is written. A nested section gives its class.
        doc: One sentence: what the key does.
        null: Whether `null` may be written for "the default".
        hidden: Whether the key is left out of what is printed until it is set.
        secret: Whether its value must not be shown.
        honoured_by: The dotted name of the code that obeys the key; None if it has no effect yet.
    """
    facts = {
        "default": default,
        "doc": doc,
        "null": null,
        "hidden": hidden,
        "secret": secret,
        "honoured_by": honoured_by,
    }
    if default is REQUIRED:
        return dataclasses.field(metadata=facts)
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=facts)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: MappingProxyType(default), metadata=facts)
    # A section made without a file is that of a peer, the mode of a node not told otherwise.
    value = default.peer if isinstance(default, ByMode) else default
    return dataclasses.field(default=value, metadata=facts)


# Hundreds are made at each start, so that making them fast counts more than making the class.
@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """All there is to know about one key of a section."""

    name: str
    shape: Shape
    default: object
    doc: str
    null: bool
    """Whether null may be written."""
    open: bool
    """Whether null means the default, instead of meaning none."""
    hidden: bool
    secret: bool
    honoured_by: str | None

    @property
    def required(self) -> bool:
        """Whether it must be written."""
        return self.default is REQUIRED

    @property
    def by_mode(self) -> bool:
        """Whether it may be written as one value for each mode."""
        return isinstance(self.default, ByMode)

    @property
    def words(self) -> str:
        """What is expected."""
        words = self.shape.words
        if self.by_mode:
            words += ", or an object with one for each of router, peer and client"
        return words + (", or null" if self.null else "")

    def written(self) -> Plain:
        """What `get_json` shows while nothing was set."""
        if isinstance(self.shape, Section) and self.default is self.shape.made_of:
            return None if self.open else self.shape.written()
        if self.open:
            return None
        if isinstance(self.default, ByMode):
            values = {mode: plain_of(self.default.of(mode)) for mode in MODES}
            if values["router"] == values["peer"] == values["client"]:
                return values["router"]
            return {mode: value for mode, value in values.items() if value != []}
        return plain_of(self.default)

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The written value in plain JSON, or None after reporting what is wrong with it."""
        if node.value is None and self.null:
            return None
        if self.secret and not self.shape.takes(node.value):
            report.add(path, f"expected {self.words} (what was written is not shown)", node.at)
            return None
        if not (self.by_mode and isinstance(node.value, dict)):
            if self.shape.takes(node.value):
                return self.shape.read(node, path, report)
            if not report.full:
                report.add(path, f"expected {self.words}, got {shown(node.plain())}", node.at)
            return None
        if self.shape.takes(node.value) and not node.value.keys() & set(MODES):
            return self.shape.read(node, path, report)
        return self._read_by_mode(node.value, path, report)

    def _read_by_mode(
        self, members: dict[str, Located], path: Path, report: Report
    ) -> dict[str, Plain]:
        values: dict[str, Plain] = {}
        for name, member in members.items():
            if name not in MODES:
                hint = nearest(name, MODES)
                meant = f"; did you mean '{'/'.join((*path, hint))}'?" if hint else ""
                report.add((*path, name), f"not a mode{meant}", member.name_at)
            elif member.value is not None:
                values[name] = self.shape.read(member, (*path, name), report)
        return values

    def build(self, plain: Plain, mode: Mode) -> object:
        """The value that the node uses in `mode`."""
        if plain is not None and self.by_mode and isinstance(plain, dict):
            if not plain or plain.keys() & set(MODES):
                if mode in plain:
                    return self.shape.build(plain[mode], mode)
                # A list written for other modes leaves this one with nothing to connect or
                # listen to; a choice that was left open (null) is zenlake's again.
                return self._default(mode) if self.open else ()
            return self.shape.build(plain, mode)
        if plain is None:
            return self._default(mode) if self.open or isinstance(self.default, type) else None
        return self.shape.build(plain, mode)

    def _default(self, mode: Mode) -> object:
        if isinstance(self.shape, Section):
            return self.shape.build(self.shape.written(), mode)
        return self.default.of(mode) if isinstance(self.default, ByMode) else self.default


class Section:
    """An object with named keys, derived from a record."""

    def __init__(self, made_of: type[Any]) -> None:
        """Walk over the annotations of a record made with `key()`."""
        self.made_of = made_of
        self.keys: dict[str, Key] = {}
        for field in dataclasses.fields(made_of):
            facts = field.metadata
            shape, optional = _shape_of(field.type)
            self.keys[field.name] = Key(
                name=field.name,
                shape=shape,
                default=facts["default"],
                doc=facts["doc"],
                null=facts["null"] or optional,
                open=facts["null"],
                hidden=facts["hidden"],
                secret=facts["secret"],
                honoured_by=facts["honoured_by"],
            )

    @property
    def words(self) -> str:
        """The names of the keys."""
        return f"an object with {', '.join(self.keys)}"

    @property
    def doc(self) -> str:
        """The first sentence about the section."""
        return (self.made_of.__doc__ or "").partition("\n")[0]

    def takes(self, value: object) -> bool:
        """Objects."""
        return isinstance(value, dict)

    def written(self) -> dict[str, Plain]:
        """The section as `get_json` shows it while nothing was set."""
        return {key.name: key.written() for key in self.keys.values() if not key.hidden}

    def read(self, node: Located, path: Path, report: Report) -> Plain:
        """The section with every key: those written, and the defaults of the others."""
        if not isinstance(node.value, dict):
            return refuse(self, node, path, report)
        before = len(report.problems)
        members: dict[str, Plain] = {}
        for name, member in node.value.items():
            if name in self.keys:
                members[name] = self.keys[name].read(member, (*path, name), report)
            elif not report.full:
                hint = self._meant(name, path, report.paths)
                meant = f"; did you mean '{hint}'?" if hint else ""
                report.add((*path, name), f"unknown key{meant}", member.name_at)
            else:
                report.add((*path, name), "unknown key", member.name_at)
        for name, missing in self.keys.items():
            if missing.required and name not in node.value:
                report.add((*path, name), f"missing; write {missing.words}", node.at)
        plain = {
            name: members[name] if name in members else key.written()
            for name, key in self.keys.items()
            if name in members or not (key.hidden or key.required)
        }
        if len(report.problems) == before:
            rule = getattr(self.made_of, "holds", None)
            for wrong, message in rule(plain) if rule else ():
                report.add((*path, *wrong), message, node.at)
        return plain

    def build(self, plain: Plain, mode: Mode) -> object:
        """The record, with the values of `mode`."""
        values = plain if isinstance(plain, dict) else {}
        # What is not shown until it is set has its default all the same.
        unset = {key.name: key.written() for key in self.keys.values() if key.hidden}
        return self.made_of(
            **{
                name: key.build(values[name] if name in values else unset.get(name), mode)
                for name, key in self.keys.items()
            }
        )

    def _meant(self, name: str, path: Path, paths: tuple[str, ...]) -> str | None:
        """The full path of the key that `name`, unknown here at `path`, probably stands for."""
        sibling = nearest(name, self.keys)
        if sibling:
            return "/".join((*path, sibling))
        return misplaced((*path, name), paths)


def misplaced(path: Path, paths: tuple[str, ...]) -> str | None:
    """Which of `paths` is meant by a path that is wrong further up, or right but elsewhere."""
    same_name = [known for known in paths if known.rpartition("/")[2] == path[-1]]
    near = nearest("/".join(path), same_name or paths)
    if near:
        return near
    return same_name[0] if len(same_name) == 1 else None


@cache
def section_of(made_of: type[Any]) -> Section:
    """The section derived from a record; derived once."""
    return Section(made_of)


def plain_of(value: object) -> Plain:
    """A default, as JSON writes it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain_of(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, tuple):
        return [plain_of(item) for item in value]
    if isinstance(value, dict):
        return {str(name): plain_of(member) for name, member in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # A default of a grammar (an endpoint) is written as its text.
    return str(value)


def _shape_of(hint: Any) -> tuple[Shape, bool]:
    """The shape that an annotation describes, and whether it has `None` beside it."""
    if get_origin(hint) in (Union, UnionType):
        members = [member for member in get_args(hint) if member is not NoneType]
        shapes = tuple(_shape_of(member)[0] for member in members)
        optional = len(members) < len(get_args(hint))
        return (shapes[0] if len(shapes) == 1 else Either(shapes)), optional
    return _single(hint), False


def _single(hint: Any) -> Shape:
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *marks = get_args(hint)
        for mark in marks:
            if isinstance(mark, NonEmpty):
                return Sequence(_shape_of(get_args(inner)[0])[0], least=1)
            shape: Shape = mark
            return shape
    if origin is Literal:
        return Choice(get_args(hint))
    if origin is tuple:
        return Sequence(_shape_of(get_args(hint)[0])[0])
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return section_of(hint)
    shapes: dict[Any, Shape] = {bool: FlagShape(), int: Whole(), float: Real(), str: TextShape()}
    return shapes[hint]

"""Hypothesis strategies for every message, derived from its declaration.

    from hypothesis import given
    from zenlake.testing import pages, spec
    from zenlake.testing.strategies import messages

    @given(messages(spec("Push")))
    def test_something(push): ...

What they make is valid and canonical: written and read again, it is equal. A field that its
flags keep off the wire has its default, because nothing else could come back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from zenlake.testing import class_of, page_of
from zenlake.wire.cursor import Writer
from zenlake.wire.declared.attributes import attributes, explicit_flags
from zenlake.wire.declared.schema import (
    REQUIRED,
    ByEncoding,
    Bytes,
    CompactId,
    Condition,
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
    ProtocolPage,
    Rest,
    Struct,
    Text,
    Unit,
    Zid,
)
from zenlake.wire.generator.generate import roots_of
from zenlake.wire.message import Message, UnknownExtension

__all__ = ["messages", "unknown_extensions", "zids"]

U32 = 0xFFFF_FFFF
U64 = 0xFFFF_FFFF_FFFF_FFFF


def messages(what: ProtocolPage | MessageSpec) -> SearchStrategy[Message]:
    """Any message of a page, or any message of one declaration (structures too)."""
    if isinstance(what, ProtocolPage):
        return st.one_of([_messages(what.specs[name]) for name in roots_of(what)])
    return _messages(what)


def zids() -> SearchStrategy[bytes]:
    """A node id as the wire has it: 1 to 16 bytes, the last of them not zero."""
    return st.builds(
        lambda low, high: low + bytes((high,)),
        st.binary(max_size=15),
        st.integers(1, 255),
    )


def unknown_extensions(spec: MessageSpec) -> SearchStrategy[UnknownExtension]:
    """An optional extension that a message does not know, in any of the three shapes."""
    known = {field.extension for field in spec.extensions}
    free = [
        shape | id for shape in (0x00, 0x20, 0x40) for id in range(16) if shape | id not in known
    ]
    return st.builds(_unknown, st.sampled_from(free), integers(U64), st.binary(max_size=8))


def integers(limit: int) -> SearchStrategy[int]:
    """A number up to `limit`; the ends of each encoded length come often."""
    edges = {edge + step for n in range(1, 10) for edge in (1 << 7 * n,) for step in (-1, 0)}
    likely = sorted({0, 1, limit, *[edge for edge in edges if edge <= limit]})
    return st.one_of(st.sampled_from(likely), st.integers(0, limit))


@cache
def _messages(spec: MessageSpec) -> SearchStrategy[Message]:
    page = page_of(spec)
    make = class_of(spec)
    values = {
        field.name: _field(field, page)
        for field in spec.fields
        if not isinstance(field.kind, FlagByte)
    }

    markers = st.one_of([_messages(page.find(name)) for name in spec.markers])

    @st.composite
    def build(draw: DrawFn) -> Message:
        drawn: dict[str, Any] = {}
        for field in spec.fields:
            if isinstance(field.kind, FlagByte):
                continue
            if not _possible(field, spec, drawn):
                drawn |= {name: default for name, _, default in attributes(field)}
            elif isinstance(field.kind, Many) and field.kind.like:
                size = len(drawn[field.kind.like])
                drawn[field.name] = draw(_tuples(field.kind.item, page, size) | st.just(()))
            else:
                drawn |= draw(values[field.name])
        if spec.keeps_unknown:
            drawn["extensions"] = draw(st.lists(unknown_extensions(spec), max_size=3).map(tuple))
        if spec.markers:
            drawn["markers"] = draw(st.lists(markers, max_size=3).map(tuple))
        return make(**drawn)

    return build()


def _possible(field: Field, spec: MessageSpec, drawn: dict[str, Any]) -> bool:
    """Whether what was drawn before lets the field differ from its default."""
    explicit = explicit_flags(spec)
    if not all(_holds(condition, explicit, drawn) for condition in field.conditions):
        return False
    if isinstance(field.kind, Flag):
        for other in spec.fields:
            if isinstance(other.kind, FlagByte) and field.kind.letter in other.kind.letters:
                return _possible(other, spec, drawn) and (
                    not field.kind.within or drawn[explicit[field.kind.within].name]
                )
    return True


def _holds(condition: Condition, explicit: dict[str, Field], drawn: dict[str, Any]) -> bool:
    if condition.name:
        value = drawn[condition.name]
        true = value in condition.values if condition.values else bool(value)
        return true != condition.negated
    if condition.flag in explicit:
        return bool(drawn[explicit[condition.flag].name])
    return True  # the flag is derived from this field


def _field(field: Field, page: ProtocolPage) -> SearchStrategy[dict[str, Any]]:
    """The attributes of a field."""
    kind = field.kind
    match kind:
        case Identity(low=low, bits=bits, legal=legal, optional=optional):
            parts: dict[str, SearchStrategy[Any]] = {
                "zid": zids() | st.just(b"") if optional else zids()
            }
            if low:
                parts[low] = st.sampled_from(legal or range(1 << bits))
            return st.fixed_dictionaries(parts)
        case Ntp64():
            return st.fixed_dictionaries({"seconds": integers(U32), "fraction": integers(U32)})
        case CompactId():
            compact = st.fixed_dictionaries({"id": st.integers(1, 4), "compact": st.just(True)})
            number = st.fixed_dictionaries({"id": integers(U64), "compact": st.just(False)})
            return compact | number
        case _:
            value = _value(kind, page)
            if field.default is not REQUIRED:
                value = st.just(field.default) | value
            return st.fixed_dictionaries({field.name: value})


def _value(kind: Kind, page: ProtocolPage) -> SearchStrategy[Any]:
    """One value of a kind that is one attribute."""
    match kind:
        case Int(legal=legal) if legal:
            return st.sampled_from(legal)
        case Int(limit=limit, mask=mask):
            return integers(mask or limit)
        case Bytes() | Rest(utf8=False):
            return st.binary(max_size=40)
        case Text() | Rest():
            return st.text(max_size=20)
        case Unit() | Flag():
            return st.booleans()
        case Zid():
            return zids()
        case Lease():
            return integers(U64) | st.integers(0, 100).map(lambda seconds: seconds * 1000)
        case HeaderBits(legal=legal):
            return st.sampled_from(legal)
        case Struct(name=name):
            return _messages(page.find(name))
        case OneOf(names=names):
            return st.one_of([_messages(page.find(name)) for name in names])
        case Many(item=item, fixed=fixed):
            return _tuples(item, page, fixed) if fixed else _tuples(item, page, 0, 4)
        case Messages():
            (inner,) = [p for p in page.closure() if p.name == "network"]
            return st.lists(messages(inner), max_size=3).map(tuple)
        case ByEncoding():
            return st.none() | integers(U64) | st.binary(max_size=40)
        case _:
            raise TypeError(f"no strategy for {kind}")


def _tuples(
    item: Kind, page: ProtocolPage, least: int, most: int | None = None
) -> SearchStrategy[tuple[Any, ...]]:
    limit = least if most is None else most
    return st.lists(_value(item, page), min_size=least, max_size=limit).map(tuple)


def _unknown(header: int, number: int, body: bytes) -> UnknownExtension:
    w = Writer()
    shapes: dict[int, Callable[[], None]] = {
        0x00: lambda: None,
        0x20: lambda: w.vle(number, U64),
        0x40: lambda: w.sized(body, U32),
    }
    shapes[header & 0x60]()
    return UnknownExtension(header=header, body=w.getvalue())

"""Where a message ends, found while its bytes still arrive.

On a stream without lengths only the declarations tell where a message ends. Reading again from
its first byte whenever a few more arrive would let a stranger buy quadratic work with slow
bytes, so the walk over a message is a coroutine: it stops where the bytes do, and goes on from
there. Nothing is decoded on the way; the codec does that when the message is whole.
"""

from __future__ import annotations

from collections.abc import Generator

from zenlake.errors import DecodeError
from zenlake.wire.declared.schema import (
    MARKERS_MAX,
    Bytes,
    CompactId,
    Condition,
    Field,
    Flag,
    Int,
    Kind,
    Many,
    MessageSpec,
    OneOf,
    Struct,
    Text,
)
from zenlake.xrce.declared import PAGE

#: A step of the walk: it yields when it needs more bytes, and returns what it read.
Step = Generator[None, None, int]

_MESSAGES = {spec.id: spec for spec in PAGE.specs.values() if spec.id >= 0 and not spec.inner}
_MESSAGES |= {alias: spec for spec in PAGE.specs.values() for alias, _ in spec.aliases}


class Extent:
    """The walk over one message, markers included, that begins a growing buffer."""

    def __init__(self, data: bytearray, limit: int) -> None:
        """Walk from the first byte of `data`; a message above `limit` bytes is refused."""
        self._data = data
        self._limit = limit
        self._pos = 0
        self._walk = self._message()

    def find(self) -> int:
        """How long the message is, or -1 if its end has not arrived yet."""
        try:
            next(self._walk)
        except StopIteration:
            return self._pos
        return -1

    def _message(self) -> Step:
        """A message and the markers before it."""
        for _ in range(MARKERS_MAX + 1):
            header = yield from self._u8()
            spec = _MESSAGES.get(header & 0x1F)
            if spec is None:
                raise DecodeError(
                    f"the message {header & 0x1F} at offset {self._pos - 1} is not defined",
                    self._pos - 1,
                )
            yield from self._fields(spec, header)
            if not spec.marker:
                return self._pos
        raise DecodeError(f"a message with more than {MARKERS_MAX} markers", 0)

    def _fields(self, spec: MessageSpec, header: int) -> Step:
        """The fields that are there; the numbers among them tell which."""
        known: dict[str, int] = {}
        for field in spec.fields:
            if all(_holds(condition, spec, header, known) for condition in field.conditions):
                known[field.name] = yield from self._field(field, spec, header)
            else:
                known[field.name] = 0
        return self._pos

    def _field(self, field: Field, spec: MessageSpec, header: int) -> Step:
        match field.kind:
            case Flag(letter=letter):
                return header & spec.bit(letter)
            case CompactId():
                return 0 if header & 0x80 else (yield from self._nat())
            case kind:
                return (yield from self._value(kind, f"{spec.name}.{field.name}"))

    def _value(self, kind: Kind, what: str) -> Step:
        match kind:
            case Int(form=form, legal=legal):
                number = yield from (self._u8() if form == "u8" else self._nat())
                if legal and number not in legal:
                    raise DecodeError(f"{what} is {number}: one of {legal}", self._pos)
                return number
            case Bytes() | Text():
                size = yield from self._nat()
                yield from self._arrival(size)
                self._pos += size
                return size
            case Many(item=item):
                count = yield from self._nat()
                self._bound(count)
                for _ in range(count):
                    yield from self._value(item, what)
                return count
            case Struct(name=name):
                return (yield from self._fields(PAGE.specs[name], 0))
            case OneOf(names=names):
                header = yield from self._u8()
                for name in names:
                    if PAGE.specs[name].id == header & 0x1F:
                        return (yield from self._fields(PAGE.specs[name], header))
                raise DecodeError(f"{what}: {header & 0x1F} is not defined", self._pos - 1)
            case _:
                raise TypeError(f"{kind} has no place in the 2018 protocol")

    def _u8(self) -> Step:
        yield from self._arrival(1)
        self._pos += 1
        return self._data[self._pos - 1]

    def _nat(self) -> Step:
        value = 0
        for shift in range(0, 70, 7):
            byte = yield from self._u8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise DecodeError(f"the number before offset {self._pos} is too long", self._pos)

    def _arrival(self, size: int) -> Step:
        """Wait until `size` more bytes are there."""
        self._bound(size)
        while len(self._data) < self._pos + size:
            yield
        return size

    def _bound(self, size: int) -> None:
        """Refuse what cannot end within the limit: it would only be hoarded."""
        if self._pos + size > self._limit:
            raise DecodeError(
                f"a message of at least {self._pos + size} bytes: at most {self._limit}", self._pos
            )


def _holds(condition: Condition, spec: MessageSpec, header: int, known: dict[str, int]) -> bool:
    """Whether the condition of a field is met."""
    if condition.flag:
        return header & spec.bit(condition.flag) != 0
    value = known[condition.name]
    return (value in condition.values if condition.values else value != 0) != condition.negated

"""Values as bytes that any Zenoh language reads, when both sides agree on the type.

Nothing in the bytes says what they are:

    number      its width, little-endian (`int` is 32 bits, `float` 64; others: `Int8`, ...)
    bool        00 or 01
    str bytes   length, then the bytes
    list set    count, then the items, all of one type
    dict        count, then key, value, key, value, ...
    tuple       the items and nothing else: the type says how many

A length or a count is LEB128: seven bits a byte, low ones first, bit 7 when more follow.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Hashable, Sequence
from functools import lru_cache
from typing import Final, TypeVar, cast, get_args, get_origin

from zenlake.errors import SerializeError
from zenlake.values.sized import (
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    SizedInt,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
)
from zenlake.values.zbytes import ZBytes, utf8

__all__ = ["UnsupportedTypeError", "ZDeserializeError", "z_deserialize", "z_serialize"]

T = TypeVar("T")

MAX_DEPTH: Final = 64
MAX_EMPTY_ITEMS: Final = 65_536
_MAX_LEB128_BYTES: Final = 10

# The letters `struct` knows these types by; lists of them are read and written in one go.
_LETTERS: Final[dict[object, str]] = {
    bool: "?",
    int: "i",
    float: "d",
    Int8: "b",
    Int16: "h",
    Int32: "i",
    Int64: "q",
    UInt8: "B",
    UInt16: "H",
    UInt32: "I",
    UInt64: "Q",
    Float32: "f",
    Float64: "d",
}
_WIDE: Final[tuple[type[SizedInt], ...]] = (Int128, UInt128)
_BYTES: Final[tuple[object, ...]] = (str, bytes, bytearray, ZBytes)
_KNOWN: Final = (
    "use bool, int, float, str, bytes, bytearray, ZBytes, Int8 to UInt128, Float32, Float64, "
    "or list, set, frozenset, dict and tuple of them"
)


class ZDeserializeError(SerializeError):
    """Bytes that do not hold a value of the type asked for."""


class UnsupportedTypeError(SerializeError, TypeError):
    """A type that has no serialised form."""


def z_serialize(obj: object) -> ZBytes:
    """The bytes of a value; its types, and those of all in it, must be the exact ones.

    Args:
        obj: The value.
    """
    out = bytearray()
    _write(out, obj, 0)
    return ZBytes(bytes(out))


def z_deserialize(tp: type[T], zbytes: ZBytes | bytes | bytearray | memoryview) -> T:
    """The value of type `tp`, such as `dict[str, list[Int8]]`, that the bytes hold.

    All bytes must be used: what is left over is a sign that the sides do not agree on the type.

    Args:
        zbytes: What `z_serialize` of any implementation of Zenoh gave.
    """
    try:
        plan = _plan(cast(Hashable, tp))
    except TypeError as error:
        if isinstance(error, UnsupportedTypeError):
            raise
        raise UnsupportedTypeError(f"{tp!r} is not a type; {_KNOWN}") from error
    reader = _Reader(zbytes.to_bytes() if isinstance(zbytes, ZBytes) else bytes(zbytes))
    value = reader.read(plan)
    if reader.left():
        raise ZDeserializeError(
            f"{reader.left()} bytes are left over after {plan.name} at offset {reader.at}; "
            "is it the type that was serialised?"
        )
    return cast(T, value)


# ---------------------------------------------------------------------------- writing


def _write(out: bytearray, value: object, depth: int) -> None:
    kind = type(value)
    if depth > MAX_DEPTH:
        raise SerializeError(f"more than {MAX_DEPTH} collections inside each other")
    if kind in _LETTERS:
        _write_numbers(out, kind, (value,))
    elif isinstance(value, SizedInt) and kind in _WIDE:
        out += value.to_bytes(16, "little", signed=value.SIGNED)
    elif kind in _BYTES:
        data = utf8(value) if isinstance(value, str) else bytes(cast(bytes, value))
        _write_count(out, len(data))
        out += data
    elif kind is tuple:
        for item in cast(tuple[object, ...], value):
            _write(out, item, depth + 1)
    elif kind is list or kind is set or kind is frozenset:
        items = cast(Collection[object], value)
        _write_count(out, len(items))
        _write_items(out, list(items), depth + 1)
    elif kind is dict:
        entries = cast(dict[object, object], value)
        _write_count(out, len(entries))
        _one_type(entries.keys())
        _one_type(entries.values())
        for key, item in entries.items():
            _write(out, key, depth + 1)
            _write(out, item, depth + 1)
    else:
        raise UnsupportedTypeError(f"{kind.__name__} cannot be serialised; {_KNOWN}")


def _write_items(out: bytearray, items: list[object], depth: int) -> None:
    kind = _one_type(items)
    if kind in _LETTERS:
        _write_numbers(out, kind, items)
    else:
        for item in items:
            _write(out, item, depth)


def _one_type(items: Collection[object]) -> object:
    kinds = {type(item) for item in items}
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise SerializeError(f"a collection has items of one type, this one has {names}")
    return kinds.pop() if kinds else None


def _write_numbers(out: bytearray, kind: object, numbers: Sequence[object]) -> None:
    try:
        out += struct.pack(f"<{len(numbers)}{_LETTERS[kind]}", *numbers)
    except struct.error as error:
        wrong = next(n for n in cast(Sequence[int], numbers) if not -(2**31) <= n < 2**31)
        raise SerializeError(
            f"{wrong} does not fit the 32 bits of an int; write Int64({wrong}) or wider"
        ) from error
    except OverflowError:
        # Too large for 32 bits: infinite, as IEEE 754 rounds it.
        for number in cast(Sequence[float], numbers):
            try:
                out += struct.pack("<f", number)
            except OverflowError:
                out += struct.pack("<f", math.copysign(math.inf, number))


def _write_count(out: bytearray, count: int) -> None:
    while count > 0x7F:
        out.append(count & 0x7F | 0x80)
        count >>= 7
    out.append(count)


# ---------------------------------------------------------------------------- types


class _Plan:
    """How to read one type: worked out once, then followed for every value."""

    __slots__ = ("items", "least", "letter", "name", "origin", "width")

    def __init__(self, tp: object, origin: object, items: tuple[_Plan, ...]) -> None:
        self.origin = origin
        self.items = items
        self.letter = _LETTERS.get(tp, "")
        self.width = struct.calcsize(f"<{self.letter}")
        self.name = tp.__name__ if isinstance(tp, type) and not get_args(tp) else str(tp)
        # How many bytes a value takes at least, so that a count can be doubted in time.
        if self.letter:
            self.least = self.width
        elif origin is tuple:
            self.least = sum(item.least for item in items)
        else:
            self.least = 16 if origin in _WIDE else 1


@lru_cache(maxsize=256)
def _plan(tp: Hashable, hashable: bool = False) -> _Plan:
    """The plan of a type, which `hashable` says is in a set or a key; or why it has none."""
    origin = get_origin(tp) or tp
    if origin in _LETTERS or origin in _WIDE or (origin in _BYTES and origin is not bytearray):
        return _Plan(tp, origin, ())
    name = _Plan(tp, origin, ()).name
    if hashable and origin in (list, set, dict, bytearray):
        raise UnsupportedTypeError(f"{name} cannot be in a set or the key of a dict")
    if origin is bytearray:
        return _Plan(tp, origin, ())
    if origin not in (list, set, frozenset, dict, tuple):
        raise UnsupportedTypeError(f"{name} cannot be deserialised; {_KNOWN}")
    if origin is tp:
        example = "dict[str, int]" if tp is dict else f"{name}[int]"
        raise SerializeError(f"{name} of what? write {example}, say")
    items = get_args(tp)
    if Ellipsis in items:
        raise UnsupportedTypeError(f"{name} does not say how many items it has; name each type")
    inside = hashable or origin is set or origin is frozenset
    plans = [_plan(item, inside or (origin is dict and n == 0)) for n, item in enumerate(items)]
    return _Plan(tp, origin, tuple(plans))


# ---------------------------------------------------------------------------- reading


class _Reader:
    """A place in the bytes, and how to go on from it."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int, plan: _Plan) -> bytes:
        if size > self.left():
            raise ZDeserializeError(
                f"{plan.name} takes {size} bytes at offset {self.at}, {self.left()} are left"
            )
        start = self.at
        self.at += size
        return self.data[start : self.at]

    def read(self, plan: _Plan) -> object:
        origin = plan.origin
        if plan.letter:
            return self.numbers(plan, 1)[0]
        if origin is tuple:
            return tuple([self.read(item) for item in plan.items])
        if origin is dict:
            key, value = plan.items
            count = self.count(key.least + value.least, plan)
            return {self.read(key): self.read(value) for _ in range(count)}
        if plan.items:
            item = plan.items[0]
            count = self.count(item.least, plan)
            if item.letter:
                values = self.numbers(item, count)
            else:
                values = [self.read(item) for _ in range(count)]
            return values if origin is list else cast(type, origin)(values)
        if origin in _WIDE:
            return origin(int.from_bytes(self.take(16, plan), "little", signed=origin.SIGNED))
        return self.sized(plan)

    def numbers(self, plan: _Plan, count: int) -> list[object]:
        tp = plan.origin
        data = self.take(count * plan.width, plan)
        if tp is bool and count and max(data) > 1:
            raise ZDeserializeError(f"{max(data):#04x} is not a bool before offset {self.at}")
        values: list[object] = list(struct.unpack(f"<{count}{plan.letter}", data))
        if tp is int or tp is float or tp is bool:
            return values
        return [cast(type, tp)(value) for value in values]

    def sized(self, plan: _Plan) -> object:
        data = self.take(self.count(1, plan), plan)
        if plan.origin is bytes:
            return data
        if plan.origin is bytearray:
            return bytearray(data)
        if plan.origin is ZBytes:
            return ZBytes(data)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ZDeserializeError(f"a str before offset {self.at} is not UTF-8") from error

    def count(self, size: int, plan: _Plan) -> int:
        """A count of items that take `size` bytes each at least; refused when they cannot be."""
        start, count, shift = self.at, 0, 0
        while True:
            byte = self.take(1, plan)[0]
            count |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 7 * _MAX_LEB128_BYTES:
                raise ZDeserializeError(f"the length at offset {start} never ends")
        # An empty tuple takes no bytes, so no bytes could announce any number of them.
        most = self.left() // size if size else MAX_EMPTY_ITEMS
        if count > most:
            raise ZDeserializeError(
                f"{plan.name} announces {count} items at offset {start}, "
                f"{self.left()} bytes are left"
            )
        return count

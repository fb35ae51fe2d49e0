"""Bytes of a flatbuffer, read without trust: every place is looked up within its bounds.

root       a place, from its own place on: u32
table      the distance back to its vtable, i32; then its fields, in any order
vtable     its size and the table's, u16; then for each field its place in the table, or 0
vector     how many, u32; then the items
string     a vector of bytes
"""

from __future__ import annotations

import struct
from typing import Final, final

from zenlake.lake.decode.formats.bounded import MOST_DEPTH, MOST_ITEMS
from zenlake.lake.model.decoder import Undecodable

__all__ = ["FlatPage", "FlatTable"]

_U16: Final = struct.Struct("<H")
_I32: Final = struct.Struct("<i")
_U32: Final = struct.Struct("<I")


@final
class FlatPage:
    """The bytes of one flatbuffer, and how much of them may still be walked over."""

    def __init__(self, data: bytes) -> None:
        """Nothing is read yet."""
        self.data = data
        self._room = MOST_ITEMS

    def value(self, form: struct.Struct, at: int) -> int | float | bool:
        """A number at a place."""
        if at < 0 or at + form.size > len(self.data):
            raise Undecodable(f"a place beyond the {len(self.data)} bytes: {at}")
        number: int | float | bool = form.unpack_from(self.data, at)[0]
        return number

    def place(self, at: int) -> int:
        """Where the offset at a place points."""
        return at + self._whole(_U32, at)

    def root(self) -> FlatTable:
        """The table that all begins with."""
        return self.table(self.place(0), 0)

    def table(self, at: int, depth: int) -> FlatTable:
        """The table at a place."""
        if depth > MOST_DEPTH:
            raise Undecodable(f"tables inside tables, more than {MOST_DEPTH} deep")
        self.walk(1)
        vtable = at - self._whole(_I32, at)
        return FlatTable(self, at, vtable, self._whole(_U16, vtable), depth)

    def vector(self, at: int, size: int) -> tuple[int, int]:
        """Where the items of a vector begin, and how many of this size there are."""
        count = self._whole(_U32, at)
        if at + 4 + count * size > len(self.data):
            raise Undecodable(f"{count} items at {at} are beyond the {len(self.data)} bytes")
        return at + 4, count

    def text(self, at: int) -> str:
        """The string at a place."""
        start, count = self.vector(at, 1)
        try:
            return self.data[start : start + count].decode()
        except UnicodeDecodeError as error:
            raise Undecodable(f"the string at {at} is not UTF-8: {error}") from error

    def walk(self, values: int) -> None:
        """Count values; those that are pointed at many times count as often."""
        self._room -= values
        if self._room < 0:
            raise Undecodable(f"more than {MOST_ITEMS:,} values, those that are repeated counted")

    def _whole(self, form: struct.Struct, at: int) -> int:
        return int(self.value(form, at))


@final
class FlatTable:
    """One table of a page."""

    __slots__ = ("_at", "_size", "_vtable", "depth", "page")

    def __init__(self, page: FlatPage, at: int, vtable: int, size: int, depth: int) -> None:
        """`size`: of the vtable."""
        self.page = page
        self.depth = depth
        self._at = at
        self._vtable = vtable
        self._size = size

    def at(self, slot: int) -> int | None:
        """Where the field with this number is; None where it is absent."""
        entry = 4 + 2 * slot
        if entry + 2 > self._size:
            return None
        offset = int(self.page.value(_U16, self._vtable + entry))
        return self._at + offset if offset else None

    def number(self, slot: int, form: struct.Struct, default: int | float | bool) -> int:
        """A whole number."""
        at = self.at(slot)
        return int(default if at is None else self.page.value(form, at))

    def text(self, slot: int) -> str:
        """A string; empty where it is absent."""
        at = self.at(slot)
        return "" if at is None else self.page.text(self.page.place(at))

    def inner(self, slot: int) -> FlatTable | None:
        """The table in a field."""
        at = self.at(slot)
        return None if at is None else self.page.table(self.page.place(at), self.depth + 1)

    def tables(self, slot: int) -> list[FlatTable]:
        """The tables in a vector."""
        at = self.at(slot)
        if at is None:
            return []
        start, count = self.page.vector(self.page.place(at), 4)
        return [
            self.page.table(self.page.place(start + 4 * n), self.depth + 1) for n in range(count)
        ]

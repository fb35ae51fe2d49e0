"""Numbers that say how wide they are, for bytes that other languages will read.

Python has one `int` and one `float`; a serialised value has a width. `Int8(5)` is the int 5, to
be written in one byte.
"""

from __future__ import annotations

from operator import index
from typing import ClassVar, SupportsIndex

from zenlake.errors import SerializeError

__all__ = [
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "SizedInt",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
]


class SizedInt(int):
    """An int of a given width; one that does not fit is refused when it is made."""

    WIDTH: ClassVar[int] = 0
    SIGNED: ClassVar[bool] = False

    def __new__(cls, i: SupportsIndex) -> SizedInt:
        """The same number, once it is known to fit."""
        number = index(i)
        bits = 8 * cls.WIDTH
        least = -(1 << bits - 1) if cls.SIGNED else 0
        if not least <= number < least + (1 << bits):
            raise SerializeError(
                f"{number} does not fit {cls.__name__}: {least} to {least + (1 << bits) - 1}"
            )
        return super().__new__(cls, number)


class Int8(SizedInt):
    """A signed number of 8 bits."""

    WIDTH = 1
    SIGNED = True


class Int16(SizedInt):
    """A signed number of 16 bits."""

    WIDTH = 2
    SIGNED = True


class Int32(SizedInt):
    """A signed number of 32 bits; a plain `int` is written the same way."""

    WIDTH = 4
    SIGNED = True


class Int64(SizedInt):
    """A signed number of 64 bits."""

    WIDTH = 8
    SIGNED = True


class Int128(SizedInt):
    """A signed number of 128 bits."""

    WIDTH = 16
    SIGNED = True


class UInt8(SizedInt):
    """A number from 0 of 8 bits."""

    WIDTH = 1


class UInt16(SizedInt):
    """A number from 0 of 16 bits."""

    WIDTH = 2


class UInt32(SizedInt):
    """A number from 0 of 32 bits."""

    WIDTH = 4


class UInt64(SizedInt):
    """A number from 0 of 64 bits."""

    WIDTH = 8


class UInt128(SizedInt):
    """A number from 0 of 128 bits."""

    WIDTH = 16


class Float32(float):
    """A float to be written in 32 bits; what is too large becomes infinite there."""


class Float64(float):
    """A float of 64 bits; a plain `float` is written the same way."""

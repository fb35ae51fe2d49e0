"""The id of a node: 1 to 16 bytes, and the number they spell.

An id is an unsigned number below 2^128 and never zero. The wire carries it little-endian and
without its high zero bytes; people read it the other way round, as lower-case hexadecimal with
the most significant digit first and no leading zero:

    wire   b3 a2 01        text   1a2b3

A node stamps what it publishes with its own id, so the id inside a timestamp is the same thing
under another name, and lives beside the clock.
"""

from __future__ import annotations

from typing import Final, final

from zenlake.errors import LocatorError

__all__ = ["MAX_ID_BYTES", "TimestampId", "ZenohId"]

MAX_ID_BYTES: Final = 16
#: Under a name of its own: programs call the parameter `bytes`, as it is in Eclipse's package.
Raw = bytes
_HEX: Final = frozenset("0123456789abcdef")


@final
class ZenohId:
    """Who a node is; ids are ordered byte by byte, least significant first.

    That order is not the order of the numbers: it is what every node of a network uses to
    weigh a link or to choose the greater of two, so it has to be this one.
    """

    __slots__ = ("_data",)

    def __init__(self, bytes: Raw | bytearray | ZenohId) -> None:
        """Take little-endian bytes; zero bytes at the high end are dropped."""
        if isinstance(bytes, ZenohId):
            self._data: Raw = bytes._data
            return
        if not isinstance(bytes, Raw | bytearray):
            raise TypeError(f"an id is made of bytes, not {type(bytes).__name__}")
        self._data = trimmed(Raw(bytes))

    @classmethod
    def parse(cls, text: str) -> ZenohId:
        """The id that `text` spells: 1 to 32 lower-case hexadecimal digits, no leading zero."""
        if not text:
            raise LocatorError("an id cannot be empty; write 1 to 32 hexadecimal digits")
        if len(text) > 2 * MAX_ID_BYTES:
            raise LocatorError(f"'{text[:40]}' has {len(text)} digits; an id has at most 32")
        if not _HEX.issuperset(text):
            if _HEX.issuperset(text.lower()):
                raise LocatorError(f"'{text}' has upper-case digits; write '{text.lower()}'")
            raise LocatorError(f"'{text}' is not hexadecimal; an id has the digits 0-9 and a-f")
        if text[0] == "0":
            wanted = text.lstrip("0")
            advice = f"write '{wanted}'" if wanted else "zero is not an id"
            raise LocatorError(f"'{text}' begins with a zero; {advice}")
        number = int(text, 16)
        return cls(number.to_bytes((number.bit_length() + 7) // 8, "little"))

    def __bytes__(self) -> bytes:
        return self._data

    def __int__(self) -> int:
        return int.from_bytes(self._data, "little")

    def __len__(self) -> int:
        return len(self._data)

    def __str__(self) -> str:
        return id_text(self._data)

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZenohId) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    # Bytes without their high zeros compare exactly like the full 16: where one is a prefix of
    # the other, the longer one goes on to a byte that is not zero.
    def __lt__(self, other: object) -> bool:
        return self._data < other._data if isinstance(other, ZenohId) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._data <= other._data if isinstance(other, ZenohId) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._data > other._data if isinstance(other, ZenohId) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._data >= other._data if isinstance(other, ZenohId) else NotImplemented

    def __reduce__(self) -> tuple[type[ZenohId], tuple[bytes]]:
        return ZenohId, (self._data,)


TimestampId = ZenohId
"""The id in a timestamp is that of the node whose clock it is."""


def trimmed(data: bytes) -> bytes:
    """The significant bytes of an id, or `LocatorError` when it is none."""
    if len(data) > MAX_ID_BYTES:
        raise LocatorError(f"an id has at most 16 bytes, these are {len(data)}")
    if data and data[-1]:
        return data
    data = data.rstrip(b"\0")
    if not data:
        raise LocatorError("an id of zero names nobody; give at least one byte that is not zero")
    return data


def id_text(data: bytes) -> str:
    """How people read the significant bytes of an id."""
    return data[::-1].hex().lstrip("0")

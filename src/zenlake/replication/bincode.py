"""The encoding that Eclipse's replication speaks: bincode 1 with integers of fixed size.

u64, u32    little-endian            bool, Option    one byte, 0 or 1
str         u64 length, UTF-8        map, set, Vec   u64 number of members, then each
enum        u32 number of the variant, then its content
"""

from __future__ import annotations

from typing import Final, final

from zenlake.errors import DecodeError

__all__ = ["BincodeReader", "u32", "u64", "written_text"]

#: The longest text that is accepted: key expressions are 65535 bytes at most.
MOST_TEXT: Final = 65535


def u64(number: int) -> bytes:
    """Eight bytes."""
    return number.to_bytes(8, "little")


def u32(number: int) -> bytes:
    """Four bytes."""
    return number.to_bytes(4, "little")


def written_text(text: str) -> bytes:
    """A text after its length in bytes."""
    raw = text.encode()
    return u64(len(raw)) + raw


@final
class BincodeReader:
    """Reads one message from its beginning; anything that does not fit is a `DecodeError`."""

    __slots__ = ("_at", "_bytes")

    def __init__(self, message: bytes) -> None:
        """At the first byte."""
        self._bytes = message
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._bytes) - self._at

    def take(self, length: int) -> bytes:
        """The next bytes."""
        end = self._at + length
        if end > len(self._bytes):
            raise DecodeError(
                f"replication message ends after {len(self._bytes)} bytes, {length} more were "
                f"expected at {self._at}",
                self._at,
            )
        taken = self._bytes[self._at : end]
        self._at = end
        return taken

    def u64(self) -> int:
        """A number of eight bytes."""
        return int.from_bytes(self.take(8), "little")

    def u32(self) -> int:
        """A number of four bytes."""
        return int.from_bytes(self.take(4), "little")

    def flag(self) -> bool:
        """One byte, 0 or 1."""
        byte = self.take(1)[0]
        if byte > 1:
            raise DecodeError(f"replication message has {byte} where 0 or 1 belongs", self._at - 1)
        return byte == 1

    def text(self) -> str:
        """A text with its length before it."""
        length = self.u64()
        if length > MOST_TEXT:
            raise DecodeError(
                f"replication message has a text of {length} bytes; {MOST_TEXT} at most", self._at
            )
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise DecodeError(
                f"replication message has a text that is not UTF-8: {error}"
            ) from None

    def number_of(self, size: int, most: int) -> int:
        """How many members follow, each of at least `size` bytes, and `most` at most."""
        number = self.u64()
        if number > most:
            raise DecodeError(
                f"replication message has {number} members where {most} may be", self._at
            )
        if number * size > self.left:
            raise DecodeError(
                f"replication message has {self.left} bytes left for {number} members", self._at
            )
        return number

    def end(self) -> None:
        """Nothing may follow."""
        if self.left:
            raise DecodeError(f"replication message has {self.left} bytes too many", self._at)

"""What the dissector finds: nodes, and the point where bytes stop making sense."""

from __future__ import annotations

from dataclasses import dataclass, field

from zenlake.errors import DecodeError

__all__ = ["Broken", "Cursor", "FieldNode"]

U64 = 0xFFFF_FFFF_FFFF_FFFF


class Broken(DecodeError):
    """The bytes stop making sense at `offset`."""


@dataclass(slots=True)
class FieldNode:
    """Some bytes and what they say; a message and a structure hold their parts as children."""

    offset: int
    name: str
    data: bytes = b""
    value: object = None  # as JSON can hold it
    meaning: str = ""
    bits: str = ""  # for a part of a byte: its digits in place, dots elsewhere
    prefix: int = 0  # how many bytes at its beginning are a length, a count or a header
    children: list[FieldNode] = field(default_factory=list)
    fields: dict[str, object] | None = None  # of a message: its fields as a program sees them

    def to_dict(self) -> dict[str, object]:
        """The node and all below it, as JSON can hold them."""
        document: dict[str, object] = {"offset": self.offset}
        document |= {"bits": self.bits} if self.bits else {"bytes": self.data.hex()}
        document |= {"name": self.name, "value": self.value, "meaning": self.meaning}
        document["children"] = [child.to_dict() for child in self.children]
        return document


class Cursor:
    """Takes primitives from bytes, written apart from the codecs' reader to be a check on it."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first byte."""
        self.data = data
        self.pos = 0
        self.end = len(data)

    @property
    def left(self) -> int:
        """How many bytes may still be taken."""
        return self.end - self.pos

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size > self.left:
            raise Broken(f"{plural(size, 'byte')} wanted, {self.left} left", self.pos)
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def number(self, form: str, limit: int = U64) -> int:
        """An unsigned integer: `u8`, `u16`, `vle` or `nat`, at most `limit`."""
        start = self.pos
        match form:
            case "u8":
                value = self.take(1)[0]
            case "u16":
                value = int.from_bytes(self.take(2), "little")
            case "vle":
                value = self.groups(8, last_is_whole=True)
            case _:
                value = self.groups(9, last_is_whole=False)
        if value > limit:
            self.pos = start
            raise Broken(f"{value} is too large, at most {limit}", start)
        return value

    def groups(self, more: int, last_is_whole: bool) -> int:
        """Seven bits a byte, lowest first, with at most `more` bytes that announce another.

        In 1.x the byte behind those is eight bits of value; in 2018 it may not go on.
        """
        start = self.pos
        value = 0
        for index in range(more + 1):
            if self.left == 0:
                self.pos = start
                raise Broken("the number has no last byte", start)
            byte = self.take(1)[0]
            if index == more and last_is_whole:
                return value | byte << 7 * index
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return value
        self.pos = start
        raise Broken(f"the number is longer than {more + 1} bytes", start)

    def text(self, size: int) -> str:
        """The next `size` bytes as UTF-8."""
        start = self.pos
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            self.pos = start
            raise Broken(f"the text is not UTF-8: {error.reason}", start + error.start) from None

    def zid(self, size: int) -> bytes:
        """A node id without its high zero bytes."""
        start = self.pos
        if not 1 <= size <= 16:
            raise Broken(f"a node id has 1 to 16 bytes, not {size}", start)
        raw = self.take(size).rstrip(b"\0")
        if not raw:
            self.pos = start
            raise Broken("a node id is never zero", start)
        return raw


def plural(count: int, word: str) -> str:
    """`1 byte`, `2 bytes`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"

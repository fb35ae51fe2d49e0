"""What every message of both protocols can do: be written, compared, shown and pickled."""

from __future__ import annotations

from typing import ClassVar, Final

from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.cursor import Reader, Writer


class Message:
    """One thing said on the wire; the generated classes below it have its fields."""

    __slots__ = ()

    #: The name of the message in the specification's words.
    NAME: ClassVar[str] = "Message"
    #: Its fields in wire order.
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def write(self, w: Writer) -> None:
        """Append the message's bytes to a batch."""
        raise NotImplementedError(self.NAME)

    def to_dict(self) -> dict[str, object]:
        """The fields as plain values that JSON can hold; what is absent on the wire is left out."""
        raise NotImplementedError(self.NAME)

    def __eq__(self, other: object) -> bool:
        """Two messages are equal if they are of one kind and their fields are equal."""
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    def __hash__(self) -> int:
        """Equal messages have equal hashes."""
        return hash((self.NAME, *[getattr(self, name) for name in self.FIELDS]))

    def __repr__(self) -> str:
        """The message as the expression that makes it."""
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[object, ...]:
        """How to pickle and copy it (compiled classes cannot by themselves)."""
        return rebuild, (type(self), {name: getattr(self, name) for name in self.FIELDS})


def rebuild(kind: type[Message], fields: dict[str, object]) -> Message:
    """A message again from its pickled fields."""
    return kind(**fields)


def zid_text(zid: bytes) -> str:
    """A node id as people write it: hexadecimal, most significant digit first."""
    return zid[::-1].hex().lstrip("0")


class UnknownExtension(Message):
    """An extension that nobody here knows, kept as it came so that it can be sent on."""

    __slots__ = ("body", "header")

    NAME: ClassVar[str] = "UnknownExtension"
    FIELDS: ClassVar[tuple[str, ...]] = ("header", "body")

    def __init__(self, *, header: int, body: bytes) -> None:
        """`header` without its "more" bit; `body` with its length, if it has one."""
        self.header: int = header
        self.body: bytes = body

    def write(self, w: Writer) -> None:
        """Append it as the last extension."""
        self.append(w, False)

    def append(self, w: Writer, more: bool) -> None:
        """Append it; `more`: another extension follows. What nobody could skip is refused."""
        header = self.header
        fits = header >= 0 and header <= 0x5F
        if fits:
            r = Reader(self.body)
            try:
                r.skip_extension(header & 0x6F, "an unknown extension")
            except DecodeError:
                fits = False
            fits = fits and r.pos == r.end
        if not fits:
            raise EncodeError(
                f"header 0x{header:02x} and body {self.body.hex() or 'nothing'} are no extension: "
                "0x00 to 0x5f, and a body in the shape that bits 5 and 6 say"
            )
        w.u8(header | 0x80 if more else header)
        w.raw(self.body)

    def to_dict(self) -> dict[str, object]:
        """Its identity and its raw bytes."""
        return {"header": self.header, "body": self.body.hex()}


#: Sixteen ids in three shapes: no honest message has more unknown extensions than that.
MOST_UNKNOWN: Final = 48


def keep_extension(kept: list[UnknownExtension], r: Reader, tag: int, message: str) -> None:
    """Keep the unknown extension that begins with `tag`; refuse it if it is mandatory."""
    start = r.pos
    r.skip_extension(tag, message)
    if len(kept) >= MOST_UNKNOWN:
        raise DecodeError(
            f"{message} has more than {MOST_UNKNOWN} unknown extensions, at offset {start - 1}",
            start - 1,
        )
    kept.append(UnknownExtension(header=tag & 0x7F, body=r.data[start : r.pos]))

"""Payloads: bytes that came from somewhere and are not copied on the way.

A `ZBytes` is a window on one `bytes` object, such as the batch a message arrived in, or a row of
windows on several buffers. Cutting and joining makes new windows and moves no byte;
`to_bytes` is where a copy is made, when one is needed.

Payloads do not change. What cannot change (`bytes`, a read-only `memoryview`, an Arrow buffer,
a numpy array that is not writable) is held as it is; what can (a `bytearray`, a writable array)
is copied, unless you promise to leave it alone by writing `ZBytes.borrow(array)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast, final, overload

from zenlake.errors import SerializeError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["IntoZBytes", "ZBytes"]


class Array(Protocol):
    """A numpy array; before Python 3.12 its types do not say that it has a buffer."""

    @property
    def __array_interface__(self) -> dict[str, object]: ...


IntoZBytes: TypeAlias = "Buffer | Array | str | ZBytes"

_SHOWN: Final = 64


@final
class ZBytes:
    """Bytes of a payload or an attachment, in one piece or in several."""

    # In one piece: `_data[_start:_end]`, and `_parts` is None. In several (or in a buffer that
    # is not `bytes`): `_parts`, none of them empty, and `_end` is their length together.
    __slots__ = ("_data", "_end", "_parts", "_start")

    def __init__(self, data: IntoZBytes | None = None, /) -> None:
        """Take bytes, text (as UTF-8) or anything that has a buffer; nothing makes it empty."""
        self._data: bytes = b""
        self._start: int = 0
        self._end: int = 0
        self._parts: tuple[memoryview, ...] | None = None
        if isinstance(data, bytes):
            self._data = data
            self._end = len(data)
        elif isinstance(data, str):
            self._data = utf8(data)
            self._end = len(self._data)
        elif isinstance(data, ZBytes):
            self._data = data._data
            self._start = data._start
            self._end = data._end
            self._parts = data._parts
        elif isinstance(data, bytearray):
            self._data = bytes(data)
            self._end = len(data)
        elif data is not None:
            view = _view_of(data)
            if view.readonly:
                self._hold((_flat(view),))
            else:
                self._data = view.tobytes()
                self._end = view.nbytes

    @classmethod
    def borrow(cls, data: Buffer | Array) -> ZBytes:
        """Hold any buffer without a copy, on your word that it will not change meanwhile.

        Args:
            data: The bytes, which must not change.
        """
        if isinstance(data, bytes):
            return cls(data)
        payload = cls()
        payload._hold((_flat(_view_of(data)),))
        return payload

    @classmethod
    def window(cls, data: bytes, start: int, end: int) -> ZBytes:
        """The bytes `data[start:end]`, left where they are.

        Args:
            data: The bytes, which must not change.
            start: Where it begins.
            end: Where it ends.
        """
        if not 0 <= start <= end <= len(data):
            raise SerializeError(f"no window {start}:{end} in {len(data)} bytes")
        payload = cls(data)
        payload._start = start
        payload._end = end
        return payload

    @classmethod
    def join(cls, pieces: Iterable[IntoZBytes]) -> ZBytes:
        """All pieces one after the other, left where they are.

        Args:
            pieces: The parts in their order.
        """
        parts: list[memoryview] = []
        for piece in pieces:
            parts.extend((piece if isinstance(piece, ZBytes) else cls(piece)).slices())
        payload = cls()
        payload._hold(tuple(parts))
        return payload

    def _hold(self, parts: tuple[memoryview, ...]) -> None:
        self._parts = tuple(part for part in parts if part.nbytes)
        self._end = sum(part.nbytes for part in self._parts)

    def to_bytes(self, /) -> bytes:
        """The bytes in one piece; copied unless they are a whole `bytes` object already."""
        if self._parts is not None:
            return b"".join(self._parts)
        # Said aloud, because compiled code copies a slice even when it is the whole.
        if self._end - self._start == len(self._data):
            return self._data
        return self._data[self._start : self._end]

    def to_string(self, /) -> str:
        """The bytes read as UTF-8."""
        try:
            return self.to_bytes().decode()
        except UnicodeDecodeError as error:
            raise SerializeError(
                f"the payload is not UTF-8 at byte {error.start}: {self!r}; use to_bytes()"
            ) from error

    def view(self) -> memoryview:
        """A read-only view in one piece; copied only when the payload is in several."""
        if self._parts is None:
            return memoryview(self._data)[self._start : self._end]
        if len(self._parts) == 1:
            return self._parts[0].toreadonly()
        return memoryview(b"".join(self._parts))

    def slices(self) -> Iterator[memoryview]:
        """A read-only view of each piece, where it is; an empty payload has none."""
        if self._parts is not None:
            return iter([part.toreadonly() for part in self._parts])
        if self._start == self._end:
            return iter([])
        return iter([memoryview(self._data)[self._start : self._end]])

    def as_shm(self, /) -> None:
        """None: payloads never lie in Zenoh's shared memory here."""

    def _cut(self, start: int, end: int) -> ZBytes:
        if self._parts is None:
            return ZBytes.window(self._data, self._start + start, self._start + end)
        parts: list[memoryview] = []
        for part in self._parts:
            parts.append(part[max(start, 0) : max(end, 0)])
            start -= part.nbytes
            end -= part.nbytes
        payload = ZBytes()
        payload._hold(tuple(parts))
        return payload

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> ZBytes: ...
    def __getitem__(self, index: int | slice) -> int | ZBytes:
        if isinstance(index, slice):
            start, end, step = index.indices(len(self))
            if step != 1:
                raise SerializeError(f"a payload is cut in steps of 1, not {step}; use to_bytes()")
            return self._cut(start, max(start, end))
        size = len(self)
        at = index + size if index < 0 else index
        if not 0 <= at < size:
            raise IndexError(f"byte {index} of a payload of {size}")
        if self._parts is None:
            return self._data[self._start + at]
        return self._cut(at, at + 1).to_bytes()[0]

    def __add__(self, other: IntoZBytes) -> ZBytes:
        return ZBytes.join((self, other))

    def __iter__(self) -> Iterator[int]:
        return iter(self.to_bytes())

    def __len__(self) -> int:
        return self._end - self._start

    def __bool__(self) -> bool:
        return self._end != self._start

    def __bytes__(self) -> bytes:
        return self.to_bytes()

    def __buffer__(self, flags: int, /) -> memoryview:
        return self.view()

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        if len(self) <= _SHOWN:
            return f"ZBytes({self.to_bytes()!r})"
        return f"<ZBytes {self._cut(0, _SHOWN).to_bytes()!r}... {len(self)} bytes>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ZBytes):
            return len(self) == len(other) and self.to_bytes() == other.to_bytes()
        if isinstance(other, str):
            return self.to_bytes() == other.encode("utf-8", "surrogatepass")
        if isinstance(other, bytes | bytearray | memoryview):
            return self.to_bytes() == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __reduce__(self) -> tuple[type[ZBytes], tuple[bytes]]:
        return ZBytes, (self.to_bytes(),)


def utf8(text: str) -> bytes:
    """Text as UTF-8; half a surrogate pair is refused, as no other language could read it."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SerializeError(
            f"{text[:80]!r} holds a lone surrogate at {error.start}, which UTF-8 cannot carry; "
            "send bytes instead"
        ) from error


def _view_of(data: object) -> memoryview:
    try:
        return memoryview(cast("Buffer", data))
    except TypeError as error:
        raise TypeError(
            f"a payload is bytes, text or a buffer, not {type(data).__name__}; "
            "z_serialize() turns other values into bytes"
        ) from error


def _flat(view: memoryview) -> memoryview:
    """The same memory as single bytes; copied when it does not lie in one stretch."""
    if view.nbytes == 0:
        return memoryview(b"")
    if not view.c_contiguous:
        return memoryview(view.tobytes())
    try:
        return view.cast("B")
    except (TypeError, NotImplementedError):
        # Records and other composite items: memoryview has no word for their bytes.
        return memoryview(view.tobytes())

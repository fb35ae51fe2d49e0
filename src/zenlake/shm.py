"""Shared memory: the names are here, the memory is not.

Programs that import `zenoh.shm` run: layouts and policies are values and work. What would need
memory shared with other processes raises `ShmError`, which says so. Sessions never agree on
shared memory with a neighbour, so that everybody sends them ordinary bytes and nothing is lost
but speed: payloads of any size are published as `bytes` or `memoryview`.
"""

from __future__ import annotations

from types import EllipsisType
from typing import ClassVar, NoReturn, TypeAlias, final

from zenlake.errors import LocalError

__all__ = [
    "AllocAlignment",
    "BlockOn",
    "Deallocate",
    "Defragment",
    "GarbageCollect",
    "JustAlloc",
    "MemoryLayout",
    "ShmError",
    "ShmProvider",
    "ZShm",
    "ZShmMut",
]


class ShmError(LocalError, NotImplementedError):
    """Something that needs shared memory, which zenlake does not support."""


def _refuse(what: str) -> NoReturn:
    raise ShmError(
        f"{what}: zenlake does not support shared memory; publish bytes or a memoryview instead, "
        "which every neighbour understands"
    )


@final
class AllocAlignment:
    """An alignment in memory: a power of two."""

    __slots__ = ("_pow",)

    ALIGN_1_BYTE: ClassVar[AllocAlignment]
    ALIGN_2_BYTE: ClassVar[AllocAlignment]
    ALIGN_4_BYTE: ClassVar[AllocAlignment]
    ALIGN_8_BYTE: ClassVar[AllocAlignment]

    def __init__(self, pow: int) -> None:
        """Two to the power of `pow`."""
        if not 0 <= pow <= 0xFF:
            raise OverflowError(f"2 to the power of {pow} is no alignment; give 0 to 63")
        if pow > 63:
            raise LocalError(f"incorrect layout arguments: 2 to the power of {pow}; give 0 to 63")
        self._pow: int = pow

    def get_alignment_value(self, /) -> int:
        """The alignment in bytes."""
        return 1 << self._pow

    def align_size(self, /, size: int) -> int:
        """The next size that is a multiple of it.

        Args:
            size: A number of bytes.
        """
        return -(-size >> self._pow) << self._pow

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AllocAlignment) and self._pow == other._pow

    def __hash__(self) -> int:
        return hash(self._pow)

    def __repr__(self) -> str:
        return f"AllocAlignment({self._pow})"


AllocAlignment.ALIGN_1_BYTE = AllocAlignment(0)
AllocAlignment.ALIGN_2_BYTE = AllocAlignment(1)
AllocAlignment.ALIGN_4_BYTE = AllocAlignment(2)
AllocAlignment.ALIGN_8_BYTE = AllocAlignment(3)


@final
class MemoryLayout:
    """A size in memory, and how it is aligned."""

    __slots__ = ("_alignment", "_size")

    def __init__(self, obj: IntoMemoryLayout, alignment: AllocAlignment | None = None) -> None:
        """A size, `(size, alignment)`, or a size and its alignment."""
        if isinstance(obj, MemoryLayout):
            obj = (obj._size, obj._alignment)
        if isinstance(obj, tuple):
            obj, alignment = obj
        chosen = AllocAlignment.ALIGN_1_BYTE if alignment is None else alignment
        if obj < 1 or obj % chosen.get_alignment_value():
            raise LocalError(
                f"incorrect layout arguments: {obj} bytes are no multiple of "
                f"{chosen.get_alignment_value()}; round up with align_size({obj})"
            )
        self._size: int = obj
        self._alignment: AllocAlignment = chosen

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._size

    @property
    def alignment(self) -> AllocAlignment:
        """How it is aligned."""
        return self._alignment

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MemoryLayout)
            and self._size == other._size
            and self._alignment == other._alignment
        )

    def __hash__(self) -> int:
        return hash((self._size, self._alignment))

    def __repr__(self) -> str:
        return f"MemoryLayout({self._size}, {self._alignment!r})"


@final
class JustAlloc:
    """Take memory if there is some, else fail."""

    def __repr__(self) -> str:
        return "JustAlloc()"


@final
class BlockOn:
    """Take memory, and wait for it."""

    def __init__(self, inner_policy: AllocPolicy | EllipsisType = ...) -> None:
        """Try as `inner_policy` says: `JustAlloc()` unless you say otherwise."""
        self.inner_policy: AllocPolicy = _policy("inner_policy", inner_policy)


@final
class Defragment:
    """Take memory; if there is none, join what is free and try again."""

    def __init__(
        self,
        inner_policy: AllocPolicy | EllipsisType = ...,
        alt_policy: AllocPolicy | EllipsisType = ...,
    ) -> None:
        """Try as `inner_policy` says, then as `alt_policy` does."""
        self.inner_policy: AllocPolicy = _policy("inner_policy", inner_policy)
        self.alt_policy: AllocPolicy = _policy("alt_policy", alt_policy)


@final
class Deallocate:
    """Take memory; if there is none, free what others hold and try again."""

    def __init__(
        self,
        limit: int,
        inner_policy: AllocPolicy | EllipsisType = ...,
        alt_policy: AllocPolicy | EllipsisType = ...,
    ) -> None:
        """Free at most `limit` pieces."""
        self.limit: int = limit
        self.inner_policy: AllocPolicy = _policy("inner_policy", inner_policy)
        self.alt_policy: AllocPolicy = _policy("alt_policy", alt_policy)


@final
class GarbageCollect:
    """Take memory; if there is none, collect what nobody uses and try again."""

    def __init__(
        self,
        inner_policy: AllocPolicy | EllipsisType = ...,
        alt_policy: AllocPolicy | EllipsisType = ...,
        safe: bool = True,
    ) -> None:
        """`safe`: only what is certainly unused."""
        self.inner_policy: AllocPolicy = _policy("inner_policy", inner_policy)
        self.alt_policy: AllocPolicy = _policy("alt_policy", alt_policy)
        self.safe: bool = safe


AllocPolicy: TypeAlias = JustAlloc | BlockOn | Defragment | Deallocate | GarbageCollect
IntoMemoryLayout: TypeAlias = MemoryLayout | tuple[int, AllocAlignment] | int


def _policy(name: str, given: AllocPolicy | EllipsisType) -> AllocPolicy:
    if given is ...:
        return JustAlloc()
    if not isinstance(given, AllocPolicy):
        raise TypeError(f"argument '{name}': expected policy type, not {type(given).__name__}")
    return given


class ShmProvider:
    """Who would hand out shared memory; there is none."""

    def __init__(self) -> None:
        raise TypeError("No constructor defined for ShmProvider")

    @classmethod
    def default_backend(cls, /, layout: IntoMemoryLayout) -> ShmProvider:
        """Not supported.

        Args:
            layout: How many bytes, and how they are aligned.
        """
        _refuse(f"ShmProvider.default_backend({layout!r})")

    def alloc(
        self, /, layout: IntoMemoryLayout, policy: AllocPolicy | EllipsisType = ...
    ) -> ZShmMut:
        """Not supported.

        Args:
            layout: How many bytes, and how they are aligned.
            policy: What to do when there is no room.
        """
        _refuse(f"ShmProvider.alloc({layout!r})")

    def defragment(self, /) -> None:
        """Not supported."""
        _refuse("ShmProvider.defragment()")

    def garbage_collect(self, /) -> int:
        """Not supported."""
        _refuse("ShmProvider.garbage_collect()")

    def garbage_collect_unsafe(self, /) -> int:
        """Not supported."""
        _refuse("ShmProvider.garbage_collect_unsafe()")

    @property
    def available(self) -> int:
        """Not supported."""
        _refuse("ShmProvider.available")


class ZShm:
    """Shared memory to read; no payload of zenlake is one, and `ZBytes.as_shm` gives None."""

    def __init__(self) -> None:
        raise TypeError("No constructor defined for ZShm")

    def is_valid(self, /) -> bool:
        """Not supported."""
        _refuse("ZShm.is_valid()")

    def __bytes__(self) -> bytes:
        _refuse("bytes(ZShm)")

    def __str__(self) -> str:
        _refuse("str(ZShm)")


class ZShmMut:
    """Shared memory to write; nobody hands out any."""

    def __init__(self) -> None:
        raise TypeError("No constructor defined for ZShmMut")

    def __setitem__(self, item: int | slice, value: int | bytes | bytearray) -> None:
        _refuse("ZShmMut[...] = ...")

    def __delitem__(self, item: int | slice) -> NoReturn:
        raise TypeError("ZShmMut: bytes of shared memory cannot be deleted")

    def __bytes__(self) -> bytes:
        _refuse("bytes(ZShmMut)")

    def __str__(self) -> str:
        _refuse("str(ZShmMut)")

    def __repr__(self) -> str:
        return "<ZShmMut>"

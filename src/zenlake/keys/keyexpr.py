"""`KeyExpr`: a checked key expression, and how two of them relate.

    >>> KeyExpr("robot/*/pose").includes("robot/12/pose")
    True
    >>> KeyExpr("robot") / "12" / "**"
    ke`robot/12/**`

A `KeyExpr` compares equal to the same text and hashes like it, so it finds what a `str` stored.
"""

from __future__ import annotations

from enum import Enum
from typing import NoReturn, final

from zenlake.errors import KeyExprError
from zenlake.keys.matching import (
    canonize,
    check,
    chunks_include,
    chunks_intersect,
    is_verbatim,
    is_wild,
)

__all__ = ["IntoKeyExpr", "KeyExpr", "SetIntersectionLevel"]


class SetIntersectionLevel(Enum):
    """How the keys of one expression relate to those of another, from apart to equal."""

    DISJOINT = 0
    INTERSECTS = 1
    INCLUDES = 2
    EQUALS = 3

    def __int__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"SetIntersectionLevel.{self.name}"

    def __lt__(self, other: SetIntersectionLevel) -> bool:
        return self.value < other.value

    def __le__(self, other: SetIntersectionLevel) -> bool:
        return self.value <= other.value

    def __gt__(self, other: SetIntersectionLevel) -> bool:
        return self.value > other.value

    def __ge__(self, other: SetIntersectionLevel) -> bool:
        return self.value >= other.value


@final
class KeyExpr:
    """A key expression in canonical form: the name of a set of keys.

    The constructor refuses text that is not canonical; `KeyExpr.autocanonize` repairs it.
    """

    __slots__ = ("_chunks", "_wild", "text")

    #: As it is written; the same as `str()` of it.
    text: str
    _chunks: list[str] | None
    _wild: bool | None

    def __new__(cls, key_expr: str) -> KeyExpr:
        """Check `key_expr` and keep it."""
        if type(key_expr) is not str:
            if not isinstance(key_expr, str):
                _refuse(key_expr)
            key_expr = str(key_expr)
        check(key_expr)
        return cls.trusted(key_expr)

    @classmethod
    def autocanonize(cls, key_expr: str) -> KeyExpr:
        """Put `key_expr` in canonical form first: `a/**/*` becomes `a/*/**`."""
        if not isinstance(key_expr, str):
            _refuse(key_expr)
        return cls.trusted(canonize(str(key_expr)))

    @classmethod
    def trusted(cls, text: str) -> KeyExpr:
        """Wrap text that is known to be canonical, without checking it again.

        Args:
            text: A key expression in canonical form; it is not checked.
        """
        self = object.__new__(cls)
        self.text = text
        self._chunks = None
        self._wild = None
        return self

    @classmethod
    def of(cls, key_expr: IntoKeyExpr) -> KeyExpr:
        """Return `key_expr` itself if it is a `KeyExpr`, else check its text."""
        return key_expr if isinstance(key_expr, KeyExpr) else cls(key_expr)

    # --- facts ---------------------------------------------------------------------------------

    @property
    def chunks(self) -> tuple[str, ...]:
        """The text between the slashes."""
        return tuple(self._cut())

    @property
    def is_wild(self) -> bool:
        """Whether it stands for more than one key."""
        if self._wild is None:
            self._wild = is_wild(self.text)
        return self._wild is True

    @property
    def has_verbatim(self) -> bool:
        """Whether a chunk starts with `@`, and so is matched by its equal alone."""
        return any(is_verbatim(chunk) for chunk in self._cut())

    def _cut(self) -> list[str]:
        chunks = self._chunks
        if chunks is None:
            chunks = self.text.split("/")
            self._chunks = chunks
        return chunks

    # --- relations -----------------------------------------------------------------------------

    def intersects(self, /, other: IntoKeyExpr) -> bool:
        """Whether at least one key belongs to both.

        Args:
            other: The key expression to compare with.
        """
        other = KeyExpr.of(other)
        if self.text == other.text:
            return True
        if "*" not in self.text and "*" not in other.text:
            return False
        return chunks_intersect(self._cut(), other._cut())

    def includes(self, /, other: IntoKeyExpr) -> bool:
        """Whether every key of `other` belongs to this expression."""
        other = KeyExpr.of(other)
        if self.text == other.text:
            return True
        return "*" in self.text and chunks_include(self._cut(), other._cut())

    def relation_to(self, /, other: IntoKeyExpr) -> SetIntersectionLevel:
        """Return the strongest that holds; "is included in" counts as INTERSECTS.

        Args:
            other: The key expression to compare with.
        """
        other = KeyExpr.of(other)
        if self.text == other.text:
            return SetIntersectionLevel.EQUALS
        if self.includes(other):
            return SetIntersectionLevel.INCLUDES
        if self.intersects(other):
            return SetIntersectionLevel.INTERSECTS
        return SetIntersectionLevel.DISJOINT

    # --- building ------------------------------------------------------------------------------

    def join(self, /, other: IntoKeyExpr) -> KeyExpr:
        """Append `other` behind a `/`, and put the result in canonical form."""
        return KeyExpr.autocanonize(f"{self.text}/{_text(other)}")

    def concat(self, /, other: IntoKeyExpr) -> KeyExpr:
        """Append `other` as it is; the result must be canonical, and no stars may meet."""
        added = _text(other)
        if self.text.endswith("*") and added.startswith("*"):
            raise KeyExprError(
                f"'{self.text}' and '{added}': the stars would run together and mean something "
                f"else; write '{self.text}/{added}' with join()"
            )
        return KeyExpr(self.text + added)

    def __truediv__(self, other: IntoKeyExpr) -> KeyExpr:
        """`KeyExpr("a") / "b"` is `a/b`."""
        if not isinstance(other, (KeyExpr, str)):
            return NotImplemented
        return self.join(other)

    def __rtruediv__(self, other: str) -> KeyExpr:
        """`"a" / KeyExpr("b")` is `a/b`."""
        if not isinstance(other, str):
            return NotImplemented
        return KeyExpr.autocanonize(f"{other}/{self.text}")

    # --- being a value -------------------------------------------------------------------------

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"ke`{self.text}`"

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KeyExpr):
            return self.text == other.text
        if isinstance(other, str):
            return self.text == other
        return NotImplemented

    def __lt__(self, other: IntoKeyExpr) -> bool:
        if not isinstance(other, (KeyExpr, str)):
            return NotImplemented
        return self.text < _text(other)

    def __le__(self, other: IntoKeyExpr) -> bool:
        if not isinstance(other, (KeyExpr, str)):
            return NotImplemented
        return self.text <= _text(other)

    def __gt__(self, other: IntoKeyExpr) -> bool:
        if not isinstance(other, (KeyExpr, str)):
            return NotImplemented
        return self.text > _text(other)

    def __ge__(self, other: IntoKeyExpr) -> bool:
        if not isinstance(other, (KeyExpr, str)):
            return NotImplemented
        return self.text >= _text(other)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return KeyExpr, (self.text,)


IntoKeyExpr = KeyExpr | str
"""What may stand for a key expression."""


def _text(key_expr: IntoKeyExpr) -> str:
    if isinstance(key_expr, KeyExpr):
        return key_expr.text
    if not isinstance(key_expr, str):
        _refuse(key_expr)
    return key_expr


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"a key expression is written as str, not {type(value).__name__}: {value!r}")

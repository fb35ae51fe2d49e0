"""Which rows a querier may see: those of keys that the access control lets them have.

Key expressions become a regular expression (`keys/pattern`) that Spark applies to the column `key`,
beneath everything that the question does with the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from zenlake.keys import includes, intersects
from zenlake.keys.pattern import END, pattern_of
from zenlake.keys.readable import ALL_KEYS, ReadableChoice, ReadableKeys

__all__ = ["EVERYTHING", "RowAccess"]


@dataclass(frozen=True, slots=True)
class RowAccess:
    """Keys that may be seen: those that meet some of `allowed` and none of `denied`."""

    allowed: tuple[str, ...] | None = None
    """None: all of them, those with chunks that begin with @ too."""
    denied: tuple[str, ...] = ()
    readable: ReadableKeys = ALL_KEYS
    """And those alone, of these, that the asker may read."""

    @property
    def unrestricted(self) -> bool:
        """Whether every row may be seen, those without a key too."""
        return not self.denied and self.allowed is None and self.readable.unrestricted

    def asked_by(self, readable: ReadableKeys) -> RowAccess:
        """The same for an asker who may read certain keys."""
        return replace(self, readable=readable)

    def may_see_some(self, keys: str) -> bool:
        """Whether some key of an expression may be seen, as far as expressions tell."""
        own = ReadableChoice(self.allowed, self.denied)
        demands = ((own,), *self.readable.demands)
        return all(any(_lets_some(one, keys) for one in choices) for choices in demands)

    def pattern(self) -> str:
        """One regular expression for the keys that may be seen."""
        demands = ""
        for choices in self.readable.demands:
            some = "|".join(_choice(one.allowed, one.denied) for one in choices) or "(?!)"
            demands += f"(?=(?:{some}){END})"
        return f"^{demands}{_choice(self.allowed, self.denied)}{END}"


EVERYTHING: Final = RowAccess()


def _lets_some(choice: ReadableChoice, keys: str) -> bool:
    """Whether some key of an expression may be one of a choice."""
    allowed = choice.allowed
    return (allowed is None or any(intersects(one, keys) for one in allowed)) and not any(
        includes(one, keys) for one in choice.denied
    )


def _choice(allowed: Iterable[str] | None, denied: Iterable[str]) -> str:
    """The keys that some of `allowed` include and none of `denied` does."""
    seen = r"[\s\S]*" if allowed is None else _either(allowed)
    but = f"(?!(?:{_either(denied)}){END})" if denied else ""
    return f"{but}(?:{seen})"


def _either(exprs: Iterable[str]) -> str:
    return "|".join(f"(?:{pattern_of(expr)})" for expr in exprs) or "(?!)"

"""Which rows a querier may see: those of keys that the access control lets them have.

A key expression becomes a regular expression that Spark applies to the column `key`, beneath
everything that the question does with the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from zenlake.keys import KeyExpr
from zenlake.keys.readable import ALL_KEYS, ReadableKeys

__all__ = ["EVERYTHING", "RowAccess", "pattern_of"]

#: The end of a text, in Python and in Java: `$` is also what stands before a last line break.
_END: Final = r"(?![\s\S])"
_ESCAPED: Final = re.compile(r"[\\.+*?()\[\]{}|^$#&~\-]")


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

    def pattern(self) -> str:
        """One regular expression for the keys that may be seen."""
        demands = ""
        for choices in self.readable.demands:
            some = "|".join(_choice(one.allowed, one.denied) for one in choices) or "(?!)"
            demands += f"(?=(?:{some}){_END})"
        return f"^{demands}{_choice(self.allowed, self.denied)}{_END}"


EVERYTHING: Final = RowAccess()


def pattern_of(expr: str) -> str:
    """The regular expression of a key expression, without anchors, as Python and Java read it."""
    pattern = ""
    chunks = str(KeyExpr(expr)).split("/")
    for place, chunk in enumerate(chunks):
        last = place == len(chunks) - 1
        if chunk == "**":
            # Chunks that begin with @ are met only by name.
            pattern += "(?:(?!@)[^/]+(?:/(?!@)[^/]+)*)" if place == 0 and last else ""
            if place == 0 and not last:
                pattern += "(?:(?!@)[^/]+/)*"
            elif place and last:
                pattern = f"{pattern[:-1]}(?:/(?!@)[^/]+)*"
            elif place:
                pattern += "(?:(?!@)[^/]+/)*"
            continue
        pattern += _chunk(chunk) + ("" if last else "/")
    return pattern


def _chunk(chunk: str) -> str:
    if chunk == "*":
        return "(?!@)[^/]+"
    pieces = [chunk] if chunk.startswith("@") else chunk.split("$*")
    pattern = "[^/]*".join(_ESCAPED.sub(r"\\\g<0>", piece) for piece in pieces)
    return f"(?!@){pattern}" if not pieces[0] else pattern


def _choice(allowed: Iterable[str] | None, denied: Iterable[str]) -> str:
    """The keys that some of `allowed` include and none of `denied` does."""
    seen = r"[\s\S]*" if allowed is None else _either(allowed)
    but = f"(?!(?:{_either(denied)}){_END})" if denied else ""
    return f"{but}(?:{seen})"


def _either(exprs: Iterable[str]) -> str:
    return "|".join(f"(?:{pattern_of(expr)})" for expr in exprs) or "(?!)"

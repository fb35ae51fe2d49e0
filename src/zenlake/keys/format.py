"""`KeyFormat`: key expressions with named parts, to build keys from values and read them back.

    >>> pose = KeyFormat("robot/${id:*}/${topic:**}")
    >>> pose.build(id=12, topic="arm/left")
    ke`robot/12/arm/left`
    >>> pose.parse("robot/12/arm/left")
    {'id': '12', 'topic': 'arm/left'}

A part is `${name:pattern}` or `${name:pattern#default}` and fills whole chunks; its pattern is a
key expression, and only patterns may hold wildcards. Where a pattern holds a `}` write
`$#{name:pattern}#`. A part whose pattern may match nothing (`**`) may be the empty text.

**Where a key can be cut in several ways the leftmost part takes as much as the rest can spare.**
`${a:**}/-/${b:**}` reads `x/-/-/y` as a = `x/-`, b = `y`. Put an `@` chunk between two `**` and
there is one way only. Reading costs (chunks of the format) x (chunks of the key), never more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from zenlake.errors import KeyExprError
from zenlake.keys.keyexpr import IntoKeyExpr, KeyExpr
from zenlake.keys.matching import chunk_includes, is_verbatim

__all__ = ["KeyFormat"]

_SPEC = re.compile(r"\$#\{(?P<hashed>.*?)\}#|\$\{(?P<plain>[^}]*)\}")


@dataclass(frozen=True, slots=True)
class _Part:
    """A run of chunks in the format: named, or literal when the name is empty."""

    name: str
    pattern: KeyExpr
    default: str | None = None

    def accepts(self, text: str) -> bool:
        if not text:
            return self.pattern == "**"
        return self.pattern.includes(text)


@final
class KeyFormat:
    """A shape of keys with named parts."""

    __slots__ = ("_fixed", "_key_expr", "_parts", "_text")

    def __init__(self, text: str) -> None:
        """Read the format; raise `KeyExprError` where it is malformed."""
        self._text = text
        self._parts = _read_parts(text)
        self._key_expr = KeyExpr.autocanonize("/".join([str(p.pattern) for p in self._parts]))
        patterns = tuple([chunk for part in self._parts for chunk in part.pattern.chunks])
        # Where no part may be longer than another time, there is only one way to lay them.
        self._fixed = None if "**" in patterns else patterns

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression of all keys of this format: what to subscribe to."""
        return self._key_expr

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts, from left to right."""
        return tuple(part.name for part in self._parts if part.name)

    def build(
        self, parts: Mapping[str, IntoKeyExpr | int] | None = None, /, **named: IntoKeyExpr | int
    ) -> KeyExpr:
        """Make the key of these parts; those left out take their default."""
        given = {**(parts or {}), **named}
        unknown = sorted(given.keys() - set(self.names))
        if unknown:
            raise KeyExprError(
                f"'{self._text}' has no part '{unknown[0]}'; its parts are {_listed(self.names)}"
            )
        chunks: list[str] = []
        for part in self._parts:
            text = self._value(part, given)
            if text:
                chunks.append(text)
        if not chunks:
            raise KeyExprError(f"'{self._text}': every part is empty; give at least one a value")
        return KeyExpr.autocanonize("/".join(chunks))

    def _value(self, part: _Part, given: Mapping[str, IntoKeyExpr | int]) -> str:
        if not part.name:
            return str(part.pattern)
        if part.name in given:
            text = str(given[part.name])
        elif part.default is not None:
            return part.default
        else:
            raise KeyExprError(
                f"'{self._text}': part '{part.name}' has no value and no default; "
                f"write build({part.name}=…)"
            )
        if not part.accepts(text):
            raise KeyExprError(
                f"'{self._text}': part '{part.name}' cannot be '{text}'; "
                f"give something that '{part.pattern}' includes"
            )
        return text

    def parse(self, key: IntoKeyExpr) -> dict[str, str]:
        """Cut `key` into the named parts; the leftmost take as much as they can.

        `key` may hold wildcards where the patterns include them: `robot/*/**` gives `*` and `**`.
        """
        key = KeyExpr.of(key)
        chunks = list(key.chunks)
        if self._fixed is not None:
            if not _lies(self._fixed, chunks):
                raise self._other_shape(key)
            return self._laid(chunks)
        spare = self._spare(chunks)
        if not spare[0] & 1:
            raise self._other_shape(key)
        values: dict[str, str] = {}
        at = 0
        for part, after in zip(self._parts, spare[1:], strict=True):
            ends = _ends(part.pattern, chunks, 1 << at) & after
            end = ends.bit_length() - 1
            if part.name:
                values[part.name] = "/".join(chunks[at:end])
            at = end
        return values

    def matches(self, key: IntoKeyExpr) -> bool:
        """Whether `parse` would succeed on this key."""
        chunks = list(KeyExpr.of(key).chunks)
        if self._fixed is not None:
            return _lies(self._fixed, chunks)
        return bool(self._spare(chunks)[0] & 1)

    def _other_shape(self, key: KeyExpr) -> KeyExprError:
        return KeyExprError(
            f"'{key}' has not the shape '{self._text}'; its keys are those of '{self._key_expr}'"
        )

    def _laid(self, chunks: list[str]) -> dict[str, str]:
        """The named parts of a key when each has its own chunks, whatever the others have."""
        values: dict[str, str] = {}
        at = 0
        for part in self._parts:
            end = at + len(part.pattern.chunks)
            if part.name:
                values[part.name] = "/".join(chunks[at:end])
            at = end
        return values

    def _spare(self, chunks: list[str]) -> list[int]:
        """For each part, the places of the key from which it and the later parts can be laid.

        A set of places is an integer: bit k stands for the place before chunk k.
        """
        places = 1 << len(chunks)
        spare = [places]
        for part in reversed(self._parts):
            for pattern in reversed(part.pattern.chunks):
                if pattern == "**":
                    places = _flood_back(places, chunks)
                else:
                    places = (places >> 1) & _covered(pattern, chunks)
            spare.append(places)
        spare.reverse()
        return spare

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"KeyFormat({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, KeyFormat) else NotImplemented

    def __hash__(self) -> int:
        return hash((KeyFormat, self._text))


# --- reading a key ------------------------------------------------------------------------------


def _lies(patterns: tuple[str, ...], chunks: list[str]) -> bool:
    """Whether each chunk is one of its pattern; none of the patterns is `**`."""
    return len(patterns) == len(chunks) and all(
        chunk != "**" and chunk_includes(pattern, chunk)
        for pattern, chunk in zip(patterns, chunks, strict=True)
    )


def _ends(pattern: KeyExpr, chunks: list[str], places: int) -> int:
    """The places where `pattern` may end when it starts at one of `places`."""
    for chunk in pattern.chunks:
        if chunk == "**":
            open_ = _open(chunks)
            # The carry runs up each stretch without an `@` chunk and stops at its end.
            places |= (open_ + (places & open_)) ^ open_
        else:
            places = (places & _covered(chunk, chunks)) << 1
    return places


def _covered(pattern: str, chunks: list[str]) -> int:
    covered = 0
    for k, chunk in enumerate(chunks):
        if chunk != "**" and chunk_includes(pattern, chunk):
            covered |= 1 << k
    return covered


def _open(chunks: list[str]) -> int:
    states = 0
    for k, chunk in enumerate(chunks):
        if not is_verbatim(chunk):
            states |= 1 << k
    return states


def _flood_back(places: int, chunks: list[str]) -> int:
    """Add every place from which one of `places` is reached without passing an `@` chunk."""
    reached = False
    for k in range(len(chunks), -1, -1):
        if k < len(chunks) and is_verbatim(chunks[k]):
            reached = False
        if places >> k & 1:
            reached = True
        if reached:
            places |= 1 << k
    return places


# --- reading a format ---------------------------------------------------------------------------


def _read_parts(text: str) -> list[_Part]:
    parts: list[_Part] = []
    names: set[str] = set()
    at = 0
    for match in _SPEC.finditer(text):
        if match.start() > 0 and text[match.start() - 1] != "/":
            raise KeyExprError(
                f"'{text}': '{match[0]}' must fill whole chunks; write '/' before it"
            )
        if match.end() < len(text) and text[match.end()] != "/":
            raise KeyExprError(f"'{text}': '{match[0]}' must fill whole chunks; write '/' after it")
        if at < match.start():
            parts.append(_literal(text[at : match.start() - 1], text))
        part = _named(match["plain"] or match["hashed"] or "", text)
        if part.name in names:
            raise KeyExprError(
                f"'{text}': two parts are named '{part.name}'; name each differently"
            )
        names.add(part.name)
        parts.append(part)
        at = match.end() + 1
    if at <= len(text):
        parts.append(_literal(text[at:], text))
    return parts


def _literal(literal: str, text: str) -> _Part:
    if "${" in literal or "$#{" in literal:
        raise KeyExprError(f"'{text}': a part is not closed; write '${{name:pattern}}'")
    if "*" in literal:
        raise KeyExprError(
            f"'{text}': only parts may hold wildcards; write '${{name:*}}' instead of '{literal}'"
        )
    return _Part("", KeyExpr(literal))


def _named(spec: str, text: str) -> _Part:
    name, colon, rest = spec.partition(":")
    if not colon or not name or not rest:
        raise KeyExprError(
            f"'{text}': '{spec}' is no part; write a name, ':' and a pattern, like '${{id:*}}'"
        )
    pattern, hash_, default = rest.partition("#")
    part = _Part(name, KeyExpr(pattern), default if hash_ else None)
    if part.default is not None and not part.accepts(part.default):
        raise KeyExprError(
            f"'{text}': the default '{default}' of '{name}' is not included in '{pattern}'; "
            "write one that is"
        )
    return part


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join([f"'{name}'" for name in names]) or "none"

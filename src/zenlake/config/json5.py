r"""Reads JSON5 into a tree that remembers where everything stood.

Why not a library: a configuration error must name its line and column, and the text may come
from anyone. Of the JSON5 packages on PyPI, `json-five` alone keeps places, and it cannot be given
hostile text: version 1.1.2 takes time exponential in the newlines of an unclosed comment, leaves
with `RecursionError` on deep nesting, reads `\u12` as `u12`, and needs a second for 100 kB. The
grammar is small (https://spec.json5.org), so it is read here in one pass without backtracking.

Refused beyond the grammar, because no JSON could repeat it: two members of one name, lone
surrogates, and numbers that are not finite. Bounded: the text's size, nesting, and the length of
a number.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias, final

__all__ = ["Located", "Plain", "Unreadable", "read_json5", "write_json"]

MOST_TEXT = 4 * 1024 * 1024
MOST_NESTING = 64
MOST_DIGITS = 400

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""A value that JSON can write."""

_BLANK = re.compile("[\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")
_LINE = re.compile("[^\n\r\u2028\u2029]*")
_WORD = re.compile(r"[^\W\d][\w$\u200c\u200d]*|\$[\w$\u200c\u200d]*")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_STRING = {'"': re.compile(r'[^"\\\n\r]*'), "'": re.compile(r"[^'\\\n\r]*")}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_HEX = re.compile("[0-9a-fA-F]*")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


class Unreadable(Exception):
    """Text that is not JSON5, with the offset at which that showed."""

    def __init__(self, message: str, offset: int) -> None:
        """Say what is wrong at `offset`."""
        super().__init__(message)
        self.message = message
        self.offset = offset


@final
class Located:
    """A value with the offset where it stands, and that of its name if it is a member."""

    __slots__ = ("at", "name_at", "value")

    def __init__(self, value: Content, at: int = -1, name_at: int = -1) -> None:
        """Place `value` at an offset; -1 is a value that was never text."""
        self.value = value
        self.at = at
        self.name_at = name_at

    def plain(self) -> Plain:
        """The value alone, as JSON would hold it."""
        if isinstance(self.value, dict):
            return {name: member.plain() for name, member in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value


Content: TypeAlias = "bool | int | float | str | list[Located] | dict[str, Located] | None"


def write_json(value: object, *, compact: bool = False) -> str:
    """JSON text of a value; what JSON has no form for is written as its text."""
    # Reading takes nothing of it, and most programs never show their configuration.
    import json

    separators = (",", ":") if compact else None
    return json.dumps(value, ensure_ascii=False, default=str, separators=separators)


def read_json5(text: str, nesting: int = 0) -> Located:
    """Read one JSON5 value that fills the whole text; raises `Unreadable` on anything else.

    Args:
        text: The text.
        nesting: How deep the value will stand in a larger one, which counts as its own depth.
    """
    if len(text) > MOST_TEXT:
        raise Unreadable(f"{len(text)} characters; at most {MOST_TEXT} are read", 0)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unreadable("a lone surrogate is not a character", error.start) from None
    reader = _Reader(text)
    value = reader.value(nesting)
    reader.skip_blank()
    if reader.at < len(text):
        raise Unreadable(f"expected the end of the text, found {reader.seen()}", reader.at)
    return value


@final
class _Reader:
    """A cursor over the text; each method reads one thing of the grammar and moves past it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def seen(self) -> str:
        """What stands at the cursor, for a message."""
        if self.at >= len(self.text):
            return "the end of the text"
        word = _WORD.match(self.text, self.at)
        return repr(word.group()[:40] if word else self.text[self.at])

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip_blank(self) -> None:
        text = self.text
        while self.at < len(text):
            blank = _BLANK.match(text, self.at)
            if blank:
                self.at = blank.end()
            elif text.startswith("//", self.at):
                line = _LINE.match(text, self.at)
                self.at = line.end() if line else len(text)
            elif text.startswith("/*", self.at):
                end = text.find("*/", self.at + 2)
                if end < 0:
                    raise Unreadable("this comment is not closed; write */", self.at)
                self.at = end + 2
            else:
                return

    def value(self, nesting: int) -> Located:
        self.skip_blank()
        if nesting > MOST_NESTING:
            raise Unreadable(f"nested more than {MOST_NESTING} deep", self.at)
        at = self.at
        first = self.peek()
        if first == "{":
            return Located(self.members(nesting), at, at)
        if first == "[":
            return Located(self.items(nesting), at, at)
        if first in _STRING:
            return Located(self.string(first), at, at)
        word = _WORD.match(self.text, at)
        if word and word.group() in _CONSTANTS:
            self.at = word.end()
            return Located(_CONSTANTS[word.group()], at, at)
        return Located(self.number(), at, at)

    def members(self, nesting: int) -> dict[str, Located]:
        opened = self.at
        self.at += 1
        members: dict[str, Located] = {}
        while True:
            self.skip_blank()
            if self.peek() == "}":
                self.at += 1
                return members
            name_at = self.at
            name = self.name(opened)
            if name in members:
                raise Unreadable(f"{name!r} is written twice in one object", name_at)
            self.skip_blank()
            if self.peek() != ":":
                raise Unreadable(f"expected ':' after {name!r}, found {self.seen()}", self.at)
            self.at += 1
            member = self.value(nesting + 1)
            member.name_at = name_at
            members[name] = member
            self.separator("}", opened)

    def items(self, nesting: int) -> list[Located]:
        opened = self.at
        self.at += 1
        items: list[Located] = []
        while True:
            self.skip_blank()
            if self.peek() == "]":
                self.at += 1
                return items
            items.append(self.value(nesting + 1))
            self.separator("]", opened)

    def separator(self, close: str, opened: int) -> None:
        """Move past a comma, or stop in front of the closing bracket."""
        self.skip_blank()
        if self.peek() == ",":
            self.at += 1
        elif self.at >= len(self.text):
            raise Unreadable(f"this {self.text[opened]!r} is not closed; write {close!r}", opened)
        elif self.peek() != close:
            raise Unreadable(f"expected ',' or {close!r}, found {self.seen()}", self.at)

    def name(self, opened: int) -> str:
        first = self.peek()
        if first in _STRING and first:
            return self.string(first)
        word = _WORD.match(self.text, self.at)
        if word:
            self.at = word.end()
            return word.group()
        if not first:
            raise Unreadable("this '{' is not closed; write '}'", opened)
        raise Unreadable(f"expected a name, found {self.seen()}", self.at)

    def string(self, quote: str) -> str:
        opened = self.at
        self.at += 1
        parts: list[str] = []
        run = _STRING[quote]
        while True:
            stretch = run.match(self.text, self.at)
            if stretch:
                parts.append(stretch.group())
                self.at = stretch.end()
            stop = self.peek()
            if stop == quote:
                self.at += 1
                break
            if stop != "\\":
                raise Unreadable(f"this text is not closed; write {quote}", opened)
            parts.append(self.escape())
        text = "".join(parts)
        if any("\ud800" <= character <= "\udfff" for character in text):
            # Two escapes may be the halves of one character; a half alone is none.
            try:
                text = text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                raise Unreadable("a lone surrogate is not a character", opened) from None
        return text

    def escape(self) -> str:
        at = self.at
        letter = self.text[at + 1 : at + 2]
        self.at += 2
        if letter in ("x", "u"):
            size = 2 if letter == "x" else 4
            digits = _HEX.match(self.text, self.at, self.at + size)
            if digits is None or len(digits.group()) != size:
                raise Unreadable(f"\\{letter} takes {size} hexadecimal digits", at)
            self.at += size
            return chr(int(digits.group(), 16))
        if letter == "\r" and self.peek() == "\n":
            self.at += 1
        if letter in ("\n", "\r", "\u2028", "\u2029"):
            return ""
        if letter == "":
            raise Unreadable("the text ends within an escape", at)
        if letter in "123456789" or (letter == "0" and self.peek().isdigit()):
            raise Unreadable(f"\\{letter} is not an escape; write \\x00 for a code", at)
        return _ESCAPES.get(letter, letter)

    def number(self) -> int | float:
        at = self.at
        match = _NUMBER.match(self.text, at)
        if match is None:
            unsigned = self.text[at:].lstrip("+-")[:8] if self.peek() in ("+", "-") else self.seen()
            if "Infinity" in unsigned or "NaN" in unsigned:
                raise Unreadable("this number is not finite; JSON cannot repeat it", at)
            raise Unreadable(f"expected a value, found {self.seen()}", at)
        digits = match.group()
        if len(digits) > MOST_DIGITS:
            raise Unreadable(f"a number of {len(digits)} characters; {MOST_DIGITS} are read", at)
        self.at = match.end()
        following = self.peek()
        if following.isalnum() or following in ("_", "$"):
            raise Unreadable(f"{digits[:40]} is followed by {self.seen()}", self.at)
        if "x" in digits or "X" in digits:
            return int(digits, 16)
        if "." not in digits and "e" not in digits and "E" not in digits:
            return int(digits)
        number = float(digits)
        if not math.isfinite(number):
            raise Unreadable("this number is not finite; JSON cannot repeat it", at)
        return number

"""Reads regular expressions of Java as automata: which character may follow which.

    automaton = automaton_of("[a-z]+/x*")

Only as much is read as says how long a match may take. What is not understood raises `Unread`;
where a set of characters is not known exactly, it is all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

__all__ = ["ANY", "Automaton", "Unread", "automaton_of"]

OTHER: Final = 1 << 128
"""Every character beyond ASCII."""
ANY: Final = (OTHER << 1) - 1
MOST_PLACES: Final = 200
MOST_LINKS: Final = 2_000
MOST_OPEN: Final = 50
"""Groups inside each other."""
_DIGITS: Final = sum(1 << ord(one) for one in "0123456789")
_LETTERS: Final = sum(
    1 << ord(one) for one in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_SPACES: Final = sum(1 << ord(one) for one in " \t\n\r\f\v")
_SETS: Final = {
    "d": _DIGITS,
    "w": _DIGITS | _LETTERS | 1 << ord("_"),
    "s": _SPACES,
    "h": ANY,
    "v": ANY,
    "R": ANY,
}
_PLACES_ONLY: Final = frozenset("bBAzZG")
_CONTROLS: Final = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}


class Unread(Exception):
    """A pattern that is not understood; the message says what of it."""


@final
@dataclass(slots=True)
class Automaton:
    """Places of characters in a pattern, and which come after which."""

    sets: list[int] = field(default_factory=list)
    """The characters of each place, a bit for each."""
    follow: list[dict[int, int]] = field(default_factory=list)
    """The places after each, and in how many ways."""
    first: dict[int, int] = field(default_factory=dict)
    looks_around: bool = False
    anchored: bool = False


@dataclass(slots=True)
class _Part:
    """A part of a pattern: where it may begin and end, and whether it may be empty."""

    first: dict[int, int]
    last: dict[int, int]
    empty: bool
    single: bool = False


_EMPTY: Final = _Part({}, {}, True)


def automaton_of(pattern: str) -> Automaton:
    """Read a pattern; raises `Unread`."""
    reader = _Reader(pattern)
    whole = reader.choice(0)
    if reader.at < len(pattern):
        raise Unread("a bracket that nothing opened")
    reader.made.first = whole.first
    # Where lines may begin anywhere, or one of several choices may, it is no anchor.
    begins = pattern.startswith(("^", "\\A")) and not reader.forks and not reader.flags
    reader.made.anchored = begins
    return reader.made


def _added(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    both = dict(one)
    for place, ways in other.items():
        both[place] = both.get(place, 0) + ways
    return both


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.made = Automaton()
        self.forks = False
        self.flags = False
        self.links = 0

    def _peek(self) -> str:
        return self.pattern[self.at] if self.at < len(self.pattern) else ""

    def _take(self) -> str:
        if self.at >= len(self.pattern):
            raise Unread("an end where more must come")
        self.at += 1
        return self.pattern[self.at - 1]

    def _is_next(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def choice(self, depth: int) -> _Part:
        """Alternatives, up to a closing bracket or the end."""
        if depth > MOST_OPEN:
            raise Unread(f"more than {MOST_OPEN} groups inside each other")
        part = self._sequence(depth)
        while self._is_next("|"):
            self.forks = self.forks or depth == 0
            other = self._sequence(depth)
            part = _Part(
                _added(part.first, other.first),
                _added(part.last, other.last),
                part.empty or other.empty,
            )
        return part

    def _sequence(self, depth: int) -> _Part:
        part = _EMPTY
        while self._peek() not in ("", "|", ")"):
            part = self._joined(part, self._repeated(self._atom(depth)))
        return part

    def _link(self, ends: dict[int, int], starts: dict[int, int]) -> None:
        for end, some in ends.items():
            after = self.made.follow[end]
            self.links += len(starts)
            if self.links > MOST_LINKS:
                raise Unread(f"more than {MOST_LINKS:,} ways from one character to the next")
            for start, more in starts.items():
                after[start] = min(2, after.get(start, 0) + some * more)

    def _joined(self, one: _Part, other: _Part) -> _Part:
        self._link(one.last, other.first)
        return _Part(
            _added(one.first, other.first) if one.empty else one.first,
            _added(other.last, one.last) if other.empty else other.last,
            one.empty and other.empty,
        )

    def _repeated(self, part: _Part) -> _Part:
        while True:
            bounds = self._bounds()
            if bounds is None:
                return part
            least, most = bounds
            # A character so many times is one character; whatever else repeats is a loop.
            if most is None or (most > 1 and not (part.single and least == most)):
                self._link(part.last, part.first)
            part = _Part(part.first, part.last, part.empty or least == 0)

    def _bounds(self) -> tuple[int, int | None] | None:
        sign = self._peek()
        if sign not in ("*", "+", "?", "{"):
            return None
        self.at += 1
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign, (0, None))
        if sign == "{":
            end = self.pattern.find("}", self.at)
            low, comma, high = self.pattern[self.at : max(end, self.at)].partition(",")
            if end < 0 or not low.isascii() or not low.isdigit() or (high and not high.isdigit()):
                raise Unread("a bracket '{' that gives no numbers; write \\{")
            least = int(low)
            most = int(high) if high else (None if comma else least)
            self.at = end + 1
        if self._peek() in ("?", "+"):  # what is tried first says nothing of the longest search
            self.at += 1
        return least, most

    def _place(self, letters: int) -> _Part:
        if len(self.made.sets) >= MOST_PLACES:
            raise Unread(f"more than {MOST_PLACES} characters and sets of them")
        place = len(self.made.sets)
        self.made.sets.append(letters)
        self.made.follow.append({})
        return _Part({place: 1}, {place: 1}, empty=False, single=True)

    def _atom(self, depth: int) -> _Part:
        sign = self._take()
        if sign == "(":
            return self._group(depth)
        if sign == "[":
            return self._place(self._set(depth))
        if sign == ".":
            return self._place(ANY)
        if sign in "^$":
            return _EMPTY
        if sign == "\\":
            letters = self._escape(inside=False)
            return _EMPTY if letters == 0 else self._place(letters)
        if sign in "*+?{":
            raise Unread(f"'{sign}' with nothing to repeat")
        return self._place(_letter(sign))

    def _group(self, depth: int) -> _Part:
        around = False
        if self._is_next("?"):
            if self._is_next(":") or self._is_next(">"):
                pass
            elif any(self._is_next(sign) for sign in ("=", "!", "<=", "<!")):
                around = True
            elif self._is_next("<"):
                end = self.pattern.find(">", self.at)
                if end < 0:
                    raise Unread("a group whose name does not end")
                self.at = end + 1
            else:
                return self._flagged(depth)
        before = len(self.made.sets)
        part = self.choice(depth + 1)
        if self._take() != ")":
            raise Unread("a group that does not end")
        if not around:
            return _Part(part.first, part.last, part.empty)
        self.made.looks_around = True
        for place in range(before, len(self.made.sets)):
            if any(after <= place for after in self.made.follow[place]):
                raise Unread("a repetition in a look ahead or behind")
        return _EMPTY

    def _flagged(self, depth: int) -> _Part:
        while (flag := self._take()) not in "):":
            if flag not in "ism-":
                raise Unread(f"the flag '{flag}'")
            self.flags = True
        if flag == ")":
            return _EMPTY
        part = self.choice(depth + 1)
        if self._take() != ")":
            raise Unread("a group that does not end")
        return _Part(part.first, part.last, part.empty)

    def _set(self, depth: int) -> int:
        """The characters of a set, whose opening bracket is taken."""
        if depth > MOST_OPEN:
            raise Unread(f"more than {MOST_OPEN} sets inside each other")
        without = self._is_next("^")
        letters, exact, begun = 0, True, False
        while True:
            sign = self._take()
            if sign == "]" and begun:
                break
            begun = True
            if sign == "[":
                self._set(depth + 1)
                exact = False
                continue
            if sign == "&" and self._is_next("&"):
                exact = False
                continue
            one = self._escape(inside=True) if sign == "\\" else _letter(sign)
            if self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", "["):
                self.at += 1
                end = self._take()
                if end == "\\" or sign == "\\":
                    if end == "\\":
                        self._escape(inside=True)
                    exact = False
                else:
                    one = _range(sign, end)
            letters |= one
        if not exact:
            return ANY
        # What lies beyond ASCII is not known one by one: both the set and its rest have some.
        return (ANY & ~letters) | OTHER if without else letters

    def _escape(self, *, inside: bool) -> int:
        """The characters of an escape, whose backslash is taken; none for a place between them."""
        sign = self._take()
        if sign in "123456789k" and not inside:
            raise Unread("a back reference")
        if sign in _SETS:
            return _SETS[sign]
        if sign.lower() in _SETS:
            return ANY & ~_SETS[sign.lower()] or ANY
        if sign in "pP":
            if self._is_next("{"):
                self.at = self.pattern.find("}", self.at) + 1 or len(self.pattern)
            else:
                self._take()
            return ANY
        if sign in _PLACES_ONLY:
            if inside or self._is_next("{"):
                raise Unread(f"'\\{sign}' in this place")
            return 0
        if sign in _CONTROLS:
            return 1 << _CONTROLS[sign]
        if sign in "xu0c":
            self._numbered(sign)
            return ANY
        if sign.isascii() and sign.isalnum():  # \Q and \E, and what Java may have learnt since
            raise Unread(f"'\\{sign}'")
        return _letter(sign)

    def _numbered(self, sign: str) -> None:
        if sign == "c":
            self._take()
            return
        if sign == "x" and self._is_next("{"):
            self.at = self.pattern.find("}", self.at) + 1 or len(self.pattern)
            return
        count = {"x": 2, "u": 4}.get(sign, 3)
        for _ in range(count):
            if self._peek() and self._peek() in "0123456789abcdefABCDEF":
                self.at += 1


def _letter(letter: str) -> int:
    """A character in both cases: a flag may make them the same."""
    bits = 0
    for one in (letter, letter.lower(), letter.upper()):
        bits |= 1 << ord(one) if len(one) == 1 and ord(one) < 128 else OTHER
    return bits


def _range(start: str, end: str) -> int:
    letters = 0
    for code in range(ord(start), min(ord(end), 127) + 1):
        letters |= _letter(chr(code))
    return letters | (OTHER if ord(end) > 127 else 0)

"""Names of resources: paths with wildcards that work on characters, tags, and meta resources.

    zenoh://myhouse/**/LightStatus#{transient,persistent}

`?` is one character, `*` any number of them, neither of them a slash; `**` is any number of
characters, slashes included. Two names match if some path is meant by both. This differs from key
expressions of Zenoh 1.x, whose wildcards stand for whole chunks: `a/**` is not `a` here.

Inside, a path has neither scheme nor leading slashes. Peers of 2018 write it as `zenoh://a`,
`/a`, `//a` or `a`; they are answered in their own style.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from zenlake.errors import DecodeError

#: Characters of a name; matching costs the product of two lengths.
NAME_MAX: Final = 1024
STYLES: Final = ("zenoh://", "//", "/", "")
#: The durability that a tag stands for, as property 8 counts it.
DURABILITY: Final = {"transient": 1, "persistent": 2}


@dataclass(frozen=True, slots=True)
class Name:
    """A resource as it was named."""

    path: str
    tags: frozenset[str] = frozenset()
    style: str = "/"
    #: `s`: the children, `id`: a number of it, `property`: its properties; empty: itself.
    meta: str = ""

    @property
    def trivial(self) -> bool:
        """Whether it names exactly one path."""
        return "*" not in self.path and "?" not in self.path

    @property
    def durability(self) -> int:
        """0 volatile, 1 transient, 2 persistent: what a sample under this name is."""
        return max((DURABILITY.get(tag, 0) for tag in self.tags), default=0)

    def text(self, style: str | None = None) -> str:
        """The name as a peer writes it."""
        return (self.style if style is None else style) + self.path + tags_text(self.tags)


def parse_name(text: str) -> Name:
    """Read a resource name; raises `DecodeError` for what is none."""
    body, hash, marks = text.partition("#")
    tags = parse_tags(marks, text) if hash else frozenset()
    style, path = split_style(body)
    meta = ""
    for suffix in ("${s}", "${id}"):
        if path.endswith(suffix):
            path, meta = path[: -len(suffix)], suffix[2:-1]
    if not meta and path.endswith("/property"):
        path, meta = path[: -len("/property")], "property"
    return Name(checked(path, text), tags, style, meta)


def split_style(text: str) -> tuple[str, str]:
    """How a peer begins a name, and the rest."""
    for style in STYLES[:-1]:
        if text.startswith(style):
            return style, text[len(style) :]
    return "", text


def parse_tags(marks: str, text: str) -> frozenset[str]:
    """The tags behind `#`: none, one, or a list in braces."""
    if marks.startswith("{") and marks.endswith("}"):
        marks = marks[1:-1]
    if not marks:
        return frozenset()
    tags = frozenset(marks.split(","))
    for tag in tags:
        if not tag or not all(c.isalnum() or c in "_-" for c in tag):
            raise DecodeError(f"'{text}': '{tag}' is no tag")
    return tags


def tags_text(tags: frozenset[str]) -> str:
    """Tags as they stand behind a name."""
    if len(tags) > 1:
        return "#{" + ",".join(sorted(tags, reverse=True)) + "}"
    return "".join(f"#{tag}" for tag in tags)


def checked(path: str, text: str) -> str:
    """A path in canonical form; raises `DecodeError` if it is none."""
    if len(path) > NAME_MAX:
        raise DecodeError(f"a name of {len(path)} characters: at most {NAME_MAX}")
    if not path or path.startswith("/") or path.endswith("/") or "//" in path:
        raise DecodeError(f"'{text}' is no resource name: a segment of it is empty")
    for c in path:
        if c <= " " or c in "#{}\\\x7f" or c == "$":
            raise DecodeError(f"'{text}' is no resource name: it contains {c!r}")
    return canonical(path)


def canonical(path: str) -> str:
    """One spelling for names that mean the same: `***` is `**`, `*?` is `?*`.

    `**?` stays: what `?` stands for is no slash, which `?**` says of another character.
    """
    if "*" not in path:
        return path
    tokens: list[str] = []
    i = 0
    while i < len(path):
        if path[i] == "*":
            end = i
            while end < len(path) and path[end] == "*":
                end += 1
            tokens.append("**" if end - i > 1 else "*")
            i = end
        else:
            tokens.append(path[i])
            i += 1
    changed = True
    while changed:
        changed = False
        for i in range(len(tokens) - 1):
            if tokens[i] == "*" and tokens[i + 1] == "?":
                tokens[i], tokens[i + 1] = "?", "*"
                changed = True
            elif tokens[i].startswith("*") and tokens[i + 1].startswith("*"):
                tokens[i : i + 2] = [max(tokens[i], tokens[i + 1])]
                changed = True
                break
    return "".join(tokens)


# --------------------------------------------------------------------------------- matching


@lru_cache(maxsize=4096)
def _tokens(path: str) -> tuple[str, ...]:
    tokens: list[str] = []
    i = 0
    while i < len(path):
        if path.startswith("**", i):
            tokens.append("**")
            i += 2
        else:
            tokens.append(path[i])
            i += 1
    return tuple(tokens)


def matches(one: str, other: str) -> bool:
    """Whether some path is meant by both of two canonical paths."""
    if one == other:
        return True
    wild_one, wild_other = _is_wild(one), _is_wild(other)
    if not wild_one and not wild_other:
        return False
    if not wild_one:
        one, other = other, one
    if not _ends_fit(one, other):
        return False
    return _intersect(one, other)


def _is_wild(path: str) -> bool:
    return "*" in path or "?" in path


def _ends_fit(one: str, other: str) -> bool:
    """Whether the literal beginnings of both agree: most names differ there."""
    for a, b in zip(one, other, strict=False):
        if a in "*?" or b in "*?":
            return True
        if a != b:
            return False
    return True


@lru_cache(maxsize=65536)
def _intersect(one: str, other: str) -> bool:
    """Walk both patterns at once: a bit of `states` is a place in `other` that can be reached."""
    b = _tokens(other)
    n = len(b)
    stars = sum(1 << j for j in range(n) if b[j].startswith("*"))
    accepts: dict[str, int] = {}

    def closure(states: int) -> int:
        """A star may stand for nothing."""
        while True:
            more = states | ((states & stars) << 1)
            if more == states:
                return states
            states = more

    def taking(token: str) -> int:
        """The places whose token can stand for a character that `token` can stand for."""
        targets = accepts.get(token)
        if targets is None:
            targets = sum(1 << j for j in range(n) if _common(token, b[j]))
            accepts[token] = targets
        return targets

    def step(states: int, token: str) -> int:
        moved = states & taking(token)
        return closure(((moved & ~stars) << 1) | (moved & stars))

    states = closure(1)
    for token in _tokens(one):
        if token.startswith("*"):
            while (more := states | step(states, token)) != states:
                states = more
        else:
            states = step(states, token)
        if not states:
            return False
    return bool(states >> n & 1)


def _common(a: str, b: str) -> bool:
    """Whether some character is meant by both tokens."""
    if a == "**" or b == "**":
        return True
    if a in "*?":
        return b != "/"
    if b in "*?":
        return a != "/"
    return a == b


def meets(wanted: Name, path: str, tag: int) -> bool:
    """Whether a sample at a path, with a durability, is what a subscriber named."""
    if wanted.tags and tag not in {DURABILITY.get(mark, -1) for mark in wanted.tags}:
        return False
    return matches(wanted.path, path)

"""The namespace of a session: a prefix that all its keys have outside, and none inside.

A session in the namespace `site/a` that puts on `pose` is heard outside on `site/a/pose`; what
others put on `site/a/goal` it hears as `goal`; `site/b/goal` it never hears of.
"""

from __future__ import annotations

from typing import final

from zenlake.keys.matching import chunk_includes, is_verbatim

__all__ = ["Namespace"]


@final
class Namespace:
    """A prefix without wildcards, put before keys and taken off them."""

    __slots__ = ("_chunks", "_lead", "prefix")

    def __init__(self, prefix: str) -> None:
        """`prefix`: a key without wildcards."""
        self.prefix: str = prefix
        self._lead: str = prefix + "/"
        self._chunks: list[str] = prefix.split("/")

    def outside(self, key: str) -> str:
        """A key of the session as it is on the network: with the namespace."""
        return self._lead + key

    def inside(self, key: str) -> str | None:
        """How the session calls a key of the outside; None if it is invisible to it.

        Where a key with wildcards matches the prefix in several ways, the way that leaves most of
        it counts: `**/b` stays `**/b`.
        """
        if key.startswith(self._lead):
            return key[len(self._lead) :]
        if "*" not in key:
            return None
        chunks = key.split("/")
        places = [0]
        for name in self._chunks:
            places = _after(chunks, places, name)
        if not places or places[0] >= len(chunks):
            return None
        return "/".join(chunks[places[0] :])

    def __repr__(self) -> str:
        return f"Namespace({self.prefix!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Namespace) and self.prefix == other.prefix

    def __hash__(self) -> int:
        return hash(self.prefix)

    def __reduce__(self) -> tuple[type[Namespace], tuple[str]]:
        return Namespace, (self.prefix,)


def _after(chunks: list[str], places: list[int], name: str) -> list[int]:
    """Where in a key one may stand after the chunk `name`, from any of `places`; ascending."""
    following: set[int] = set()
    for place in places:
        # A `**` takes the chunk and stays, or takes nothing and lets the next chunk try.
        while place < len(chunks) and chunks[place] == "**":
            if not is_verbatim(name):
                following.add(place)
            place += 1
        if place < len(chunks) and chunk_includes(chunks[place], name):
            following.add(place + 1)
    return sorted(following)

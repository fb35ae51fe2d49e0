"""Key expressions and who holds them: the rows of a node's tables."""

from __future__ import annotations

from typing import Final

from zenlake.routing.face import Face

SUBSCRIBER: Final = 0
QUERYABLE: Final = 1
TOKEN: Final = 2
KINDS: Final[tuple[int, int, int]] = (SUBSCRIBER, QUERYABLE, TOKEN)


class Resource:
    """One key expression, and for each kind of entity the faces that declared it there.

    A face may declare a key several times under several ids; each id has its own information
    (for queryables: completeness and distance).
    """

    __slots__ = ("holders", "key")

    def __init__(self, key: str) -> None:
        """Without declarations yet."""
        self.key: str = key
        self.holders: list[dict[Face, dict[int, int]]] = [{}, {}, {}]

    def hold(self, kind: int, face: Face, id: int, info: int) -> None:
        """Note that `face` declared this key."""
        self.holders[kind].setdefault(face, {})[id] = info

    def release(self, kind: int, face: Face, id: int) -> None:
        """Note that `face` undeclared it."""
        ids = self.holders[kind].get(face)
        if ids is not None:
            ids.pop(id, None)
            if not ids:
                del self.holders[kind][face]

    def is_empty(self) -> bool:
        """Whether no face declares it any more."""
        return not (self.holders[0] or self.holders[1] or self.holders[2])


def merged(infos: list[int]) -> int:
    """What several queryables of a key amount to: complete if one is, as near as those are."""
    complete = 0
    distance = -1
    for info in infos:
        if (info & 1) > complete:
            complete = 1
            distance = info >> 8
        elif (info & 1) == complete:
            distance = info >> 8 if distance < 0 else min(distance, info >> 8)
    return (max(distance, 0) << 8) | complete

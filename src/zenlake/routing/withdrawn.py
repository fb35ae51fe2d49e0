"""What routers declared until just now, and which neighbours must hear that it is no more.

A word may be missed while trees change, so a neighbour that is new below a router in some tree is
told again, for a while, what is declared no more. A router that has come since then cannot have
missed it and is spared, unless one lies behind it that can, because it was on the map all the time:
those that were spared are looked at again whenever the trees are others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from zenlake.routing.trees import Trees

#: For how long it is said again that something is declared no more, in seconds: much longer than
#: it takes to notice that a neighbour is dead, to whom it may have been said in vain.
REMEMBERED: Final = 60.0
#: How many such things are remembered of one router.
WITHDRAWN: Final = 1 << 14


class Withdrawn:
    """By router: the keys that it declares no more, and since when."""

    def __init__(self) -> None:
        """Nothing was declared, and nobody is known."""
        self.rows: dict[bytes, dict[tuple[int, str], float]] = {}
        #: By link and root: newcomers that were not told of all that.
        self._spared: set[tuple[int, bytes]] = set()
        #: Since when each router has been known, and when it was last on the map.
        self._since: dict[bytes, float] = {}
        self._last: dict[bytes, float] = {}
        #: Since when those have been on the map that are there now, without a break.
        self._steady: dict[bytes, float] = {}

    def known(self, nodes: Collection[bytes], now: float) -> None:
        """These routers are on the map, and no others."""
        # One that is back from behind a cut may have kept what it knew: it has not come anew.
        for zid in nodes:
            self._since.setdefault(zid, now)
            self._last[zid] = now
        steady = self._steady
        self._steady = {zid: steady.get(zid, now) for zid in nodes}
        for zid in [zid for zid, last in self._last.items() if last < now - REMEMBERED]:
            del self._last[zid], self._since[zid]

    def withdraw(self, zid: bytes, kind: int, key: str, now: float) -> None:
        """A router declares a key no more."""
        rows = self.rows.setdefault(zid, {})
        rows.pop((kind, key), None)
        rows[kind, key] = now
        if len(rows) > WITHDRAWN:
            # Many at a time: each look for the oldest passes over all that were deleted.
            for old in list(rows)[: WITHDRAWN // 8]:
                del rows[old]

    def declare(self, zid: bytes, kind: int, key: str) -> None:
        """A router declares a key, perhaps again."""
        self.rows.setdefault(zid, {}).pop((kind, key), None)

    def holds(self, zid: bytes, kind: int, key: str) -> bool:
        """Whether it is remembered that a router declares a key no more."""
        return (kind, key) in self.rows.get(zid, {})

    def lately(self, zid: bytes, kind: int, key: str, now: float) -> bool:
        """Whether a router withdrew a key within the time that this is said again."""
        when = self.rows.get(zid, {}).get((kind, key))
        return when is not None and when >= now - REMEMBERED

    def keep(self, nodes: dict[bytes, dict[bytes, int]]) -> None:
        """Forget what routers declared that are not among these."""
        for zid in [zid for zid in self.rows if zid not in nodes]:
            del self.rows[zid]

    def unlinked(self, link: int) -> None:
        """A link is gone, and who was told over it."""
        self._spared = {each for each in self._spared if each[0] != link}

    def spared(self) -> list[tuple[int, bytes]]:
        """By link and root: whom to look at again, now that the trees are others."""
        found = list(self._spared)
        self._spared.clear()
        return found

    def missed(
        self, root: bytes, link: int, neighbour: bytes, trees: Trees, now: float
    ) -> list[tuple[int, str]]:
        """What a root declares no more, as far as a neighbour or one behind it may not know."""
        found: list[tuple[int, str]] = []
        since = self._since.get(neighbour, now)
        looked = False
        rows = self.rows.get(root, {})
        for (kind, key), when in list(rows.items()):
            if when < now - REMEMBERED:
                del rows[kind, key]
                continue
            if when < since and not looked:
                # A tree is computed for newcomers only, and only if something was withdrawn.
                since = self._oldest_behind(root, neighbour, trees, since)
                looked = True
            if when >= since:
                found.append((kind, key))
            else:
                self._spared.add((link, root))
        return found

    def _oldest_behind(self, root: bytes, neighbour: bytes, trees: Trees, since: float) -> float:
        """When the first of those came that hear a root from a neighbour, which came `since`."""
        for zid, when in self._steady.items():
            if when < since and trees.direction(root, zid) == neighbour:
                since = when
        return since

"""The trees along which routers speak: for each router, the shortest path from it to all others.

Whatever a router says travels down the tree that is rooted at it, so it arrives everywhere once
and nowhere twice. Nobody agrees on these trees: each router computes all of them from the same
link states, and the same states must give the same trees, to the last bit.

Two routers are joined if each lists the other. A link weighs what its ends say (100 where
neither says anything, the larger where both do), and a little more:

    weight × (1 + 0.01 × h / (2³² − 1))     h: 32 bits of a hash of the two ids

so that of two paths with as many hops one is the shorter, and the same one for everybody. The
hash is SipHash-1-3 with a key of zeros, over both ids as 16 bytes, the smaller first.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heappop, heappush
from typing import Final, final

__all__ = ["DEFAULT_WEIGHT", "Recomputation", "Trees", "effective_weight", "siphash13"]

DEFAULT_WEIGHT: Final = 100
"""What a link weighs if neither end says anything."""

NEAR: Final = 1e-11
"""Paths whose lengths differ by less, as a share, may trade places when sums are rounded otherwise.

A sum of a thousand weights is off by 1e-13 of itself at most.
"""

_WORD: Final = 0xFFFF_FFFF_FFFF_FFFF


@final
class _Sip:
    """The four words that a hash is stirred in."""

    __slots__ = ("a", "b", "c", "d")

    def __init__(self) -> None:
        # "somepseudorandomlygeneratedbytes", by the inventors of the function.
        self.a: int = 0x736F_6D65_7073_6575
        self.b: int = 0x646F_7261_6E64_6F6D
        self.c: int = 0x6C79_6765_6E65_7261
        self.d: int = 0x7465_6462_7974_6573

    def stir(self) -> None:
        """One round."""
        a = (self.a + self.b) & _WORD
        c = (self.c + self.d) & _WORD
        b = _turned(self.b, 13) ^ a
        d = _turned(self.d, 16) ^ c
        a = _turned(a, 32)
        c = (c + b) & _WORD
        a = (a + d) & _WORD
        self.b = _turned(b, 17) ^ c
        self.d = _turned(d, 21) ^ a
        self.a = a
        self.c = _turned(c, 32)

    def absorb(self, word: int) -> None:
        """Take in eight bytes."""
        self.d ^= word
        self.stir()
        self.a ^= word


def _turned(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & _WORD


def siphash13(data: bytes) -> int:
    """SipHash with one round a word and three at the end, its key all zeros."""
    sip = _Sip()
    full = len(data) & ~7
    for start in range(0, full, 8):
        sip.absorb(int.from_bytes(data[start : start + 8], "little"))
    # The last word: what is left over, and the length in its highest byte.
    sip.absorb(int.from_bytes(data[full:], "little") | (len(data) & 0xFF) << 56)
    sip.c ^= 0xFF
    for _ in range(3):
        sip.stir()
    return sip.a ^ sip.b ^ sip.c ^ sip.d


def effective_weight(one: bytes, other: bytes, one_says: int, other_says: int) -> float:
    """What the link between two routers weighs; 0 is an end that says nothing."""
    base = max(one_says, other_says) or DEFAULT_WEIGHT
    return base * (_factor(one, other) if one < other else _factor(other, one))


@lru_cache(maxsize=1 << 16)
def _factor(smaller: bytes, greater: bytes) -> float:
    """What makes the link between two routers a little heavier than it should be."""
    h = siphash13(smaller.ljust(16, b"\0") + greater.ljust(16, b"\0")) & 0xFFFF_FFFF
    return 1.0 + 0.01 * (h / 0xFFFF_FFFF)


@final
class Trees:
    """All trees of a network of routers, as one of them sees them.

    A tree is computed when it is first asked about: many routers never say anything. And where
    many are asked about, few are computed. The shortest path from `root` to a neighbour of mine is
    the one from the neighbour to `root`, backwards; so the trees of my neighbours tell my place
    in all others, however many there are. Only the way to a third router takes the tree itself.

    Args:
        me: the router that asks.
        links: for each router, whom it lists and the weight it gives (0: none).
    """

    __slots__ = ("_children", "_edges", "_hops", "_trees", "me")

    def __init__(self, me: bytes, links: dict[bytes, dict[bytes, int]]) -> None:
        self.me: bytes = me
        self._edges: dict[bytes, list[tuple[bytes, float]]] = _edges(links)
        self._trees: dict[bytes, _Tree] = {}
        self._children: dict[bytes, list[bytes]] = {}
        self._hops: dict[bytes, dict[bytes, bytes]] = {}

    def __contains__(self, root: object) -> bool:
        return root in self._edges

    @property
    def computed(self) -> int:
        """How many trees were computed so far."""
        return len(self._trees)

    def parent(self, root: bytes) -> bytes:
        """Who is before me on the path from `root`; empty if there is no path, or it is mine."""
        tree = self._trees.get(root)
        if tree is None:
            mine = self._tree(self.me)
            if root not in mine.doubted:
                return mine.firsts.get(root, b"")
            tree = self._tree(root)
        return tree.parents.get(self.me, b"")

    def children(self, root: bytes) -> list[bytes]:
        """The neighbours that this node passes on to what `root` sends to all."""
        children = self._children.get(root)
        if children is None:
            children = self._find_children(root)
            self._children[root] = children
        return children

    def direction(self, root: bytes, destination: bytes) -> bytes:
        """The neighbour towards `destination` in the tree of `root`; empty if there is no path.

        That is my child above the destination, or my parent if it lies elsewhere in the tree.
        """
        hops = self._hops.get(root)
        if hops is None:
            hops = self._tree(root).hops(self.me)
            self._hops[root] = hops
        return hops.get(destination, b"")

    def distance(self, destination: bytes) -> float:
        """How far away a router is; infinite if there is no path."""
        return self._tree(self.me).distances.get(destination, float("inf"))

    def _find_children(self, root: bytes) -> list[bytes]:
        near = self._edges.get(self.me, [])
        # A few trees are computed themselves: there may be fewer of them than neighbours.
        if root in self._trees or len(self._trees) <= len(near):
            return self._tree(root).children(self.me)
        children: list[bytes] = []
        for zid, _ in near:
            tree = self._tree(zid)
            if root in tree.doubted:
                return self._tree(root).children(self.me)
            if tree.firsts.get(root) == self.me:
                children.append(zid)
        return children

    def _tree(self, root: bytes) -> _Tree:
        tree = self._trees.get(root)
        if tree is None:
            tree = _Tree(root, self._edges)
            self._trees[root] = tree
        return tree


@final
class _Tree:
    """The shortest paths from one router to all others."""

    __slots__ = ("distances", "doubted", "firsts", "parents", "root")

    def __init__(self, root: bytes, edges: dict[bytes, list[tuple[bytes, float]]]) -> None:
        self.root: bytes = root
        self.distances: dict[bytes, float] = {}
        #: The last router before each on the path from the root, and the first behind the root.
        self.parents: dict[bytes, bytes] = {}
        self.firsts: dict[bytes, bytes] = {}
        #: Those whose path another is so near to that it might be the shorter one when sums are
        #: rounded in the order of the way back.
        self.doubted: set[bytes] = set()
        if root in edges:
            self._measure(root, edges)

    def _measure(self, root: bytes, edges: dict[bytes, list[tuple[bytes, float]]]) -> None:
        """Find the shortest paths, nearest routers first."""
        nearest: list[tuple[float, bytes]] = [(0.0, root)]
        distances: dict[bytes, float] = {root: 0.0}
        second: dict[bytes, float] = {}
        while nearest:
            near, one = heappop(nearest)
            if one in self.distances:
                continue
            self.distances[one] = near
            if one != root:
                parent = self.parents[one]
                self.firsts[one] = one if parent == root else self.firsts[parent]
                if parent in self.doubted or second.get(one, float("inf")) - near < near * NEAR:
                    self.doubted.add(one)
            for other, weight in edges[one]:
                length = near + weight
                far = distances.get(other)
                if far is None or length < far:
                    if far is not None:
                        second[other] = far
                    distances[other] = length
                    self.parents[other] = one
                    heappush(nearest, (length, other))
                elif length < second.get(other, float("inf")):
                    second[other] = length

    def children(self, me: bytes) -> list[bytes]:
        """Those behind a router on the paths through it."""
        return [node for node, parent in self.parents.items() if parent == me]

    def hops(self, me: bytes) -> dict[bytes, bytes]:
        """The next hop from a router to each: below it through a child, elsewhere its parent."""
        hops: dict[bytes, bytes] = {}
        if me not in self.distances:
            return hops
        up = self.parents.get(me, b"")
        for destination in self.distances:  # parents come before their children
            if destination == me:
                continue
            above = self.parents.get(destination, b"")
            hop = destination if above == me else hops.get(above, up)
            if hop:
                hops[destination] = hop
        return hops


def _edges(links: dict[bytes, dict[bytes, int]]) -> dict[bytes, list[tuple[bytes, float]]]:
    """The links that both ends list, in the same order on every router."""
    edges: dict[bytes, list[tuple[bytes, float]]] = {}
    for one in sorted(links):
        edges[one] = []
        for other in sorted(links[one]):
            back = links.get(other, {}).get(one)
            if back is not None and other != one:
                weight = effective_weight(one, other, links[one][other], back)
                edges[one].append((other, weight))
    return edges


#: So many computations may follow each other; after that there is one in so many seconds.
AT_ONCE: Final = 20
HOLD: Final = 1.0


@final
class Recomputation:
    """When to compute the trees anew: a moment after a change, so that many changes cost one.

    And where changes go on and on, more rarely, as OSPF's routers do it: each computation takes
    one of `AT_ONCE` turns, and one turn comes back in `HOLD` seconds.
    """

    __slots__ = ("_spent", "_when", "deadline", "delay")

    def __init__(self, delay: float = 0.1) -> None:
        """`delay` in seconds."""
        self.delay: float = delay
        self.deadline: float = float("inf")
        #: The turns that are taken, as they were at some time.
        self._spent: float = 0.0
        self._when: float = 0.0

    def changed(self, now: float) -> None:
        """The network has changed; what is already planned will see it, too."""
        if self.deadline == float("inf"):
            over = self._taken(now) - (AT_ONCE - 1)
            self.deadline = now + max(self.delay, over * HOLD)

    def due(self, now: float) -> bool:
        """Whether it is time; if so, the plan is fulfilled."""
        if now < self.deadline:
            return False
        self._spent = self._taken(now) + 1.0
        self._when = now
        self.deadline = float("inf")
        return True

    def _taken(self, now: float) -> float:
        """The turns that are taken now."""
        return max(0.0, self._spent - (now - self._when) / HOLD)

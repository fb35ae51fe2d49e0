"""The trees along which routers speak: for each router, the shortest way from it to all others.

Whatever a router says travels down the tree that is rooted at it, so it arrives everywhere once
and nowhere twice. Nobody agrees on these trees: each router computes all of them from the same
link states, and the same states must give the same trees, to the last bit.

Two routers are joined if each lists the other. A link weighs what its ends say (100 where
neither says anything, the larger where both do), and a little more:

    weight × (1 + 0.01 × h / (2³² − 1))     h: 32 bits of a hash of the two ids

so that of two ways with as many hops one is the shorter, and the same one for everybody. The
hash is SipHash-1-3 with a key of zeros, over both ids as 16 bytes, the smaller first.
"""

from __future__ import annotations

from typing import Final, final

__all__ = ["DEFAULT_WEIGHT", "Recomputation", "Trees", "effective_weight", "siphash13"]

DEFAULT_WEIGHT: Final = 100
"""What a link weighs if neither end says anything."""

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
    whole = len(data) & ~7
    for start in range(0, whole, 8):
        sip.absorb(int.from_bytes(data[start : start + 8], "little"))
    # The last word: what is left over, and the length in its highest byte.
    sip.absorb(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    sip.c ^= 0xFF
    for _ in range(3):
        sip.stir()
    return sip.a ^ sip.b ^ sip.c ^ sip.d


def effective_weight(one: bytes, other: bytes, one_says: int, other_says: int) -> float:
    """What the link between two routers weighs; 0 is an end that says nothing."""
    base = max(one_says, other_says) or DEFAULT_WEIGHT
    smaller, greater = sorted((one.ljust(16, b"\0"), other.ljust(16, b"\0")))
    h = siphash13(smaller + greater) & 0xFFFF_FFFF
    return base * (1.0 + 0.01 * (h / 0xFFFF_FFFF))


@final
class Trees:
    """All trees of a network of routers, as one of them sees them.

    Args:
        me: the router that asks.
        links: for each router, whom it lists and the weight it gives (0: none).
    """

    __slots__ = ("_children", "_distances", "_hops", "_parents", "me")

    def __init__(self, me: bytes, links: dict[bytes, dict[bytes, int]]) -> None:
        self.me: bytes = me
        #: For each root, the last router before each router on the way from the root.
        self._parents: dict[bytes, dict[bytes, bytes]] = {}
        self._children: dict[bytes, list[bytes]] = {}
        #: For each root that was asked about, the next hop to each router.
        self._hops: dict[bytes, dict[bytes, bytes]] = {}
        self._distances: dict[bytes, float] = {}
        edges = _edges(links)
        for root in sorted(links):
            parents, distances = _shortest(root, edges)
            self._parents[root] = parents
            self._children[root] = [node for node, parent in parents.items() if parent == me]
            if root == me:
                self._distances = distances

    def roots(self) -> list[bytes]:
        """All routers, in order."""
        return list(self._parents)

    def parent(self, root: bytes) -> bytes:
        """Who is before me on the way from `root`; empty if there is no way, or it is mine."""
        return self._parents.get(root, {}).get(self.me, b"")

    def children(self, root: bytes) -> list[bytes]:
        """Whom I pass on to what `root` says to all."""
        return self._children.get(root, [])

    def direction(self, root: bytes, destination: bytes) -> bytes:
        """The neighbour towards `destination` in the tree of `root`; empty if there is no way.

        That is my child above the destination, or my parent if it lies elsewhere in the tree.
        """
        hops = self._hops.get(root)
        if hops is None:
            hops = self._hops_of(root)
            self._hops[root] = hops
        return hops.get(destination, b"")

    def distance(self, destination: bytes) -> float:
        """How far away a router is; infinite if there is no way."""
        return self._distances.get(destination, float("inf"))

    def _hops_of(self, root: bytes) -> dict[bytes, bytes]:
        parents = self._parents.get(root)
        hops: dict[bytes, bytes] = {}
        if parents is None:
            return hops
        up = parents.get(self.me, b"")
        if not up and root != self.me:
            return hops  # the tree does not reach me
        if up:
            hops[root] = up
        for destination in parents:
            at = destination
            trail: list[bytes] = []
            while at not in hops and at != self.me and parents.get(at, self.me) != self.me:
                trail.append(at)
                at = parents[at]
            if at == self.me:
                continue
            hop = hops.get(at, at)
            hops[at] = hop
            for passed in trail:
                hops[passed] = hop
        return hops


def _edges(links: dict[bytes, dict[bytes, int]]) -> list[tuple[bytes, bytes, float]]:
    """The links that both ends list, in both directions, in an order that is everybody's."""
    edges: list[tuple[bytes, bytes, float]] = []
    for one in sorted(links):
        for other in sorted(links[one]):
            back = links.get(other, {}).get(one)
            if back is not None and other != one:
                edges.append((one, other, effective_weight(one, other, links[one][other], back)))
    return edges


def _shortest(
    root: bytes, edges: list[tuple[bytes, bytes, float]]
) -> tuple[dict[bytes, bytes], dict[bytes, float]]:
    """Everybody's last step on the way from `root`, and how far they are (Bellman and Ford)."""
    distances: dict[bytes, float] = {root: 0.0}
    parents: dict[bytes, bytes] = {}
    shorter = True
    while shorter:
        shorter = False
        for one, other, weight in edges:
            near = distances.get(one)
            if near is not None:
                far = distances.get(other)
                if far is None or near + weight < far:
                    distances[other] = near + weight
                    parents[other] = one
                    shorter = True
    return parents, distances


@final
class Recomputation:
    """When to compute the trees anew: a moment after a change, so that many changes cost one."""

    __slots__ = ("deadline", "delay")

    def __init__(self, delay: float = 0.1) -> None:
        """`delay` in seconds."""
        self.delay: float = delay
        self.deadline: float = float("inf")

    def changed(self, now: float) -> None:
        """The network has changed; what is already planned will see it, too."""
        if self.deadline == float("inf"):
            self.deadline = now + self.delay

    def due(self, now: float) -> bool:
        """Whether it is time; if so, the plan is fulfilled."""
        if now < self.deadline:
            return False
        self.deadline = float("inf")
        return True

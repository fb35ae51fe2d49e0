"""The shapes of networks that are measured: who is linked to whom, by number.

Numbers near each other are near each other in the network, so that halves of the numbers are halves
of it, more or less: that is how `mesh.grow` has small networks become larger ones.
"""

from __future__ import annotations

from collections.abc import Callable
from math import hypot
from random import Random

Edge = tuple[int, int]


def ring(count: int, random: Random) -> list[Edge]:
    """A metro ring: two neighbours for everybody, half of the ring between the farthest."""
    return _tidy([(one, (one + 1) % count) for one in range(count)])


def tree(count: int, random: Random) -> list[Edge]:
    """Sites below regions below a centre: three below each, and no other way around a cut."""
    numbers: dict[int, int] = {}

    def visit(place: int) -> None:
        numbers[place] = len(numbers)
        for child in range(3 * place + 1, 3 * place + 4):
            if child < count:
                visit(child)

    visit(0)
    return _tidy([(numbers[place], numbers[(place - 1) // 3]) for place in range(1, count)])


def geometric(count: int, random: Random) -> list[Edge]:
    """Places on a map, each linked to the two that are nearest, and the pieces by short bridges."""
    places = [(random.random(), random.random()) for _ in range(count)]
    places.sort(key=_interleaved)
    near = [
        sorted(range(count), key=lambda other, at=place: _apart(at, places[other]))  # type: ignore[misc]
        for place in places
    ]
    edges = [(one, other) for one in range(count) for other in near[one][1:3]]
    group = list(range(count))

    def leader(one: int) -> int:
        while group[one] != one:
            one = group[one]
        return one

    for one, other in edges:
        group[leader(one)] = leader(other)
    bridges = sorted(
        (_apart(places[one], places[other]), one, other)
        for one in range(count)
        for other in near[one][1:16]
    )
    bridges += [(2.0, one - 1, one) for one in range(1, count)]
    for _, one, other in bridges:
        if leader(one) != leader(other):
            group[leader(one)] = leader(other)
            edges.append((one, other))
    return _tidy(edges)


def small_world(count: int, random: Random) -> list[Edge]:
    """A ring whose routers also know the next but one, with a tenth of the links gone astray."""
    edges = [(one, (one + 1) % count) for one in range(count)]
    for one in range(count):
        far = random.random() < 0.1
        edges.append((one, random.randrange(count) if far else (one + 2) % count))
    return _tidy(edges)


TOPOLOGIES: dict[str, Callable[[int, Random], list[Edge]]] = {
    "ring": ring,
    "tree": tree,
    "geometric": geometric,
    "small world": small_world,
}


def _tidy(edges: list[Edge]) -> list[Edge]:
    """Each link once, the smaller end first, and nobody linked to itself."""
    return sorted({(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]})


def _apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    return hypot(one[0] - other[0], one[1] - other[1])


def _interleaved(place: tuple[float, float]) -> int:
    """A place as a number whose neighbours are near: the bits of both coordinates in turn."""
    x, y = (int(part * 1024) for part in place)
    return sum((x >> bit & 1) << 2 * bit | (y >> bit & 1) << 2 * bit + 1 for bit in range(10))

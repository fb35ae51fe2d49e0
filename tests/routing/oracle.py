"""What every face should have been told, worked out from scratch and in the plainest way."""

from __future__ import annotations

from dataclasses import dataclass, field

from zenlake.keys.matching import includes, intersects

ROUTER, PEER, CLIENT, LOCAL = 0, 1, 2, 3


def south(mode: int, role: int) -> bool:
    """The table of the modes, written out."""
    return {
        (ROUTER, ROUTER): False, (ROUTER, PEER): True, (ROUTER, CLIENT): True,
        (PEER, ROUTER): False, (PEER, PEER): False, (PEER, CLIENT): True,
        (CLIENT, ROUTER): False, (CLIENT, PEER): False, (CLIENT, CLIENT): True,
    }.get((mode, role), True)  # fmt: skip


def flows(mode: int, source: int, target: int) -> bool:
    """Whether things pass from a neighbour of one role to another of another."""
    if not south(mode, source) and not south(mode, target):
        return False  # from the north to the north: never
    # Peers of one region have sessions of their own.
    return not (mode == ROUTER and source == target == PEER)


@dataclass
class Told:
    """What one face was told of one key."""

    id: int
    info: int


@dataclass
class ProgramInterest:
    kinds: int
    key: str
    future: bool
    aggregate: bool


@dataclass
class Neighbour:
    """A neighbour as the oracle sees it: what it declared and wants, what it was told."""

    role: int
    declared: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    wishes: dict[int, ProgramInterest] = field(default_factory=dict)


@dataclass
class World:
    """All faces of a node."""

    mode: int
    faces: dict[int, Neighbour] = field(default_factory=dict)

    def visible(self, target: int, kind: int) -> dict[str, int]:
        """Keys of a kind that may be known to a face, with their information merged."""
        found: dict[str, list[int]] = {}
        for number, face in self.faces.items():
            if number == target or not flows(self.mode, face.role, self.faces[target].role):
                continue
            for (of_kind, _), (key, info) in face.declared.items():
                if of_kind == kind:
                    found.setdefault(key, []).append(info)
        return {key: best(infos) for key, infos in found.items()}

    def wanted(self, target: int, kind: int, key: str) -> bool:
        """Whether a face is kept informed of a key: always in the north, on demand in the south."""
        face = self.faces[target]
        if not south(self.mode, face.role):
            return True
        return any(
            wish.future and not wish.aggregate and wish.kinds >> kind & 1
            and (not wish.key or intersects(wish.key, key))
            for wish in face.wishes.values()
        )  # fmt: skip

    def aggregate(self, target: int, kind: int, wish: ProgramInterest) -> int | None:
        """The information of an aggregate, or None if nothing matches."""
        matching = {
            key: info
            for key, info in self.visible(target, kind).items()
            if intersects(key, wish.key)
        }
        if not matching:
            return None
        complete = any(info & 1 and includes(key, wish.key) for key, info in matching.items())
        return int(complete) if kind == 1 else 0


def best(infos: list[int]) -> int:
    """Complete if one is; as near as the nearest of those."""
    complete = max(info & 1 for info in infos)
    return min(info >> 8 for info in infos if info & 1 == complete) << 8 | complete

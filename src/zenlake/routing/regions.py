"""The region of each neighbour, and between which regions declarations and samples flow.

A neighbour lies *south* (the node serves it, as it serves its own programs) or *north* (towards
the infrastructure, or its own kind). If nothing else is said, the modes of both decide:

    node \\ neighbour   router    peer            client
    router              north     south:0:peer    south:0:client
    peer                north     north           south:0:client
    client              north     north           (refused)

A node that is given a list of subregions is a gateway: a neighbour lies in the first that it
matches, among its own kind, or else in the north. Such a node says in the opening where it has
put the other side, and both must be able to live with that (`place`).

What comes from one region goes to all others. Within a region things flow only between clients,
which are served by a broker: peers of one region have sessions of their own, and routers share
trees. A node may be told to be the broker of its peers, too (see `Tables`).
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import HandshakeError

#: Roles as numbers of two bits, as an opening carries them; `values.WhatAmI` has them as flags.
ROUTER: Final = 0
PEER: Final = 1
CLIENT: Final = 2
#: The programs of this very node.
LOCAL: Final = 3

ROLE_NAMES: Final[tuple[str, ...]] = ("router", "peer", "client", "local")

#: The numbers of regions: one in the north, one of the own programs, then three a subregion.
NORTH: Final = 0
HOME: Final = 1
_SUBREGIONS: Final = 2

#: What is said of a neighbour's place in the opening, or that nothing is said (yet).
IN_THE_NORTH: Final = 0
IN_THE_SOUTH: Final = 1
UNSAID: Final = -1
NOT_YET: Final = -2

#: The reason in the closing word to a neighbour that has no place.
_GENERIC: Final = 0


# ------------------------------------------------------------------------------------- regions


def south(index: int, role: int) -> int:
    """The region of the neighbours of a role in a subregion."""
    return _SUBREGIONS + 3 * index + role


def is_south(region: int) -> bool:
    """Whether a node is a gateway for the nodes of the region."""
    return region != NORTH


def kind_of(mode: int, region: int) -> int:
    """Who live in a region: in the north the node's own kind, whatever they are to others."""
    if region == NORTH:
        return mode
    return LOCAL if region == HOME else (region - _SUBREGIONS) % 3


def is_brokered(region: int) -> bool:
    """Whether the nodes of the region hear each other through this one."""
    return region == HOME or (region > HOME and (region - _SUBREGIONS) % 3 == CLIENT)


def region_name(region: int) -> str:
    """A region by the name that operators see."""
    if region == NORTH:
        return "north"
    if region == HOME:
        return "local"
    index, role = divmod(region - _SUBREGIONS, 3)
    return f"south:{index}:{ROLE_NAMES[role]}"


def usual_region(mode: int, role: int) -> int:
    """Where a neighbour lies if only the modes decide."""
    if role == LOCAL:
        return HOME
    if role == CLIENT or (mode == ROUTER and role == PEER):
        return south(0, role)
    return NORTH


def usually_serves(mode: int, role: int) -> bool:
    """Whether a neighbour has the node in its own south, if only the modes decide."""
    return role < mode


# ------------------------------------------------------------------------------------- filters


class Traits:
    """What is known of a neighbour before it has a place."""

    __slots__ = ("interfaces", "name", "role", "zid")

    def __init__(self, zid: bytes, role: int, name: str, interfaces: tuple[str, ...]) -> None:
        """`name`: the region that it says it is in; empty: it does not say.

        `interfaces`: those of this machine that its link uses.
        """
        self.zid: bytes = zid
        self.role: int = role
        self.name: str = name
        self.interfaces: tuple[str, ...] = interfaces


class RegionFilter:
    """Neighbours that have all of some traits; a trait that is None does not matter."""

    __slots__ = ("interfaces", "names", "negated", "roles", "zids")

    def __init__(
        self,
        roles: tuple[int, ...] | None = None,
        interfaces: tuple[str, ...] | None = None,
        zids: tuple[bytes, ...] | None = None,
        names: tuple[str, ...] | None = None,
        negated: bool = False,
    ) -> None:
        """`negated`: all other neighbours instead."""
        self.roles: tuple[int, ...] | None = roles
        self.interfaces: tuple[str, ...] | None = interfaces
        self.zids: tuple[bytes, ...] | None = zids
        self.names: tuple[str, ...] | None = names
        self.negated: bool = negated

    def matches(self, traits: Traits) -> bool:
        """Whether it is about a neighbour."""
        return self._has_all(traits) != self.negated

    def _has_all(self, traits: Traits) -> bool:
        if self.zids is not None and traits.zid not in self.zids:
            return False
        if self.roles is not None and traits.role not in self.roles:
            return False
        if self.names is not None and traits.name not in self.names:
            return False
        if self.interfaces is not None:
            for interface in traits.interfaces:
                if interface not in self.interfaces:
                    return False
        return True


class Subregion:
    """A part of a gateway's south."""

    __slots__ = ("filters",)

    def __init__(self, filters: tuple[RegionFilter, ...] | None = None) -> None:
        """Neighbours that match one of `filters` lie there; None: all."""
        self.filters: tuple[RegionFilter, ...] | None = filters

    def holds(self, traits: Traits) -> bool:
        """Whether a neighbour lies there."""
        filters = self.filters
        return filters is None or any(each.matches(traits) for each in filters)


# -------------------------------------------------------------------------------------- places


class Placement:
    """Where a neighbour lies, and whether the node lies in the south of that neighbour."""

    __slots__ = ("region", "serves")

    def __init__(self, region: int, serves: bool) -> None:
        """`serves`: the neighbour is a gateway, and the node one of those it serves."""
        self.region: int = region
        self.serves: bool = serves


def claimed(mode: int, subregions: tuple[Subregion, ...] | None, traits: Traits) -> int:
    """Where a node's own list puts a neighbour, or `UNSAID` if it has none.

    Raises `HandshakeError` if the list puts a router south of what is not a router.
    """
    if subregions is None:
        return UNSAID
    for index, subregion in enumerate(subregions):
        if subregion.holds(traits):
            if traits.role == ROUTER and mode != ROUTER:
                raise HandshakeError(
                    f"gateway/south puts a router into {region_name(south(index, ROUTER))}, but "
                    f"only routers can serve routers, and this is a {ROLE_NAMES[mode]}; leave "
                    "routers out with modes: ['peer', 'client']",
                    _GENERIC,
                )
            return south(index, traits.role)
    return NORTH


def bound(region: int) -> int:
    """What is said in the opening of a neighbour that the own list put somewhere."""
    if region == UNSAID:
        return UNSAID
    return IN_THE_SOUTH if is_south(region) else IN_THE_NORTH


def place(mode: int, role: int, claim: int, assigned: int) -> Placement:
    """Where a neighbour lies in the end.

    Args:
        mode: of this node.
        role: of the neighbour.
        claim: where the own list puts it.
        assigned: what it says of this node: `IN_THE_NORTH`, `IN_THE_SOUTH` or `UNSAID`.

    Raises `HandshakeError` if the two cannot both be right.
    """
    me = ROLE_NAMES[mode]
    other = ROLE_NAMES[role]
    if claim == UNSAID:
        if assigned == IN_THE_SOUTH:
            return Placement(NORTH, True)
        if mode == CLIENT and role == CLIENT:
            raise HandshakeError(
                "this is a client and so is the other side: neither serves the other; make one "
                "of them a peer or a router, or give one a list in gateway/south",
                _GENERIC,
            )
        serves = usually_serves(mode, role)
        if assigned == IN_THE_NORTH and serves:
            raise HandshakeError(
                f"the gateway/south of the other side, a {other}, has no place for this {me}, "
                "which it would have to serve; add a filter there that this node matches",
                _GENERIC,
            )
        return Placement(usual_region(mode, role), serves)
    if is_south(claim):
        if assigned == IN_THE_SOUTH:
            raise HandshakeError(
                f"the gateway/south of both sides puts the other south ({region_name(claim)} "
                "here): one must leave the other out",
                _GENERIC,
            )
        return Placement(claim, False)
    if assigned == IN_THE_SOUTH:
        return Placement(NORTH, True)
    if assigned == IN_THE_NORTH:
        if mode != role:
            raise HandshakeError(
                f"the gateway/south of this {me} and of the {other} at the other side have no "
                "place for each other: one must serve the other",
                _GENERIC,
            )
        if mode == CLIENT:
            raise HandshakeError(
                "the gateway/south of this client and of the client at the other side have no "
                "place for each other: one must serve the other",
                _GENERIC,
            )
        return Placement(NORTH, False)
    if is_south(usual_region(mode, role)):
        raise HandshakeError(
            f"gateway/south has no place for this {other}, which expects to be served; add a "
            "filter that it matches",
            _GENERIC,
        )
    return Placement(NORTH, usually_serves(mode, role))

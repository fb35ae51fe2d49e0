"""Where neighbours lie, by the modes, by a list, and by what both sides say."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing import oracle
from zenlake.errors import HandshakeError
from zenlake.routing.regions import (
    CLIENT,
    HOME,
    IN_THE_NORTH,
    IN_THE_SOUTH,
    LOCAL,
    NORTH,
    PEER,
    ROUTER,
    UNSAID,
    Placement,
    RegionFilter,
    Subregion,
    Traits,
    bound,
    claimed,
    is_south,
    kind_of,
    place,
    region_name,
    south,
    usual_region,
    usually_serves,
)

R, P, C = ROUTER, PEER, CLIENT
MODES = (R, P, C)


def test_the_directions_are_those_of_the_table() -> None:
    for mode, role in itertools.product(range(3), range(4)):
        assert is_south(usual_region(mode, role)) == oracle.south(mode, role)


def test_regions_have_names_and_inhabitants() -> None:
    assert region_name(NORTH) == "north"
    assert region_name(HOME) == "local"
    assert region_name(south(0, PEER)) == "south:0:peer"
    assert region_name(south(12, ROUTER)) == "south:12:router"
    assert [kind_of(PEER, region) for region in (NORTH, HOME, south(3, CLIENT))] == [P, LOCAL, C]


# --------------------------------------------------------------------------------- what a list says

ME = Traits(b"\x07", PEER, "hall", ("eth0",))
FILTERS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"roles": (PEER,)}, True),
    ({"roles": (ROUTER, CLIENT)}, False),
    ({"roles": ()}, False),
    ({"zids": (b"\x01", b"\x07")}, True),
    ({"zids": (b"\x01",)}, False),
    ({"names": ("hall",)}, True),
    ({"names": ("yard", "cellar")}, False),
    ({"interfaces": ("eth0", "lo")}, True),
    ({"interfaces": ("lo",)}, False),
    ({"roles": (PEER,), "names": ("hall",)}, True),
    ({"roles": (PEER,), "names": ("yard",)}, False),
    ({"roles": (PEER,), "names": ("yard",), "negated": True}, True),
    ({"negated": True}, False),
]


@pytest.mark.parametrize(("traits", "matches"), FILTERS)
def test_a_filter_is_about_those_with_all_its_traits(traits: dict[str, Any], matches: bool) -> None:
    assert RegionFilter(**traits).matches(ME) == matches


def test_who_names_no_region_is_in_none() -> None:
    assert not RegionFilter(names=("hall",)).matches(Traits(b"\x07", PEER, "", ()))
    assert RegionFilter(names=("hall",), negated=True).matches(Traits(b"\x07", PEER, "", ()))


def test_every_interface_of_a_link_has_to_be_listed() -> None:
    listed = RegionFilter(interfaces=("eth0",))
    assert not listed.matches(Traits(b"\x07", PEER, "", ("eth0", "eth1")))
    # A link that cannot tell is taken to be anywhere, as Eclipse's nodes take it.
    assert listed.matches(Traits(b"\x07", PEER, "", ()))


def test_the_first_subregion_that_holds_it_has_it() -> None:
    hall = Subregion((RegionFilter(names=("yard",)), RegionFilter(names=("hall",))))
    everyone = Subregion()
    nobody = Subregion(())
    assert claimed(ROUTER, None, ME) == UNSAID
    assert claimed(ROUTER, (), ME) == NORTH
    assert claimed(ROUTER, (nobody,), ME) == NORTH
    assert claimed(ROUTER, (nobody, hall, everyone), ME) == south(1, PEER)
    assert claimed(ROUTER, (everyone, hall), ME) == south(0, PEER)


def test_only_routers_serve_routers() -> None:
    router = Traits(b"\x01", ROUTER, "", ())
    assert claimed(ROUTER, (Subregion(),), router) == south(0, ROUTER)
    for mode in (PEER, CLIENT):
        with pytest.raises(HandshakeError, match="only routers can serve routers"):
            claimed(mode, (Subregion(),), router)


# ------------------------------------------------------------------------------------ who is right

N, S = IN_THE_NORTH, IN_THE_SOUTH
HERE = south(1, PEER)

#: (mode, role, claim, told) → (region, serves), or the words of the refusal.
PLACES: list[tuple[int, int, int, int, tuple[int, bool] | str]] = [
    # Nobody has a list.
    (R, R, UNSAID, UNSAID, (NORTH, False)),
    (R, P, UNSAID, UNSAID, (south(0, P), False)),
    (R, C, UNSAID, UNSAID, (south(0, C), False)),
    (P, R, UNSAID, UNSAID, (NORTH, True)),
    (P, P, UNSAID, UNSAID, (NORTH, False)),
    (P, C, UNSAID, UNSAID, (south(0, C), False)),
    (C, R, UNSAID, UNSAID, (NORTH, True)),
    (C, P, UNSAID, UNSAID, (NORTH, True)),
    (C, C, UNSAID, UNSAID, "this is a client and so is the other side"),
    # The other side has one.
    (P, P, UNSAID, S, (NORTH, True)),
    (R, R, UNSAID, S, (NORTH, True)),
    (C, C, UNSAID, S, (NORTH, True)),
    (P, C, UNSAID, S, (NORTH, True)),
    (P, P, UNSAID, N, (NORTH, False)),
    (R, P, UNSAID, N, (south(0, P), False)),
    (P, R, UNSAID, N, "has no place for this peer"),
    (C, P, UNSAID, N, "has no place for this client"),
    # This one has.
    (R, P, HERE, UNSAID, (HERE, False)),
    (P, P, HERE, UNSAID, (HERE, False)),
    (P, P, NORTH, UNSAID, (NORTH, False)),
    (P, R, NORTH, UNSAID, (NORTH, True)),
    (R, P, NORTH, UNSAID, "no place for this peer"),
    (P, C, NORTH, UNSAID, "no place for this client"),
    (C, C, NORTH, UNSAID, "no place for this client"),
    # Both have.
    (P, P, HERE, N, (HERE, False)),
    (P, P, NORTH, S, (NORTH, True)),
    (P, P, NORTH, N, (NORTH, False)),
    (R, R, NORTH, N, (NORTH, False)),
    (R, P, NORTH, N, "have no place for each other"),
    (C, C, NORTH, N, "have no place for each other"),
    (P, P, HERE, S, "both sides puts the other south"),
]


@pytest.mark.parametrize(("mode", "role", "claim", "told", "outcome"), PLACES)
def test_a_place_is_what_both_can_live_with(
    mode: int, role: int, claim: int, told: int, outcome: tuple[int, bool] | str
) -> None:
    if isinstance(outcome, str):
        with pytest.raises(HandshakeError, match=outcome) as refused:
            place(mode, role, claim, told)
        assert refused.value.reason == 0
    else:
        found = place(mode, role, claim, told)
        assert (found.region, found.serves) == outcome


def filtered(
    roles: tuple[int, ...] | None,
    zids: tuple[bytes, ...] | None,
    names: tuple[str, ...] | None,
    negated: bool,
) -> RegionFilter:
    return RegionFilter(roles, None, zids, names, negated)


def subregions() -> st.SearchStrategy[tuple[Subregion, ...] | None]:
    some = st.builds(
        filtered,
        roles=st.none() | st.lists(st.sampled_from(MODES), max_size=3).map(tuple),
        zids=st.none() | st.lists(st.sampled_from([b"\x01", b"\x02"]), min_size=1).map(tuple),
        names=st.none() | st.lists(st.sampled_from(["a", "b"]), min_size=1).map(tuple),
        negated=st.booleans(),
    )
    parts = st.none() | st.lists(some, max_size=2).map(tuple)
    one = parts.map(Subregion)
    return st.none() | st.lists(one, max_size=3).map(tuple)


@given(
    modes=st.tuples(st.sampled_from(MODES), st.sampled_from(MODES)),
    names=st.tuples(*[st.sampled_from(["", "a", "b"])] * 2),
    lists=st.tuples(subregions(), subregions()),
)
def test_both_sides_come_to_the_same_end(
    modes: tuple[int, int],
    names: tuple[str, str],
    lists: tuple[tuple[Subregion, ...] | None, tuple[Subregion, ...] | None],
) -> None:
    """Either both have a place for each other and know who serves whom, or neither opens."""
    zids = (b"\x01", b"\x02")
    traits = [Traits(zids[at], modes[at], names[at], ()) for at in (0, 1)]
    try:
        claims = [claimed(modes[at], lists[at], traits[1 - at]) for at in (0, 1)]
    except HandshakeError:
        return
    found: list[Placement | None] = []
    for at in (0, 1):
        try:
            found.append(place(modes[at], modes[1 - at], claims[at], bound(claims[1 - at])))
        except HandshakeError:
            found.append(None)
    one, other = found
    if one is None or other is None:
        assert one is other
        return
    assert one.serves == is_south(other.region)
    assert other.serves == is_south(one.region)
    assert not (one.serves and other.serves)
    for at, mine in ((0, one), (1, other)):
        if is_south(mine.region):
            # In the south a node sorts its neighbours by what they are.
            assert kind_of(modes[at], mine.region) == modes[1 - at]
        elif not mine.serves:
            assert modes[at] == modes[1 - at] != CLIENT


def test_who_is_served_by_the_modes_alone() -> None:
    served = {(mode, role) for mode in MODES for role in MODES if usually_serves(mode, role)}
    assert served == {(P, R), (C, R), (C, P)}

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake import xrce
from zenlake.testing.strategies import messages
from zenlake.xrce.declared import PAGE

MARKERS = st.lists(st.one_of([messages(PAGE.specs[name]) for name in PAGE.markers]), max_size=8)


def sent(text: str) -> xrce.XrceMessage:
    (found,) = xrce.read_packet(bytes.fromhex(text))
    return found


def test_without_markers_all_is_zero() -> None:
    message = sent("0f01")
    assert xrce.conduit_of(message) == 0
    assert xrce.space_of(message) == 0
    assert xrce.fragment_of(message) is None


def test_each_marker_is_found_among_the_others() -> None:
    message = sent("b3" + "520305" + "1807" + "0f01")
    assert xrce.conduit_of(message) == 2
    assert xrce.fragment_of(message) == xrce.Frag(sn_base=3, count=5)
    assert xrce.space_of(message) == 7


@pytest.mark.parametrize(
    ("marker", "space", "from_zero"), [("b8", 2, 1), ("98", 1, 0), ("1802", 2, 2)]
)
def test_some_brokers_count_compact_spaces_from_zero(
    marker: str, space: int, from_zero: int
) -> None:
    message = sent(marker + "0f01")
    assert xrce.space_of(message) == space
    assert xrce.space_of(message, from_zero=True) == from_zero


@given(MARKERS)
def test_the_last_marker_of_a_kind_counts(markers: list[xrce.Marker]) -> None:
    message = xrce.AckNack(sn=1, markers=tuple(markers))
    conduits = [marker.id for marker in markers if isinstance(marker, xrce.Conduit)]
    spaces = [marker.id for marker in markers if isinstance(marker, xrce.RSpace)]
    fragments = [marker for marker in markers if isinstance(marker, xrce.Frag)]
    assert xrce.conduit_of(message) == [0, *conduits][-1]
    assert xrce.space_of(message) == [0, *spaces][-1]
    assert xrce.fragment_of(message) == [None, *fragments][-1]

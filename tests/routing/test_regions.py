from __future__ import annotations

import itertools

from tests.routing import oracle
from zenlake.routing.regions import is_pushed, is_south, may_flow


def test_the_directions_are_those_of_the_table() -> None:
    for mode, role in itertools.product(range(3), range(4)):
        assert is_south(mode, role) == oracle.south(mode, role)
        assert is_pushed(mode, role) != oracle.south(mode, role)
    for mode, source, target in itertools.product(range(3), range(4), range(4)):
        assert may_flow(mode, source, target) == oracle.flows(mode, source, target)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError
from zenlake.xrce import Property
from zenlake.xrce.properties import (
    AUTHENTICATION,
    CONDUITS,
    DEFAULTS,
    SN_LENGTH,
    number,
    number_of,
    value_of,
)


def test_an_absent_property_has_its_default() -> None:
    assert number_of((), SN_LENGTH) == 14
    assert number_of((), CONDUITS) == 1
    assert value_of((), AUTHENTICATION) is None


def test_what_trails_a_value_is_ignored() -> None:
    assert number_of((Property(id=SN_LENGTH, value=b"\x1c\xff\xff"),), SN_LENGTH) == 28


def test_unknown_properties_are_passed_over_and_the_first_of_an_id_counts() -> None:
    listed = (number(21, 7), number(CONDUITS, 5), number(CONDUITS, 6))
    assert number_of(listed, CONDUITS) == 5


@pytest.mark.parametrize("value", [b"", b"\x80"])
def test_a_value_that_begins_with_no_number_is_refused(value: bytes) -> None:
    with pytest.raises(DecodeError, match="property 4"):
        number_of((Property(id=SN_LENGTH, value=value),), SN_LENGTH)


@given(st.sampled_from(sorted(DEFAULTS)), st.integers(0, 2**64 - 1), st.binary(max_size=4))
def test_a_number_is_read_as_it_was_written(id: int, value: int, trail: bytes) -> None:
    written = number(id, value)
    assert number_of((Property(id=id, value=written.value + trail),), id) == value

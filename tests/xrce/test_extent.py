from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake import xrce
from zenlake.errors import DecodeError
from zenlake.testing.strategies import messages
from zenlake.wire.message import Message
from zenlake.xrce.declared import PAGE
from zenlake.xrce.extent import Extent


@given(message=messages(PAGE), behind=st.binary(max_size=8))
def test_the_end_is_found_when_it_arrives_and_not_before(message: Message, behind: bytes) -> None:
    written = xrce.write(message)
    data = bytearray()
    extent = Extent(data, limit=len(written))
    for byte in written[:-1]:
        data.append(byte)
        assert extent.find() == -1
    data += written[-1:] + behind
    assert extent.find() == len(written)


@given(messages(PAGE))
def test_a_message_one_byte_above_the_limit_is_refused(message: Message) -> None:
    written = xrce.write(message)
    with pytest.raises(DecodeError, match="at most"):
        Extent(bytearray(written), limit=len(written) - 1).find()


def test_the_pong_of_an_older_draft_has_an_end_too() -> None:
    assert Extent(bytearray.fromhex("0dac020f"), limit=100).find() == 3


def test_asking_again_before_more_arrives_changes_nothing() -> None:
    data = bytearray.fromhex("0dac")
    extent = Extent(data, limit=100)
    assert [extent.find(), extent.find()] == [-1, -1]
    data.append(2)
    assert extent.find() == 3

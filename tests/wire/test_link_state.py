from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.wire import LinkState, Oam
from zenlake.wire.link_state import LINK_STATE, NodeNames, NodeNumbers, read_entries, write_entries


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 1 << 40), st.binary(max_size=16))))
def test_entries_come_back_as_they_were_written(drawn: list[tuple[int, int, bytes]]) -> None:
    entries = [
        LinkState(psid=psid, sn=sn, zid=zid.rstrip(b"\0"), whatami=2, locators=None, links=(1, 2))
        for psid, sn, zid in drawn
    ]
    message = write_entries(entries)
    assert message.id == LINK_STATE
    assert list(read_entries(message)) == entries


def test_other_messages_have_no_entries() -> None:
    assert read_entries(Oam(id=2, body=b"anything")) == ()
    assert read_entries(Oam(id=LINK_STATE, body=7)) == ()


def test_numbers_keep_their_meaning_and_are_bounded() -> None:
    names = NodeNames(2)
    assert names.learn(1, b"a")
    assert names.changed
    assert names.learn(1, b"a")
    assert not names.changed
    assert names.learn(2, b"b")
    assert not names.learn(3, b"c")
    assert not names.changed
    assert names.learn(2, b"d")
    assert names.changed
    assert [names.get(number) for number in range(4)] == [b"", b"a", b"d", b""]


@given(st.lists(st.booleans()))
def test_numbers_in_use_are_the_smallest_there_are_and_no_two_alike(steps: list[bool]) -> None:
    numbers, used = NodeNumbers(), list[int]()
    most = 0
    for take in steps:
        if take or not used:
            used.append(numbers.take())
        else:
            numbers.give_back(used.pop(len(used) // 2))
        most = max(most, len(used))
        assert len(set(used)) == len(used)
        assert all(1 <= number <= most for number in used)

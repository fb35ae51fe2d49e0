from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError
from zenlake.testing import spec
from zenlake.testing.strategies import messages
from zenlake.transport.fragment import Reassembly, read_pieces
from zenlake.transport.piece import Piece, piece
from zenlake.wire import Message, Put, read_network, write
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_network import read_network as read_one
from zenlake.wire.cursor import Reader

MASK = 0x7F


def test_a_train_becomes_one_message() -> None:
    lane = Reassembly(100)
    assert lane.add(126, MASK, b"one ", True, True, True) is None
    assert lane.add(127, MASK, b"two ", False, True, True) is None
    assert lane.add(0, MASK, b"three", False, False, True) == [b"one ", b"two ", b"three"]
    assert (lane.size, lane.parts, lane.dropped) == (0, [], 0)


def test_a_gap_costs_the_message_and_the_rest_of_its_train() -> None:
    lane = Reassembly(100)
    lane.add(1, MASK, b"a", True, True, True)
    assert lane.add(3, MASK, b"c", False, True, True) is None
    assert lane.add(4, MASK, b"d", False, False, True) is None
    assert lane.dropped == 1
    assert lane.add(5, MASK, b"new", True, False, True) == [b"new"]


def test_a_train_without_its_first_piece_is_dropped_where_first_pieces_are_marked() -> None:
    lane = Reassembly(100)
    assert lane.add(1, MASK, b"tail", False, False, True) is None


def test_an_unmarked_train_begins_anywhere() -> None:
    lane = Reassembly(100)
    assert lane.add(1, MASK, b"a", False, True, False) is None
    assert lane.add(2, MASK, b"b", False, False, False) == [b"a", b"b"]


def test_a_new_first_piece_gives_up_the_old_train() -> None:
    lane = Reassembly(100)
    lane.add(1, MASK, b"old", True, True, True)
    lane.add(2, MASK, b"new", True, True, True)
    assert lane.add(3, MASK, b"er", False, False, True) == [b"new", b"er"]
    assert lane.dropped == 1


def test_a_message_beyond_the_limit_is_given_up_and_forgotten() -> None:
    lane = Reassembly(1000)
    lane.add(1, MASK, b"x" * 600, True, True, True)
    assert lane.add(2, MASK, b"x" * 600, False, True, True) is None
    assert (lane.size, lane.parts, lane.collecting) == (0, [], False)
    assert lane.add(3, MASK, b"x", False, False, True) is None


def test_a_message_byte_by_byte_is_given_up_before_its_pieces_cost_more_than_it() -> None:
    lane = Reassembly(3200)
    lane.add(0, MASK, b"x", True, True, True)
    for sn in range(1, 3000):
        lane.add(sn & MASK, MASK, b"x", False, True, True)
        assert len(lane.parts) <= 101
    assert lane.dropped == 1


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=20), st.integers(0, MASK))
def test_any_train_in_order_arrives_whole(pieces: list[bytes], first: int) -> None:
    lane = Reassembly(10_000)
    results = [
        lane.add((first + i) & MASK, MASK, piece, i == 0, i < len(pieces) - 1, True)
        for i, piece in enumerate(pieces)
    ]
    assert results == [*[None] * (len(pieces) - 1), pieces]


def cut(data: bytes, size: int, around: int = 0) -> list[Piece]:
    """Pieces as they come in reads that have so many other bytes around them."""
    pieces: list[Piece] = []
    for at in range(0, len(data), size):
        read = bytes(around) + data[at : at + size]
        pieces.append(piece(read, around, len(read)))
    return pieces


@given(messages(spec("Push")) | messages(spec("Request")), st.integers(1, 100), st.integers(0, 99))
def test_a_message_in_pieces_is_the_message_in_one(
    message: Message, size: int, around: int
) -> None:
    data = write(message)
    assert read_pieces(cut(data, size, around)) == read_network(data)


@pytest.mark.parametrize("key", ["k", "k" * 2000])
def test_a_large_value_is_put_together_from_the_reads_it_came_in(key: str) -> None:
    push = Push(scope=0, suffix=key, body=Put(payload=bytes(range(256)) * 1000))
    data = write(push)
    assert read_pieces(cut(data, 65_000)) == read_network(data) == push


def test_a_small_piece_of_a_large_read_does_not_keep_it() -> None:
    read = bytes(100_000)
    alone = sys.getrefcount(read)
    small = piece(read, 90_000, 100_000)
    tiny = piece(bytes(100), 1, 100)
    assert (type(small), type(tiny)) == (bytes, bytes)
    assert sys.getrefcount(read) == alone
    large = piece(read, 10_000, 100_000)
    assert sys.getrefcount(read) > alone
    assert (bytes(small), bytes(large)) == (bytes(10_000), bytes(90_000))


@given(messages(spec("Push")), st.data())
def test_damaged_pieces_are_read_as_the_damaged_whole(message: Push, data: st.DataObject) -> None:
    damaged = bytearray(write(message))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    pieces = cut(bytes(damaged), data.draw(st.integers(1, 100)))

    def outcome(read: object) -> object:
        try:
            return read() if callable(read) else None
        except DecodeError:
            return "refused"

    in_pieces = outcome(lambda: read_pieces(pieces))
    # The rest behind a message in pieces is nobody's, in one it is refused: compare what is read.
    assert in_pieces == outcome(lambda: read_one(Reader(bytes(damaged))))

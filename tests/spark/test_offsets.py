from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.spark.offsets import (
    DataLoss,
    Range,
    behind,
    cut,
    from_json,
    limit_bytes,
    limit_rows,
    to_json,
)


@dataclass(frozen=True)
class Piece:
    first: int
    end: int
    bytes: int


STRETCHES = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=5)


def test_offsets_are_written_as_kafkas_with_the_journal_for_a_topic() -> None:
    assert to_json("ab", (3, 5)) == {"ab": {"0": 3, "1": 5}}
    assert from_json({"ab": {"0": 3, "1": 5}}, "ab", 2) == (3, 5)


def test_a_checkpoint_is_not_continued_on_another_journal() -> None:
    with pytest.raises(DataLoss, match="checkpoint is of journal ab, and what lies here is"):
        from_json({"ab": {"0": 3}}, "cd", 1)
    with pytest.raises(DataLoss, match="has 2 partitions"):
        from_json({"ab": {"0": 3}}, "ab", 2)


def test_every_partition_gets_its_share_of_a_limit() -> None:
    assert limit_rows((0, 0), (100, 300), 40) == (10, 30)
    assert limit_rows((0, 0), (100, 300), 1000) == (100, 300)
    assert limit_rows((5, 5), (5, 6), 1) == (5, 6)


@given(STRETCHES, st.integers(1, 3000))
def test_a_limit_is_kept_and_always_gets_on(stretches: list[tuple[int, int]], most: int) -> None:
    start = tuple(begin for begin, _ in stretches)
    end = tuple(begin + rows for begin, rows in stretches)
    limited = limit_rows(start, end, most)
    there = sum(rows for _, rows in stretches)
    assert sum(limited) - sum(start) == min(most, there)
    assert behind(start, end) == there
    assert all(a <= b <= c for a, b, c in zip(start, limited, end, strict=True))


@given(STRETCHES, st.integers(1, 10_000), st.integers(1, 50))
def test_a_limit_of_bytes_is_kept_as_far_as_a_row_allows(
    stretches: list[tuple[int, int]], most: int, each: int
) -> None:
    start = tuple(begin for begin, _ in stretches)
    end = tuple(begin + rows for begin, rows in stretches)
    segments = [
        [Piece(begin, begin + rows, rows * each)] if rows else [] for begin, rows in stretches
    ]
    limited = limit_bytes(start, end, segments, most)
    assert all(a <= b <= c for a, b, c in zip(start, limited, end, strict=True))
    assert (sum(limited) - sum(start)) * each <= max(most, each)
    assert limited != start or start == end


def test_rows_of_several_segments_count_by_their_own_size() -> None:
    segments = [[Piece(0, 10, 1000), Piece(10, 20, 10)]]
    assert limit_bytes((0,), (20,), segments, 1005) == (15,)
    assert limit_bytes((5,), (20,), segments, 100) == (6,)


@given(STRETCHES, st.integers(1, 9), st.integers(1, 50))
def test_cutting_keeps_every_row_once_and_in_order(
    stretches: list[tuple[int, int]], pieces: int, least: int
) -> None:
    ranges = [Range(number, a, a + rows) for number, (a, rows) in enumerate(stretches)]
    found = cut(ranges, pieces, least)
    rows = [(piece.partition, at) for piece in found for at in range(piece.start, piece.end)]
    assert rows == [
        (piece.partition, at) for piece in ranges for at in range(piece.start, piece.end)
    ]
    assert all(piece.rows for piece in found)
    assert len(found) <= pieces + len(ranges)


def test_a_few_rows_are_one_task() -> None:
    assert cut([Range(0, 0, 100)], 8) == [Range(0, 0, 100)]
    assert len(cut([Range(0, 0, 80_000)], 4)) == 4

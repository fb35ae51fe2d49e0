"""Columns of a journal as words, and back: nothing changes on the way."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import LocalError
from zenlake.recorded.columns import (
    coded,
    encoding_numbers,
    encoding_words,
    id_words,
    ids_of_words,
    kind_numbers,
    kind_words,
    source_words,
)

ids = st.integers(1, (1 << 128) - 1).map(
    lambda number: number.to_bytes((number.bit_length() + 7) // 8, "little")
)
encodings = st.tuples(
    st.integers(0, 65535),
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)


def in_chunks(column: pa.Array) -> pa.ChunkedArray:
    """The same column cut in two, each piece with a dictionary of its own."""
    plain = column.cast(pa.string())
    half = len(plain) // 2
    return pa.chunked_array([plain[:half].dictionary_encode(), plain[half:].dictionary_encode()])


def test_the_words_are_those_that_people_search_for() -> None:
    found = encoding_words(pa.array([5, 0, 4000], pa.int32()), pa.array(["utf-8", None, "v2"]))
    assert found.to_pylist() == ["application/json;utf-8", "zenoh/bytes", "unknown(4000);v2"]
    assert kind_words(pa.array([0, 1], pa.int8())).to_pylist() == ["put", "delete"]
    zids = pa.array([b"\xb3\xa2\x01", None], pa.binary())
    assert id_words(zids).to_pylist() == ["1a2b3", None]
    assert source_words(zids, pa.array([7, None], pa.int64())).to_pylist() == ["1a2b3:7", None]


@given(st.lists(encodings, max_size=12))
def test_encodings_come_back_in_one_piece_or_in_chunks(pairs: list[tuple[int, str | None]]) -> None:
    numbers = pa.array([id for id, _ in pairs], pa.int32())
    schemas = pa.array([schema for _, schema in pairs], pa.string())
    words = encoding_words(numbers, schemas)
    for column in (words, words.cast(pa.string()), in_chunks(words)):
        back, named = encoding_numbers(column)
        assert back.to_pylist() == [id for id, _ in pairs]
        assert named.to_pylist() == [schema for _, schema in pairs]


@given(st.lists(st.none() | ids, max_size=12))
def test_ids_come_back_and_none_stays_none(given_ids: list[bytes | None]) -> None:
    words = id_words(pa.array(given_ids, pa.binary()))
    assert ids_of_words(words).to_pylist() == given_ids
    assert ids_of_words(in_chunks(words)).to_pylist() == given_ids


@given(st.lists(st.integers(0, 1), max_size=12))
def test_kinds_come_back(kinds: list[int]) -> None:
    assert kind_numbers(kind_words(pa.array(kinds, pa.int8()))).to_pylist() == kinds


def test_a_word_that_is_no_kind_is_refused() -> None:
    with pytest.raises(LocalError, match="'DELETE' is no kind of sample; it is put or delete"):
        kind_numbers(pa.array(["put", "DELETE"]))


def test_an_encoding_that_is_not_told_is_bytes() -> None:
    back, schemas = encoding_numbers(pa.array([None, "text/plain"], pa.string()))
    assert back.to_pylist() == [0, 4]
    assert schemas.to_pylist() == [None, None]


def test_a_column_without_rows_is_coded_too() -> None:
    assert coded(pa.chunked_array([], pa.string())).to_pylist() == []

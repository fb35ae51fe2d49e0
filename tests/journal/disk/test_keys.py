"""The numbers that keys have in a segment."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from zenlake.journal.disk.keys import KeyNumbers
from zenlake.journal.disk.messages import key_message, keys_of

KEYS = st.sampled_from(["a", "b", "c/d", "ключ", "e" * 300])


def column(rows: list[str], unused: list[str]) -> pa.DictionaryArray:
    dictionary = list(dict.fromkeys([*unused, *rows]))
    return pa.DictionaryArray.from_arrays(
        pa.array([dictionary.index(row) for row in rows], pa.int32()),
        pa.array(dictionary, pa.string()),
    )


@given(
    st.lists(
        st.tuples(
            st.lists(KEYS, max_size=6), st.lists(KEYS, max_size=3, unique=True), st.booleans()
        ),
        max_size=8,
    )
)
def test_every_row_keeps_its_key_and_only_used_keys_are_numbered(
    batches: list[tuple[list[str], list[str], bool]],
) -> None:
    numbers = KeyNumbers()
    used: list[str] = []
    for rows, unused, written in batches:
        coded = numbers.number(column(rows, unused)).to_pylist()
        known = [*numbers.keys(), *numbers.proposed()]
        assert [known[code] for code in coded] == rows
        if written:
            numbers.accept()
            used += [row for row in rows if row not in used]
        else:
            numbers.reject()
        assert sorted(numbers.keys()) == sorted(set(used))
        assert not numbers.proposed()


@given(st.lists(st.text(max_size=20), min_size=1, max_size=20), st.booleans())
def test_a_dictionary_message_brings_what_was_put_into_it(keys: list[str], more: bool) -> None:
    message = key_message(keys, more=more)
    assert len(message) % 8 == 0
    assert keys_of(message, more=more).to_pylist() == keys

"""What numpy leaves of rows is all that the rule of the newest value looks at."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from zenlake.newest import NewestValues
from zenlake.recorded.newest_rows import newest_rows

KEYS = ["a", "b/c", "b/d"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(range(len(KEYS))),
        st.integers(-3, 3) | st.sampled_from([-(1 << 63), (1 << 63) - 1]),
        st.sampled_from([b"\x01", b"\x02", b"\x01\x01"]),
        st.booleans(),
    ),
    max_size=12,
    # No clock tells a time twice.
    unique_by=lambda row: (row[1], row[2]),
)
Held = dict[str, tuple[int, bytes, int | None]]


def held_of(rows: list[tuple[int, int, bytes, bool]], entered: list[int]) -> Held:
    """What each key has after these of the rows: time, id, and the row that it came from."""
    newest: NewestValues[int] = NewestValues()
    for row in entered:
        code, time, id, put = rows[row]
        if put:
            newest.put(KEYS[code], time, id, row, 1)
        else:
            newest.delete(KEYS[code], time, id)
    return {held.key: (held.time, held.id, held.value) for held in newest.held()}


@given(ROWS, st.booleans())
@example([(0, -(1 << 63), b"\x01", True)], False)
def test_the_rows_that_are_left_give_the_values_that_all_give(
    rows: list[tuple[int, int, bytes, bool]], in_order: bool
) -> None:
    if in_order:
        rows = sorted(rows, key=lambda row: row[1])
    codes = np.array([code for code, *_ in rows], np.int32)
    times = np.array([time for _, time, *_ in rows], np.int64)
    left = np.flatnonzero(newest_rows(codes, times, len(KEYS))).tolist()
    assert held_of(rows, left) == held_of(rows, list(range(len(rows))))
    # Of each key those of one time alone.
    assert len({(rows[row][0], rows[row][1]) for row in left}) == len(set(codes.tolist()))

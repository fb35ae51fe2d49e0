"""The last sequence number of each source."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.rows import rows
from zenlake.journal.schema import UNNUMBERED
from zenlake.journal.writing.sources import SourceNumbers

Named = tuple[bytes | None, int | None, int | None]


def numbered(samples: list[Named]) -> pa.RecordBatch:
    """A batch with these sources and numbers."""
    batch = rows(["k"] * len(samples))
    for index, name in enumerate(("source_zid", "source_eid", "source_sn")):
        place = UNNUMBERED.get_field_index(name)
        column = pa.array([sample[index] for sample in samples], UNNUMBERED.field(place).type)
        batch = batch.set_column(place, UNNUMBERED.field(place), column)
    return batch


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from([None, b"\x01", b"\x02", b"\x01\x02", b"\xff" * 16]),
                st.sampled_from([None, 0, 1, (1 << 32) - 1]),
                st.sampled_from([None, 0, 1, 5, 1000]),
            ),
            min_size=1,
            max_size=12,
        ),
        max_size=4,
    )
)
def test_it_is_the_greatest_of_each_source_however_rows_are_cut(cuts: list[list[Named]]) -> None:
    numbers = SourceNumbers()
    expected: dict[str, int] = {}
    for samples in cuts:
        numbers.take(numbered(samples))
        for zid, eid, sn in samples:
            if zid is not None and eid is not None and sn is not None:
                name = f"{int.from_bytes(zid, 'little'):x}:{eid}"
                expected[name] = max(expected.get(name, 0), sn)
    assert numbers.snapshot() == expected


def test_numbers_that_go_round_go_on() -> None:
    numbers = SourceNumbers()
    numbers.take(numbered([(b"\x01", 1, (1 << 32) - 2)]))
    numbers.take(numbered([(b"\x01", 1, (1 << 32) - 1), (b"\x01", 1, 0), (b"\x01", 1, 3)]))
    assert numbers.snapshot() == {"1:1": 3}
    numbers.take(numbered([(b"\x01", 1, (1 << 32) - 1)]))  # a late one
    assert numbers.snapshot() == {"1:1": 3}


def test_strangers_cannot_make_it_grow_for_ever() -> None:
    numbers = SourceNumbers(most=3)
    for zid in range(1, 6):
        numbers.take(numbered([(bytes([zid]), 1, 7), (b"\x01", 1, zid)]))
    assert numbers.snapshot() == {"4:1": 7, "1:1": 7, "5:1": 7}
    assert len(numbers) == 3
    assert numbers.forgotten == 2


def test_a_slice_is_not_mistaken_for_the_whole() -> None:
    numbers = SourceNumbers()
    batch = numbered([(b"\x01", 1, 50), (b"\x02", 2, 3), (b"\x02", 2, 4), (b"\x03", 3, 60)])
    numbers.take(batch[1:3])
    assert numbers.snapshot() == {"2:2": 4}

"""Damaged segments: an error that names the place, and never a crash or rows that were not."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.disk import Disk
from tests.journal.rows import rows, told
from zenlake.errors import JournalCorrupt
from zenlake.journal import Journal
from zenlake.journal.log import Limits, Log

PATH = "p0000/00000000000000000000.arrow"


def sealed() -> Disk:
    disk = Disk()
    log = Log(disk, limits=Limits(segment_bytes=1))
    log.write(0, rows(["a", "b", "c/d"], values=[b"x" * 40_000] * 3))
    log.write(0, rows(["e", "a"], values=[b"y" * 40_000] * 2, start=3))
    log.commit()
    log.tend()
    return disk


SEALED = sealed()
WHOLE = SEALED.read(PATH)
ROWS = told(Journal(SEALED, "disk").scan())
#: Where something other than values is: damage there is more interesting.
PLACES = [i for i in range(len(WHOLE)) if WHOLE[i : i + 1] not in (b"x", b"y")]


def damaged(data: bytes) -> Journal:
    disk = SEALED.killed()
    disk.names[PATH].seen[:] = data
    return Journal(disk, "disk")


def test_there_are_two_blocks_in_the_segment() -> None:
    assert len(ROWS) == 5
    assert len(WHOLE) > 200_000


def test_a_changed_value_is_noticed_with_file_block_and_offsets() -> None:
    at = WHOLE.index(b"y" * 100) + 50
    journal = damaged(WHOLE[:at] + b"?" + WHOLE[at + 1 :])
    scan = journal.scan(check=True)
    assert told([next(scan)]) == ROWS[:3]
    with pytest.raises(
        JournalCorrupt,
        match=rf"{PATH} is damaged in block 1 at byte \d+ \(offsets 3 to 5\): the checksum",
    ):
        next(scan)


@settings(max_examples=150, deadline=None)
@given(place=st.sampled_from(PLACES), bit=st.integers(0, 7), start=st.sampled_from([0, 4]))
def test_one_changed_bit_is_an_error_or_changes_no_row(place: int, bit: int, start: int) -> None:
    data = bytearray(WHOLE)
    data[place] ^= 1 << bit
    journal = damaged(bytes(data))
    found, refused = [], ""
    try:
        found = told(journal.scan(start, check=True))
    except JournalCorrupt as error:
        refused = str(error)
    # Some bytes are padding, and some of the footer say what the index says too.
    assert PATH in refused or found == ROWS[start:]


@settings(max_examples=200, deadline=None)
@given(
    changes=st.dictionaries(st.sampled_from(PLACES), st.integers(0, 255), max_size=8),
    length=st.integers(0, len(WHOLE)) | st.just(len(WHOLE)),
    columns=st.sampled_from([None, ["key", "offset", "stamp_id", "encoding_schema"]]),
)
def test_unchecked_scans_of_damaged_files_end_or_refuse(
    changes: dict[int, int], length: int, columns: list[str] | None
) -> None:
    data = bytearray(WHOLE)
    for place, value in changes.items():
        data[place] = value
    journal = damaged(bytes(data[:length]))
    refused = PATH
    try:
        for batch in journal.scan(columns=columns):
            _looked_at(batch)
    except JournalCorrupt as error:
        refused = str(error)
    assert PATH in refused


def _looked_at(batch: pa.RecordBatch) -> None:
    """Read every value; times may be beyond what Python can say."""
    for column in batch.columns:
        (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()

"""Damaged segments: an error that names the place, and never a crash or rows that were not."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.forgetful_disk import Disk
from tests.journal.rows import rows, told
from zenlake.errors import JournalCorrupt
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.reading.blocks import VERIFIED, VerifiedBlocks
from zenlake.journal.writing.log import Log, LogLimits

PATH = "p0000/00000000000000000000.arrow"


def sealed() -> Disk:
    disk = Disk()
    log = Log(disk, limits=LogLimits(segment_bytes=1))
    log.write(0, rows(["a", "b", "c/d"], values=[b"x" * 40_000] * 3))
    log.write(0, rows(["e", "a"], values=[b"y" * 40_000] * 2, start=3))
    log.commit()
    log.tend()
    return disk


SEALED = sealed()
WHOLE = SEALED.read(PATH)
ROWS = [
    *((offset, key, b"x" * 40_000) for offset, key in enumerate(["a", "b", "c/d"])),
    *((offset, key, b"y" * 40_000) for offset, key in enumerate(["e", "a"], 3)),
]
#: Where something other than values is: damage there is more interesting.
PLACES = [i for i in range(len(WHOLE)) if WHOLE[i : i + 1] not in (b"x", b"y")]


def damaged(data: bytes) -> Journal:
    disk = SEALED.killed()
    disk.names[PATH].seen[:] = data
    return Journal(disk, "disk")


def test_there_are_two_blocks_in_the_segment() -> None:
    assert told(Journal(SEALED, "disk").scan()) == ROWS
    assert len(WHOLE) > 200_000


def test_a_changed_value_is_noticed_with_file_block_and_offsets() -> None:
    at = WHOLE.index(b"y" * 100) + 50
    journal = damaged(WHOLE[:at] + b"?" + WHOLE[at + 1 :])
    wanted = rf"{PATH} is damaged in block 1 at byte \d+ \(offsets 3 to 5\): the checksum"
    for check in (None, True):
        with pytest.raises(JournalCorrupt, match=wanted):
            told(journal.scan(check=check))
        with pytest.raises(JournalCorrupt, match=wanted):
            list(journal.scan(columns=["value"], check=check))
        assert told(journal.scan(end=3, check=check)) == ROWS[:3]


def test_who_wants_it_faster_may_do_without_checksums() -> None:
    at = WHOLE.index(b"y" * 100) + 50
    journal = damaged(WHOLE[:at] + b"?" + WHOLE[at + 1 :])
    found = told(journal.scan(check=False))
    assert [row[2].count(b"?") for row in found] == [0, 0, 0, 1, 0]
    # Values are most of this segment: who leaves them out does not read them either.
    keys = [batch.column("key").to_pylist() for batch in journal.scan(columns=["key"])]
    assert keys == [["a", "b", "c/d"], ["e", "a"]]
    with pytest.raises(JournalCorrupt, match="the checksum"):
        list(journal.scan(columns=["key"], check=True))


def test_small_rows_are_checked_whatever_is_wanted_of_them(tmp_path: Path) -> None:
    path = write_many(tmp_path)
    change(path, b"robot/5")
    with pytest.raises(JournalCorrupt, match=rf"{PATH} is damaged in block 0 at byte \d+"):
        list(Journal.open(tmp_path).scan(columns=["hlc"]))


def test_a_block_is_verified_once_while_its_file_is_the_same(tmp_path: Path) -> None:
    path = write_many(tmp_path)
    before = VERIFIED.compared
    for _ in range(2):
        assert sum(len(batch) for batch in Journal.open(tmp_path).scan()) == 1000
        assert VERIFIED.compared == before + 1
    change(path, b"robot/5")
    with pytest.raises(JournalCorrupt, match="the checksum"):
        list(Journal.open(tmp_path).scan())


def test_what_is_known_of_files_is_bounded() -> None:
    verified = VerifiedBlocks(most=3)
    for mark in range(5):
        verified.of(mark, 1)[0] = 1
    assert len(verified) == 3
    assert verified.of(4, 1) == b"\x01"
    assert verified.of(4, 2) == b"\0\0"  # not the file that it was
    assert verified.of(0, 1) == b"\0"  # the oldest was forgotten
    assert verified.of(None, 1) == verified.of(None, 1) == b"\0"


def write_many(folder: Path) -> Path:
    """A sealed segment of many small rows."""
    keys = [f"robot/{n % 10}" for n in range(1000)]
    for count in (1, 0):
        with JournalWriter.open(folder, segment_bytes=1) as writer:
            writer.append(0, rows(keys[: count * 1000]))
    return folder / PATH


def change(path: Path, what: bytes) -> None:
    """Change a byte of a file, in its place."""
    data = path.read_bytes()
    at = data.index(what)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"?")
    os.utime(path)


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
        for batch in journal.scan(columns=columns, check=False):
            _looked_at(batch)
    except JournalCorrupt as error:
        refused = str(error)
    assert PATH in refused


def _looked_at(batch: pa.RecordBatch) -> None:
    """Read every value; times may be beyond what Python can say."""
    for column in batch.columns:
        (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()

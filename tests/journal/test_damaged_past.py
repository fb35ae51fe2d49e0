"""Damage of what was recorded costs the rows that it hit, and never the recording."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.forgetful_disk import Disk
from tests.journal.heard import Row, batch_of
from tests.journal.recording import recording, until_heard, until_rows
from tests.journal.rows import rows, told
from tests.journal.written import write_rows
from tests.waiting import until
from zenlake.errors import JournalCorrupt
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.ledger import checkpoint
from zenlake.journal.schema import SCHEMA
from zenlake.journal.serving import recall
from zenlake.journal.writing.log import Log, LogLimits

PATH = "p0000/00000000000000000000.arrow"
LARGE = b"x" * 80_000


def sealed(*batches: list[str]) -> Disk:
    """A sealed segment with a block for each list of keys, and another segment after it."""
    disk = Disk()
    log = Log(disk, limits=LogLimits(segment_bytes=1))
    start = 0
    for keys in batches:
        # Small blocks would be put together.
        values = [f"v{start + n:04}".encode() for n in range(len(keys) - 1)] + [LARGE]
        log.write(0, rows(keys, values=values, start=start))
        log.commit()
        start += len(keys)
    log.tend()
    log.write(0, rows(["z"], start=start))
    log.commit()
    log.tend()
    return disk


def salvaged(disk: Disk, data: bytes) -> tuple[list[tuple[int, str, bytes]], list[str]]:
    """What can be read when the first segment has these bytes, and what is said of the rest."""
    after = disk.killed()
    after.names[PATH].seen[:] = data
    errors: list[str] = []
    journal = Journal(after, "disk")
    found = told(
        journal.salvage(0, 0, 1 << 40, SCHEMA.names, lambda error: errors.append(str(error)))
    )
    return found, errors


def changed(data: bytes, what: bytes, to: bytes = b"?") -> bytes:
    at = data.index(what)
    return data[:at] + to + data[at + len(to) :]


FEW = sealed(["a", "b"], ["mine", "a"], ["mine", "b"])
FEW_WHOLE = FEW.read(PATH)
#: Where something other than padding is: damage there is more interesting.
PLACES = [i for i in range(len(FEW_WHOLE)) if FEW_WHOLE[i : i + 1] != b"x"]
FEW_ROWS = [
    (0, "a", b"v0000"),
    (1, "b", LARGE),
    (2, "mine", b"v0002"),
    (3, "a", LARGE),
    (4, "mine", b"v0004"),
    (5, "b", LARGE),
    (6, "z", b"6"),
]


def test_what_is_whole_is_salvaged_without_a_word() -> None:
    assert salvaged(FEW, FEW_WHOLE) == (FEW_ROWS, [])


def test_a_damaged_block_costs_its_rows_though_it_brought_the_keys_of_others() -> None:
    # A value of the second block, beside a key that the third block uses.
    found, errors = salvaged(FEW, changed(FEW_WHOLE, b"v0002"))
    assert found == [row for row in FEW_ROWS if row[0] not in (2, 3)]
    (error,) = errors
    assert f"{PATH} is damaged in block 1" in error
    assert "offsets 2 to 4" in error


def test_a_key_that_changed_is_never_taken_for_another() -> None:
    for name in (b"?ine", b"b\0\0\0"):
        found, errors = salvaged(FEW, changed(FEW_WHOLE, b"mine", name))
        # Of the third block, the row of that key is lost with it.
        assert found == [row for row in FEW_ROWS if row[0] not in (2, 3, 4)]
        assert "damaged in block 1" in errors[0]
        assert "keys whose names stood in a damaged block" in errors[1]


def test_keys_too_many_to_list_are_believed_of_whole_blocks_alone() -> None:
    many = sealed([f"k/{n}" for n in range(300)], ["lost", "k/1"], ["lost", "k/2"])
    whole = many.read(PATH)
    found, errors = salvaged(many, changed(whole, b"v0300"))
    every = [(n, f"k/{n}", f"v{n:04}".encode()) for n in range(299)]
    assert found == [*every, (299, "k/299", LARGE), (303, "k/2", LARGE), (304, "z", b"304")]
    assert len(errors) == 2


def test_a_segment_that_is_none_or_is_gone_costs_what_it_held() -> None:
    for data in (b"", FEW_WHOLE[:-1]):
        found, errors = salvaged(FEW, data)
        assert found == FEW_ROWS[-1:]
        assert PATH in errors[0]
    after = FEW.killed()
    del after.names[PATH]
    lost: list[Exception] = []
    journal = Journal(after, "disk")
    assert told(journal.salvage(0, 0, 9, SCHEMA.names, lost.append)) == FEW_ROWS[-1:]
    assert "is missing" in str(lost[0])


@settings(max_examples=150, deadline=None)
@given(place=st.sampled_from(PLACES), bit=st.integers(0, 7))
def test_no_changed_bit_makes_a_row_that_was_not(place: int, bit: int) -> None:
    data = bytearray(FEW_WHOLE)
    data[place] ^= 1 << bit
    found, errors = salvaged(FEW, bytes(data))
    assert set(found) <= set(FEW_ROWS)
    assert found[-1] == FEW_ROWS[-1]
    assert bool(errors) == (found != FEW_ROWS)


# ----------------------------------------------------------------------------------- recorder


def damage(path: Path) -> None:
    """Change a value in the first segment."""
    (place,) = path.glob(PATH)
    place.write_bytes(changed(place.read_bytes(), b"in the past"))


def test_a_ledger_is_strict_unless_somebody_hears_of_the_damage(tmp_path: Path) -> None:
    past = [Row("r/a", sn=n, hlc=n, value=b"in the past") for n in range(100)]
    write_rows(tmp_path, past, segment_bytes=1)
    more = [Row("r/a", sn=n, hlc=n) for n in range(100, 104)]
    journal = write_rows(tmp_path, more, segment_bytes=1)
    damage(tmp_path)
    with pytest.raises(JournalCorrupt, match="damaged in block 0"):
        checkpoint.caught_up(journal, None)
    heard: list[Exception] = []
    ledger = checkpoint.caught_up(journal, None, heard.append)
    assert len(heard) == 1
    assert ledger.offsets == {0: 104}
    assert ledger.totals()["rows"] == 4


def test_a_recorder_goes_on_beside_a_damaged_past(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with JournalWriter.open(tmp_path, name="j", segment_bytes=1) as writer:
        for key, value in (("r/lost", b"in the past"), ("r/kept", b"whole"), ("r/last", b"whole")):
            writer.append(0, batch_of([Row(key, value=value)] * 100))
            writer.flush()
    damage(tmp_path)
    with caplog.at_level(logging.ERROR), recording(tmp_path) as (recorder, other):
        until(recorder._memory.remembered.is_set)
        assert {key for key, *_ in recorder._matching("r/**")} == {"r/kept", "r/last"}
        publisher = other.declare_publisher("r/now")
        until_heard(publisher)
        publisher.put("the present")
        until_rows(recorder, 301)
        assert "r/now" in {key for key, *_ in recorder._matching("r/**")}
        # What is not known is not put aside.
        assert not recorder._memory.put_aside()
    assert not (tmp_path / recall.LATEST).exists()
    said = [record.getMessage() for record in caplog.records]
    assert any("the ledger lacks" in text and "in block 0" in text for text in said)
    assert any("the latest values lack" in text and PATH in text for text in said)
    JournalWriter.open(tmp_path).close()

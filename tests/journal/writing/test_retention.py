"""When segments are sealed, and which are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal.forgetful_disk import Disk
from tests.journal.rows import rows, told
from zenlake.errors import JournalGap, LocalError
from zenlake.journal import Journal
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.options import RetainRule
from zenlake.journal.writing.log import Log, LogLimits
from zenlake.journal.writing.readers import READERS
from zenlake.journal.writing.retention import JournalRetention
from zenlake.supervise.readers import write_readers


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_segment_is_sealed_when_it_is_old() -> None:
    clock = Clock()
    log = Log(disk := Disk(), limits=LogLimits(segment_age=10.0), clock=clock)
    log.write(0, rows(["a"]))
    log.commit()
    assert log.tend() == 10.0
    clock.now += 9.9
    assert log.tend() < 0.2
    assert not Journal(disk, "disk").segments(0)[0].sealed
    clock.now += 0.2
    log.tend()
    (segment,) = Journal(disk, "disk").segments(0)
    assert segment.sealed
    assert segment.closed == clock.now
    log.tend()  # with nothing in it, nothing is sealed
    assert len(Journal(disk, "disk").segments(0)) == 1


def test_what_was_sealed_long_ago_is_let_go_whatever_its_rows_say() -> None:
    clock = Clock()
    limits = LogLimits(segment_bytes=1, retention=JournalRetention(age=100.0))
    log = Log(disk := Disk(), limits=limits, clock=clock)
    for start, time in enumerate([4_000_000_000_000_000, 0, 5]):
        log.write(0, rows(["a"], start=start, time=[time]))
        log.commit()
        log.tend()
        clock.now += 60
    journal = Journal(disk, "disk")
    assert [s.first for s in journal.segments(0)] == [1, 2]
    log.tend()
    assert journal.earliest() == (2,)
    assert [offset for offset, _, _ in told(journal.scan())] == [2]
    with pytest.raises(JournalGap, match="offset 1 of partition 0 is no longer kept"):
        journal.scan({0: 1})
    assert len(told(journal.scan({0: 2}))) == 1
    clock.now += 1000
    log.tend()
    assert told(journal.scan()) == []
    # The numbers go on, also after all rows are gone and another writer came.
    again = Log(disk.killed(), limits=limits, clock=clock)
    assert again.partitions[0].next == 3
    assert again.partitions[0].manifest.earliest == 3


YEAR = 365 * 86400.0


def kept(disk: Disk) -> list[int]:
    return [segment.first for segment in Journal(disk, "disk").segments(0)]


def recording(log: Log, clock: Clock, steady: Clock, count: int, apart: float = 600.0) -> None:
    """Seal a segment with one row each so many seconds."""
    for _ in range(count):
        log.write(0, rows(["a"]))
        log.commit()
        log.tend()
        clock.now += apart
        steady.now += apart


@pytest.mark.parametrize("ages", ["of all", "by a rule"])
def test_a_date_that_is_set_ahead_deletes_nothing_before_it_was_so_for_a_day(
    ages: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock, steady = Clock(), Clock()
    month = 30 * 86400.0
    rule = (RetainRule("**", month),) if ages == "by a rule" else ()
    retention = JournalRetention(age=None if rule else month)
    limits = LogLimits(segment_bytes=1, retention=retention, rules=rule)
    log = Log(disk := Disk(), limits=limits, clock=clock, steady=steady)

    def values() -> int:
        return len(told(Journal(disk, "disk").scan()))

    recording(log, clock, steady, 3)
    clock.now += YEAR
    for _ in range(140):
        log.tend()
        clock.now += 600
        steady.now += 600
    assert values() == 3
    assert log.held == pytest.approx(YEAR)
    (line,) = [one.getMessage() for one in caplog.records if "the clock is" in one.getMessage()]
    assert "the clock is 365 days, 0:00:00 ahead" in line
    # The date is set right.
    clock.now -= YEAR
    log.tend()
    assert (values(), log.held) == (3, 0.0)
    # It is set ahead again, for good.
    clock.now += YEAR
    for _ in range(160):
        log.tend()
        clock.now += 600
        steady.now += 600
    assert (values(), log.held) == (0, 0.0)


def test_a_writer_that_starts_with_a_date_set_ahead_deletes_nothing_for_a_day() -> None:
    clock, steady = Clock(), Clock()
    limits = LogLimits(segment_bytes=1, retention=JournalRetention(age=3 * 86400.0))
    log = Log(disk := Disk(), limits=limits, clock=clock, steady=steady)
    recording(log, clock, steady, 3)
    clock.now += YEAR
    log = Log(disk := disk.killed(), limits=limits, clock=clock, steady=steady)
    recording(log, clock, steady, 3)
    assert kept(disk) == [0, 1, 2, 3, 4, 5]
    # Another start, which finds rows of the new date already.
    log = Log(disk := disk.killed(), limits=limits, clock=clock, steady=steady)
    recording(log, clock, steady, 3)
    assert kept(disk) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    recording(log, clock, steady, 140)
    assert kept(disk)[0] == 3


def test_a_segment_of_a_date_that_was_set_back_goes_with_those_after_it() -> None:
    clock, steady = Clock(), Clock()
    limits = LogLimits(segment_bytes=1, retention=JournalRetention(age=3600.0))
    log = Log(disk := Disk(), limits=limits, clock=clock, steady=steady)
    clock.now += YEAR
    recording(log, clock, steady, 2)
    clock.now -= YEAR
    recording(log, clock, steady, 2)
    assert kept(disk) == [0, 1, 2, 3]
    recording(log, clock, steady, 6)
    assert kept(disk) == [4, 5, 6, 7, 8, 9], "an hour of them"


def test_a_segment_that_was_begun_before_the_date_was_set_back_is_sealed_in_its_time() -> None:
    clock = Clock()
    log = Log(disk := Disk(), limits=LogLimits(segment_age=10.0), clock=clock)
    log.write(0, rows(["a"]))
    log.commit()
    log.tend()
    clock.now -= 500
    assert log.tend() == 10.0
    clock.now += 11
    log.tend()
    assert Journal(disk, "disk").segments(0)[0].sealed


def sealed(log: Log, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        log.write(0, rows(["a"], start=number))
        log.commit()
        log.tend()


def test_what_the_lake_has_not_read_is_kept_longer_up_to_a_bound(tmp_path: Path) -> None:
    size = 14_000
    limits = LogLimits(segment_bytes=1, retention=JournalRetention(bytes=size, hold=2 * size))
    log = Log(files := LocalFiles(tmp_path), limits=limits)
    journal = Journal(files, "disk")
    write_readers(tmp_path, {})
    sealed(log, 5)
    assert journal.earliest() == (0,), "the lake has read nothing"
    write_readers(tmp_path, {log.info.id: [2]})
    sealed(log, 1, 5)
    assert journal.earliest() == (2,), "it is too much, and the lake has it"
    sealed(log, 30, 6)
    held = sum(segment.bytes for segment in journal.segments(0))
    assert 2 * size < held <= 3 * size, "what nobody comes to read does not fill a disk"
    (tmp_path / READERS).write_text("damaged")
    before = journal.earliest()
    sealed(log, 1, 36)
    assert journal.earliest()[0] <= before[0] + 1
    write_readers(tmp_path, None)
    sealed(log, 1, 37)
    assert sum(segment.bytes for segment in journal.segments(0)) <= size


def test_age_waits_for_the_lake_too(tmp_path: Path) -> None:
    clock = Clock()
    limits = LogLimits(segment_bytes=1, retention=JournalRetention(age=10.0, hold=1 << 30))
    log = Log(files := LocalFiles(tmp_path), limits=limits, clock=clock)
    write_readers(tmp_path, {log.info.id: [1]})
    sealed(log, 3)
    clock.now += 100
    log.tend()
    assert Journal(files, "disk").earliest() == (1,)


def test_a_reader_that_began_before_a_segment_was_let_go_reads_on() -> None:
    limits = LogLimits(segment_bytes=1, retention=JournalRetention(bytes=14_000))
    log = Log(disk := Disk(), limits=limits)

    def more(start: int) -> None:
        log.write(0, rows(["a"], start=start))
        log.commit()
        log.tend()

    for start in range(3):
        more(start)
    journal = Journal(disk, "disk")
    careless, careful = journal.scan(), journal.scan(0)
    assert told([next(careless)])[0][0] == told([next(careful)])[0][0] == 0
    for start in range(3, 6):
        more(start)
    (earliest,) = journal.earliest()
    assert earliest > 1
    # Who asked for everything gets what is left, who asked for numbers is told of the gap.
    assert [row[0] for row in told(careless)] == [2] * (earliest <= 2)
    with pytest.raises(JournalGap):
        list(careful)


@pytest.mark.parametrize("limits", [{"bytes": 0}, {"age": -1.0}])
def test_keeping_nothing_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(LocalError, match="is keeping nothing"):
        JournalRetention(**limits)
    with pytest.raises(LocalError, match="cannot be written"):
        LogLimits(segment_bytes=0)

"""Rules take values out of sealed segments, and nothing else, whenever the power fails."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pyarrow as pa
import pytest

from tests.journal.forgetful_disk import Disk, PowerCut
from tests.journal.heard import Row, batch_of
from tests.journal.rows import rows, told
from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.journal.disk.files import JournalFiles, LocalFiles
from zenlake.journal.ledger import checkpoint
from zenlake.journal.ledger.past import unrecorded
from zenlake.journal.options import RetainRule
from zenlake.journal.schema import DELETE
from zenlake.journal.verify import verify
from zenlake.journal.writing import retire
from zenlake.journal.writing.log import Log, LogLimits
from zenlake.supervise.readers import write_readers

KEYS = ["camera/front", "robot/pose", "camera/back"]
RULES = LogLimits(segment_bytes=1, rules=(RetainRule("camera/**", 100.0),))
START = 1000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def written(files: JournalFiles, clock: Clock, segments: int = 2, limits: LogLimits = RULES) -> Log:
    """A journal with so many segments of three rows; the time stands still meanwhile."""
    log = Log(files, limits=limits, clock=clock)
    for number in range(segments):
        log.write(0, rows(KEYS, start=3 * number, source=(b"\x07", 1)))
        log.commit()
        log.tend()
    return log


def retired(log: Log) -> None:
    """Tend until nothing is to be done at once."""
    while log.tend() == 0.0:
        pass


def test_values_that_are_old_enough_go_and_offsets_stay() -> None:
    clock = Clock()
    log = written(disk := Disk(), clock)
    journal = Journal(disk, "disk")
    clock.now = START + 99.0
    retired(log)
    assert len(told(journal.scan())) == 6
    clock.now = START + 160.0
    retired(log)
    assert told(journal.scan()) == [(1, "robot/pose", b"1"), (4, "robot/pose", b"4")]
    # The rows are still there for who counts them, without what they said.
    (batch, _) = journal.scan(heartbeats=True)
    assert batch.column("offset").to_pylist() == [0, 1, 2]
    assert batch.column("origin").to_pylist() == [4, 0, 4]
    assert batch.column("value").to_pylist() == [b"", b"1", b""]
    assert batch.column("source_sn").to_pylist() == [0, 1, 2]
    assert (log.retired.rows, log.retired.segments) == (4, 2)
    # Nothing is done twice, by this process or by the next.
    files = set(disk.names)
    for again in (log, Log(disk.killed(), limits=RULES, clock=clock)):
        clock.now += 1000.0
        retired(again)
        assert set(disk.names) == files
    assert again.retired.rows == 0
    assert not list(journal.scan(keys="camera/**"))


def test_the_ledger_knows_that_they_came_and_verify_calls_them_retired(tmp_path: Path) -> None:
    clock = Clock()
    log = written(LocalFiles(tmp_path), clock)
    before = checkpoint.recomputed(Journal.open(tmp_path)).totals()
    assert (before["received"], before["missing"]) == (6, 0)
    clock.now += 1000.0
    retired(log)
    assert checkpoint.recomputed(Journal.open(tmp_path)).totals() == before
    verdict = verify(Journal.open(tmp_path))
    assert verdict.sound, verdict.problems
    assert (verdict.rows, verdict.retired) == (2, 4)


def test_a_sample_of_ros_2_keeps_its_number_and_a_deletion_stays(tmp_path: Path) -> None:
    number = (5).to_bytes(8, "little") + bytes(8) + b"\x10" + bytes(range(16))
    clock = Clock()
    log = Log(LocalFiles(tmp_path), limits=RULES, clock=clock)
    told_rows = [
        Row("camera/ros", attachment=number),
        Row("camera/other", attachment=b"note"),
        Row("camera/other", kind=DELETE, value=b""),
    ]
    log.write(0, batch_of(told_rows))
    log.commit()
    before = checkpoint.recomputed(Journal.open(tmp_path)).totals()
    log.tend()
    clock.now += 1000.0
    retired(log)
    journal = Journal.open(tmp_path)
    (batch,) = journal.scan(heartbeats=True)
    assert batch.column("attachment").to_pylist() == [number, None, None]
    assert told(journal.scan()) == [(2, "camera/other", b"")]
    assert checkpoint.recomputed(journal).totals() == before
    # A publisher that is asked for its past says nothing that came before.
    again = batch_of([Row("camera/other", attachment=b"note")])
    assert len(unrecorded(again, journal, 0, lambda *_: False)) == 0


def test_what_the_lake_has_not_committed_is_kept(tmp_path: Path) -> None:
    clock = Clock()
    log = written(LocalFiles(tmp_path), clock)
    journal = Journal.open(tmp_path)
    write_readers(tmp_path, {journal.id: [3]})
    clock.now += 1000.0
    retired(log)
    assert [offset for offset, _, _ in told(journal.scan())] == [1, 3, 4, 5]
    write_readers(tmp_path, {journal.id: [6]})
    clock.now += 60.0
    retired(log)
    assert [offset for offset, _, _ in told(journal.scan())] == [1, 4]


def test_a_turn_takes_over_a_bounded_piece_and_rows_come_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retire, "STEP_BYTES", 1)
    clock = Clock()
    log = Log(disk := Disk(), limits=LogLimits(rules=RULES.rules, segment_age=50.0), clock=clock)
    for number in range(5):
        log.write(0, rows(KEYS, start=3 * number, values=[bytes(40_000)] * 3))  # a block each
    log.commit()
    log.tend()
    clock.now += 50.0
    log.tend()
    clock.now += 100.0
    assert log.tend() == 0.0
    log.write(0, rows(["robot/pose"]))
    log.commit()
    assert len(told(Journal(disk, "disk").scan())) == 16
    turns = 1
    while log.tend() == 0.0:
        turns += 1
    assert turns >= 5
    assert len(told(Journal(disk, "disk").scan())) == 6
    assert log.retired.bytes > 10 * 39_000


def test_a_segment_that_is_let_go_meanwhile_is_not_brought_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retire, "STEP_BYTES", 1)
    clock = Clock()
    log = written(disk := Disk(), clock, segments=1)
    clock.now += 1000.0
    log.tend()
    (partition,) = log.partitions
    if partition.manifest.segments:
        gone = partition.manifest.segments[0].path
        partition.publish(partition.manifest.without(1))
        disk.remove(gone)
    retired(log)
    assert [name for name in disk.names if "arrow" in name] == []
    assert told(Journal(disk, "disk").scan()) == []


def test_a_reader_that_looked_before_finds_what_is_listed_since() -> None:
    clock = Clock()
    log = written(disk := Disk(), clock)
    scan = Journal(disk, "disk").scan()
    first = next(scan)
    clock.now += 1000.0
    retired(log)
    # The second segment has another name now, and rows that this reader does not want.
    assert told([first, *scan]) == [
        (0, "camera/front", b"0"),
        (1, "robot/pose", b"1"),
        (2, "camera/back", b"2"),
        (4, "robot/pose", b"4"),
    ]


def test_a_full_disk_is_asked_again_later_and_nothing_is_lost() -> None:
    clock = Clock()
    log = written(disk := Disk(), clock)
    disk.suffering["create"] = errno.ENOSPC
    clock.now += 1000.0
    assert log.tend() > 0.0
    assert log.retired.failures == 1
    assert len(told(Journal(disk, "disk").scan())) == 6
    disk.suffering.clear()
    clock.now += 60.0
    retired(log)
    assert len(told(Journal(disk, "disk").scan())) == 2


def test_a_damaged_segment_is_left_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = written(disk := Disk(), clock)
    disk.names["p0000/00000000000000000000.arrow"].seen[2000] ^= 1
    clock.now += 1000.0
    retired(log)
    clock.now += 1000.0
    retired(log)
    assert log.retired.failures == 1
    assert "could not be retired" in caplog.text
    assert told(Journal(disk, "disk").scan({0: 3})) == [(4, "robot/pose", b"4")]


def test_the_power_may_fail_in_every_operation_of_it() -> None:
    point = 0
    while True:
        clock = Clock()
        log = written(disk := Disk(), clock)
        clock.now += 1000.0
        disk.fuse = point
        try:
            retired(log)
        except PowerCut:
            pass
        else:
            break
        for survivor in (disk.killed(), disk.failed(None), disk.failed(random.Random(point))):
            again = Log(survivor, limits=RULES, clock=clock)
            journal = Journal(survivor, "disk")
            poses = [row for row in told(journal.scan()) if row[1] == "robot/pose"]
            assert poses == [(1, "robot/pose", b"1"), (4, "robot/pose", b"4")]
            assert all(value for _, _, value in told(journal.scan()))
            assert pa.Table.from_batches(journal.scan(heartbeats=True)).num_rows == 6
            lying = {name for name in survivor.names if name.endswith((".arrow", ".tmp"))}
            assert lying == {segment.path for segment in journal.segments(0)}
            retired(again)
            assert told(journal.scan()) == poses
        point += 1
    assert point > 10


def test_segments_that_move_elsewhere_have_no_rules(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="leave the rules of retention away, or sealed_to"):
        Log(Disk(), limits=RULES, sealed_to=f"file://{tmp_path}/far")

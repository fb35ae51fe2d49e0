"""A full disk: back-pressure or counted drops, a clear word, and nothing broken."""

from __future__ import annotations

import errno
from typing import Literal

import pytest

from tests.journal.forgetful_disk import DirectDisk, Disk
from tests.journal.rows import rows, told
from tests.waiting import SECONDS, until
from zenlake.errors import JournalError, JournalFull
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.writing.log import Log, LogLimits


def writer_on(
    disk: Disk, on_full: Literal["block", "drop"], queue_bytes: int = 1 << 20
) -> JournalWriter:
    return JournalWriter.open(
        "disk", files=disk, fsync="1ms", on_full=on_full, queue_bytes=queue_bytes
    )


def test_rows_wait_until_there_is_room_and_none_is_lost() -> None:
    disk = Disk()
    writer = writer_on(disk, "block", queue_bytes=1000)
    writer.append(0, rows(["a"] * 3))
    writer.flush(SECONDS)
    disk.capacity = sum(len(inode.seen) for inode in disk.names.values()) + 500
    for start in range(3, 9, 3):
        writer.append(0, rows(["a"] * 3, start=start))
    until(lambda: writer.stats.full)
    with pytest.raises(JournalFull, match="is full: flush waited"):
        writer.flush(0.05)
    # The queue is full too, so that callers wait: that is the back-pressure.
    many = rows(["a"] * 20, start=9)
    with pytest.raises(JournalFull, match=r"is full: append waited 0\.05 s; free some space"):
        writer.append(0, many, timeout=0.05)
    assert told(Journal(disk, "disk").scan())[:3] == [(i, "a", str(i).encode()) for i in range(3)]
    disk.capacity = None
    writer.flush(SECONDS)
    assert not writer.stats.full
    writer.close()
    found = told(Journal(disk, "disk").scan())
    assert found == [(i, "a", str(i).encode()) for i in range(len(found))]
    assert len(found) == 9
    assert writer.stats.dropped_rows == 0
    assert Log(disk).partitions[0].cut == 0


def test_a_disk_without_free_inodes_takes_no_new_segment_and_loses_no_row() -> None:
    disk = Disk()
    writer = JournalWriter.open(
        "disk", files=disk, fsync="1ms", on_full="block", segment_bytes=2000
    )
    writer.append(0, rows(["a"] * 3))
    writer.flush(SECONDS)
    disk.suffering["create"] = errno.ENOSPC
    start = 3
    while not writer.stats.full:  # until the segment is over
        writer.append(0, rows(["a"] * 3, start=start))
        start += 3
        until(lambda: writer.stats.full or not writer.stats.queued_bytes)
    disk.suffering.clear()
    writer.flush(SECONDS)
    assert not writer.stats.full
    writer.close()
    found = told(Journal(disk, "disk").scan())
    assert found == [(i, "a", str(i).encode()) for i in range(start)]
    assert writer.stats.dropped_rows == 0


@pytest.mark.parametrize(("kind", "capacity"), [(Disk, 9000), (DirectDisk, 30_000)])
def test_rows_are_dropped_and_counted_until_there_is_room(kind: type[Disk], capacity: int) -> None:
    disk = kind(capacity=capacity)
    writer = writer_on(disk, "drop")
    for start in range(0, 90, 3):
        writer.append(0, rows(["a"] * 3, start=start))
        until(lambda: not writer.stats.queued_bytes)
    assert writer.stats.full
    dropped = writer.stats.dropped_rows
    assert dropped > 0
    disk.capacity = None
    writer.append(0, rows(["b"], start=1000))
    writer.flush(SECONDS)
    assert not writer.stats.full
    writer.close()
    found = told(Journal(disk, "disk").scan())
    assert [offset for offset, _, _ in found] == list(range(90 - dropped + 1))
    assert found[-1] == (90 - dropped, "b", b"1000")


def test_closing_on_a_full_disk_gives_up_when_told_to() -> None:
    disk = Disk(capacity=9000)
    writer = writer_on(disk, "block")
    for start in range(0, 90, 3):
        writer.append(0, rows(["a"] * 3, start=start))
    until(lambda: writer.stats.full)
    with pytest.raises(JournalFull, match="is full: close waited"):
        writer.close(0.05)
    assert not disk.locked
    disk.capacity = None
    with writer_on(disk, "block") as again:
        again.append(0, rows(["z"], start=7))
    found = told(Journal(disk, "disk").scan())
    assert [offset for offset, _, _ in found] == list(range(len(found)))
    assert found[-1][1:] == ("z", b"7")


@pytest.mark.parametrize(
    ("kind", "spare"),
    [(Disk, spare) for spare in range(0, 9000, 150)]
    + [(DirectDisk, spare) for spare in range(0, 30_000, 1000)],
)
def test_however_much_room_is_left_sealing_breaks_nothing(kind: type[Disk], spare: int) -> None:
    disk = kind()
    log = Log(disk, limits=LogLimits(segment_bytes=1))
    log.write(0, rows(["a", "b"]))
    log.commit()
    disk.capacity = sum(len(inode.seen) for inode in disk.names.values()) + spare
    try:
        log.tend()
        log.write(0, rows(["c"], start=2))
        log.commit()
        log.tend()
    except OSError:
        pass
    journal = Journal(disk, "disk")
    assert told(journal.scan())[:2] == [(0, "a", b"0"), (1, "b", b"1")]
    disk.capacity = None
    # The same writer goes on, and so does another.
    log.tend()
    log.write(0, rows(["d"], start=3))
    log.commit()
    log.tend()
    seen = told(journal.scan())
    assert [offset for offset, _, _ in seen] == list(range(len(seen)))
    assert seen[-1][1:] == ("d", b"3")
    again = Log(disk.killed())
    assert again.partitions[0].next == len(seen)


def test_after_a_failed_fsync_nothing_more_is_acknowledged() -> None:
    disk = Disk()
    writer = writer_on(disk, "block")
    writer.append(0, rows(["a"]))
    writer.flush(SECONDS)
    disk.broken = True
    writer.append(0, rows(["b"], start=1))
    with pytest.raises(JournalError, match=r"fsync of .* failed .* open the journal anew"):
        writer.flush(SECONDS)
    with pytest.raises(JournalError, match="fsync of"):
        writer.append(0, rows(["c"], start=2))
    with pytest.raises(JournalError, match="fsync of"):
        writer.close()
    assert Journal(disk, "disk").watermark().offsets == (1,)
    disk.broken = False
    with writer_on(disk, "block") as again:
        again.append(0, rows(["d"], start=3))
    assert [key for _, key, _ in told(Journal(disk, "disk").scan())] in (
        ["a", "b", "d"],
        ["a", "d"],
    )

"""Starting from what was put aside is the same as reading everything, whatever happened."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.sessions import connected, listening
from tests.journal.forgetful_disk import DirectDisk, Disk, PowerCut
from tests.journal.heard import OTHER, ZID, Row, batch_of
from tests.journal.recording import recording, until_heard, until_rows
from tests.waiting import until
from zenlake.errors import JournalCorrupt
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.disk.frame import crc32
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.journal.serving import recall
from zenlake.journal.serving.latest import COLUMNS, Latest, What
from zenlake.journal.writing.log import Log, LogLimits
from zenlake.journal.writing.retention import JournalRetention

Answers = dict[str, tuple[int, bytes, bytes]]


def told(latest: Latest) -> Answers:
    return {key: (hlc, id, value.payload) for key, hlc, id, value in latest.matching("**")}


def scanned(journal: Journal) -> Latest:
    """What reading everything gives."""
    latest = Latest()
    for partition in range(journal.partitions):
        for batch in journal.scan(partition=partition, columns=COLUMNS):
            latest.enter(batch, partition)
    return latest


def started(disk: Disk) -> tuple[Latest, int]:
    """What starting gives, and how many rows it read for that."""
    journal, latest, read = Journal(disk, "disk"), Latest(), 0
    try:
        found = recall.read(disk, journal)
    except JournalCorrupt:
        found = None
    for known in [] if found is None else found.known():
        latest.restore(known)
    for partition in range(journal.partitions if found is not None and found.left_out else 0):
        assert found is not None
        first, end = {partition: found.earliest[partition]}, {partition: found.offsets[partition]}
        for batch in journal.scan(first, end, partition=partition, columns=COLUMNS):
            latest.enter(batch, partition)
    for partition in range(journal.partitions):
        start = None if found is None else {partition: found.offsets[partition]}
        for batch in journal.scan(start, partition=partition, columns=COLUMNS):
            latest.enter(batch, partition)
            read += batch.num_rows
    return latest, read


class Writer:
    """A recorder without threads: a log, and a memory of what was written to it."""

    def __init__(self, disk: Disk, limits: LogLimits | None = None) -> None:
        self.disk = disk
        self.log = Log(disk, partitions=2, limits=limits)
        self.latest, _ = started(disk)

    def write(self, rows: list[Row]) -> None:
        for partition in range(2):
            mine = [row for row in rows if len(row.key) % 2 == partition]
            if mine:
                first = self.log.partitions[partition].next
                self.log.write(partition, batch_of(mine))
                self.latest.enter(batch_of(mine), partition, first)

    def put_aside(self, offsets: list[int] | None = None) -> None:
        found = offsets or [partition.next for partition in self.log.partitions]
        recall.write(self.disk, self.log.info.id, found, self.latest, self._durable)

    def _durable(self) -> bool:
        self.log.commit()
        return True


def row(key: str, hlc: int, kind: int = 0, id: bytes = ZID) -> Row:
    return Row(key, hlc=hlc, kind=kind, stamp_id=id, value=f"{key}{hlc}".encode())


def test_only_what_is_new_is_read() -> None:
    writer = Writer(Disk())
    writer.write([row("a", n) for n in range(50)])
    writer.put_aside()
    writer.write([row("a", 60), row("bb", 61)])
    writer.log.commit()
    latest, read = started(writer.disk)
    assert read == 2
    assert told(latest) == told(scanned(Journal(writer.disk, "disk")))
    assert told(latest)["a"] == (60, ZID, b"a60")


def test_everything_that_is_known_of_a_value_comes_back() -> None:
    writer = Writer(Disk())
    writer.write(
        [
            Row("a", hlc=-5, value=b"\0\xff", attachment=b"beside"),
            Row("b", hlc=1, sn=0, zid=ZID, eid=7),
            Row("c", hlc=1, sn=(1 << 32) - 1, zid=OTHER, eid=0),
        ]
    )
    before = writer.latest.matching("**")
    assert {key: (value.source, value.sn) for key, _, _, value in before} == {
        "a": (None, 0),
        "b": ((ZID, 7), 0),
        "c": ((OTHER, 0), (1 << 32) - 1),
    }
    writer.put_aside()
    after, read = started(writer.disk)
    assert read == 0
    assert after.matching("**") == before
    assert [list(known) for known in after.known()] == [
        list(known) for known in writer.latest.known()
    ]


def test_what_earlier_versions_put_aside_is_known_without_its_sources() -> None:
    writer = Writer(Disk())
    writer.write([Row("a", hlc=1, sn=3), Row("b", hlc=2)])
    writer.put_aside()
    data = bytes(writer.disk.open(recall.LATEST).read_buffer())
    start = data.index(b"}", len(recall.MAGIC)) + 1
    rows = pa.ipc.open_stream(data[start : -len(recall.MAGIC) - 4]).read_all()
    sink = pa.BufferOutputStream()
    earlier = rows.select([name for name in rows.column_names if "source" not in name])
    with pa.ipc.new_stream(sink, earlier.schema) as out:
        out.write_table(earlier)
    body = data[:start] + sink.getvalue().to_pybytes()
    file = writer.disk.create(recall.LATEST)
    file.write([body, crc32(body).to_bytes(4, "little"), recall.MAGIC])
    file.fsync()
    file.close()
    latest, read = started(writer.disk)
    assert read == 0
    assert told(latest) == told(writer.latest)
    assert [value.source for _, _, _, value in latest.matching("**")] == [None, None]


def test_deletions_of_one_key_and_of_many_are_remembered_against_late_samples() -> None:
    writer = Writer(Disk())
    writer.write([row("a", 1), row("a", 5, kind=1), row("c/d", 3), row("c/**", 6, kind=1)])
    writer.put_aside()
    latest, _ = started(writer.disk)
    assert told(latest) == {}
    assert {known.what for piece in latest.known() for known in piece} == {
        What.DELETED,
        What.DELETION_OF_MANY,
    }
    latest.enter(batch_of([row("a", 4), row("c/e", 5)]), 0, 9)
    assert told(latest) == {}


def test_a_put_of_many_keys_is_not_taken_for_a_put_of_each() -> None:
    """A deletion between the two still means the key."""
    writer = Writer(Disk())
    writer.write([row("a/b", 1), row("a/*", 5)])
    writer.put_aside()
    for latest in (started(writer.disk)[0], scanned(Journal(writer.disk, "disk"))):
        assert told(latest)["a/b"] == (5, ZID, b"a/*5")
        latest.enter(batch_of([row("a/b", 3, kind=1)]), 1, 9)
        assert told(latest) == {}


def test_what_was_put_aside_may_come_beside_what_is_heard() -> None:
    writer = Writer(Disk())
    writer.write([row("a", 5), row("b/c", 1), row("b/*", 7), row("x", 3, kind=1)])
    writer.put_aside()
    found = recall.read(writer.disk, Journal(writer.disk, "disk"))
    assert found is not None
    heard = batch_of([row("a", 4), row("b/c", 6), row("x", 2), row("y", 1)])
    one, other = Latest(), Latest()
    one.enter(heard, 0, 9)
    for known in found.known():
        one.restore(known)
        other.restore(known)
    other.enter(heard, 0, 9)
    assert told(one) == told(other)
    assert told(one)["a"] == (5, ZID, b"a5")
    assert told(one)["b/c"] == (7, ZID, b"b/*7")


def test_values_whose_rows_were_let_go_are_forgotten() -> None:
    limits = LogLimits(segment_bytes=1, retention=JournalRetention(bytes=1))
    writer = Writer(Disk(), limits)
    writer.write([row("a", 1)])
    writer.log.commit()
    writer.write([row("c", 2)])
    writer.put_aside()
    writer.log.tend()
    writer.write([row("e", 3)])
    writer.log.commit()
    writer.log.tend()
    journal = Journal(writer.disk, "disk")
    assert journal.earliest()[1] >= 2
    latest, _ = started(writer.disk)
    assert told(latest) == told(scanned(journal))
    assert "a" not in told(latest)


def test_what_retention_let_go_before_anybody_entered_it_makes_it_worthless() -> None:
    writer = Writer(Disk(), LogLimits(segment_bytes=1, retention=JournalRetention(bytes=1)))
    writer.write([row("a", 1)])
    writer.put_aside([0, 0])
    writer.log.commit()
    writer.log.tend()
    assert Journal(writer.disk, "disk").earliest() == (0, 1)
    assert recall.read(writer.disk, Journal(writer.disk, "disk")) is None


def test_one_that_ends_after_the_journal_is_refused() -> None:
    writer = Writer(Disk())
    writer.write([row("a", 1)])
    writer.put_aside([0, 2])
    with pytest.raises(JournalCorrupt, match="rows that the journal does not have"):
        recall.read(writer.disk, Journal(writer.disk, "disk"))
    other = Writer(Disk())
    other.write([row("a", 1), row("a", 2)])
    other.log.commit()
    other.disk.names[recall.LATEST] = writer.disk.names[recall.LATEST]
    with pytest.raises(JournalCorrupt, match="of another journal"):
        recall.read(other.disk, Journal(other.disk, "disk"))


def test_one_changed_or_missing_byte_makes_it_worthless() -> None:
    writer = Writer(Disk())
    writer.write([row("a", 1), row("bb", 2)])
    writer.put_aside()
    journal = Journal(writer.disk, "disk")
    page = writer.disk.names[recall.LATEST].seen
    whole = bytes(page)
    for at in range(len(whole)):
        page[:] = whole
        page[at] ^= 1 << at % 8
        with pytest.raises(JournalCorrupt, match=recall.LATEST):
            recall.read(writer.disk, journal)
        page[:] = whole[:at]
        with pytest.raises(JournalCorrupt, match=recall.LATEST):
            recall.read(writer.disk, journal)


def test_rows_that_never_become_durable_leave_nothing_aside() -> None:
    writer = Writer(Disk())
    writer.write([row("a", 1)])
    assert not recall.write(writer.disk, writer.log.info.id, [0, 1], writer.latest, lambda: False)
    assert writer.disk.list("") == ["journal.json", "p0000", "p0001"]


def test_a_full_disk_leaves_what_was_put_aside_before() -> None:
    writer = Writer(Disk())
    writer.write([row("a", 1)])
    writer.put_aside()
    before = writer.disk.read(recall.LATEST)
    writer.write([row("a", 2)])
    writer.log.commit()
    writer.disk.capacity = sum(len(inode.seen) for inode in writer.disk.names.values()) + 100
    with pytest.raises(OSError, match="No space"):
        writer.put_aside()
    assert writer.disk.read(recall.LATEST) == before
    assert recall.LATEST + ".tmp" not in writer.disk.names
    assert told(started(writer.disk)[0]) == told(writer.latest)


# ------------------------------------------------------------------------------------ crashes


def survivors(disk: Disk) -> Iterator[Disk]:
    yield disk.killed()
    yield disk.failed(None)
    for seed in range(2):
        yield disk.failed(random.Random(seed))


def test_the_power_may_fail_in_every_operation() -> None:
    rows = [
        [row("a", 5), row("a/*", 9), row("a/bb", 4), row("bb", 2)],
        [row("bb", 7, kind=1), row("a", 3), row("**", 8, kind=1), row("c", 6, id=OTHER)],
    ]

    def play(disk: Disk) -> None:
        writer = Writer(disk, LogLimits(segment_bytes=1))
        for batch in rows:
            writer.write(batch)
            writer.put_aside()
            writer.write([row("late", 2)])
            writer.log.commit()
            writer.log.tend()

    whole = Disk()
    play(whole)
    for point in range(whole.operations):
        disk = Disk()
        disk.fuse = point
        with pytest.raises(PowerCut):
            play(disk)
        for survivor in survivors(disk):
            writer = Writer(survivor, LogLimits(segment_bytes=1))
            assert told(writer.latest) == told(scanned(Journal(survivor, "disk")))
        # It goes on from there.
        writer.write([row("a", 20)])
        writer.put_aside()
        assert told(started(survivor)[0]) == told(scanned(Journal(survivor, "disk")))
        assert started(survivor)[1] == 0


Step = tuple[str, list[Row], int]
rows_of_any_time = st.lists(
    st.builds(
        row,
        st.sampled_from(["a", "bb", "a/b", "a/cc", "a/*", "**"]),
        st.integers(-9, 9),
        st.sampled_from([0, 0, 1]),
        st.sampled_from([ZID, OTHER]),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda one: (one.hlc, one.stamp_id),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), rows_of_any_time, st.just(0)),
        st.tuples(st.sampled_from(["commit", "tend", "aside"]), st.just([]), st.just(0)),
        st.tuples(st.sampled_from(["cut", "kill"]), rows_of_any_time, st.integers(0, 40)),
    ),
    max_size=14,
)


def unique(rows: list[Row], used: set[tuple[int, bytes]]) -> list[Row]:
    """No two samples have the same timestamp: that is what ids of clocks are for."""
    fresh = [one for one in rows if (one.hlc, one.stamp_id) not in used]
    used.update((one.hlc, one.stamp_id) for one in fresh)
    return fresh


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from([Disk, DirectDisk]),
    found=steps,
    segment=st.sampled_from([1, 5000, 1 << 20]),
)
def test_after_any_history_a_start_gives_what_reading_everything_gives(
    kind: type[Disk], found: list[Step], segment: int
) -> None:
    limits = LogLimits(segment_bytes=segment)
    writer = Writer(kind(), limits)
    used: set[tuple[int, bytes]] = set()
    for name, rows, number in found:
        match name:
            case "write":
                writer.write(unique(rows, used))
            case "commit":
                writer.log.commit()
            case "tend":
                writer.log.tend()
            case "aside":
                writer.put_aside()
            case _:
                disk = writer.disk
                disk.fuse = number if name == "cut" else None
                try:
                    writer.write(unique(rows, used))
                    writer.put_aside()
                    writer.log.tend()
                except PowerCut:
                    pass
                disk.fuse = None
                after = disk.killed() if name == "kill" else disk.failed(random.Random(number))
                writer = Writer(after, limits)
        journal = Journal(writer.disk, "disk")
        assert told(started(writer.disk)[0]) == told(scanned(journal))
    writer.log.commit()
    assert told(writer.latest) == told(scanned(Journal(writer.disk, "disk")))


# ----------------------------------------------------------------------------------- recorder


def test_a_recorder_starts_from_what_it_put_aside(tmp_path: Path) -> None:
    with recording(tmp_path, segment_bytes=1, fsync="batch") as (recorder, other):
        publisher = other.declare_publisher("r/a")
        until_heard(publisher)
        for number in range(200):
            publisher.put(str(number))
        until_rows(recorder, 200)
        until(lambda: (tmp_path / recall.LATEST).exists(), "nothing was put aside")
    options = Options(("r/**",), str(tmp_path), name="j", fsync="5ms")
    with listening() as session, Recorder(session, options) as recorder, connected(session) as asks:
        until(recorder._memory.remembered.is_set)
        assert recorder._memory.read < 200
        (reply,) = [one.ok for one in asks.get("r/a")]
        assert reply is not None
        assert reply.payload.to_bytes() == b"199"


def test_a_recorder_reads_the_journal_where_what_was_put_aside_is_damaged(tmp_path: Path) -> None:
    with recording(tmp_path) as (recorder, other):
        publisher = other.declare_publisher("r/a")
        until_heard(publisher)
        publisher.put("here")
        until_rows(recorder, 1)
        until(recorder._memory.remembered.is_set)
        assert recorder._memory.put_aside()
    page = tmp_path / recall.LATEST
    page.write_bytes(page.read_bytes()[:-1])
    with recording(tmp_path) as (recorder, other):
        until(recorder._memory.remembered.is_set)
        assert recorder._memory.read == 1
        (reply,) = [one.ok for one in other.get("r/a")]
        assert reply is not None
        assert reply.payload.to_bytes() == b"here"


def test_an_older_row_that_is_kept_stands_in_for_a_newest_one_that_is_not(tmp_path: Path) -> None:
    latest = Latest()
    batches = [
        [row("r/a", 9), row("r/gone", 8), Row("r/x", hlc=1, value=b"x" * 60_000)],
        [row("r/a", 5), row("r/b", 3), Row("r/x", hlc=2, value=b"y" * 60_000)],
    ]
    retain: dict[str, Any] = {"segment_bytes": 1, "retain_bytes": 100_000}
    with JournalWriter.open(tmp_path, name="j", segment_bytes=1) as writer:
        for number, rows in enumerate(batches):
            writer.append(0, batch_of(rows))
            writer.flush()
            latest.enter(batch_of(rows), 0, 3 * number)
            until(lambda: writer.stats.sealed > number)  # noqa: B023
        assert recall.write(LocalFiles(tmp_path), writer.id, [6], latest)
    with recording(tmp_path, **retain) as (recorder, _):
        until(lambda: recorder.journal.earliest() == (3,))
        until(recorder._memory.remembered.is_set)
    for _ in range(2):
        with recording(tmp_path, **retain) as (recorder, _):
            until(recorder._memory.remembered.is_set)
            assert recorder.journal.earliest() == (3,)
            found = {key: value.payload for key, _, _, value in recorder._matching("r/**")}
            assert found == {"r/a": b"r/a5", "r/b": b"r/b3", "r/x": b"y" * 60_000}
            # Only rows of the keys that were left out are read again.
            assert recorder._memory.read == 1


def test_a_journal_that_is_never_synced_puts_nothing_aside(tmp_path: Path) -> None:
    with recording(tmp_path, fsync="never") as (recorder, _):
        until(recorder._memory.remembered.is_set)
        assert not recorder._memory.put_aside()
    assert not (tmp_path / recall.LATEST).exists()

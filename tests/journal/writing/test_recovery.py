"""What is left after a crash: everything that was acknowledged, and nothing that is not whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.forgetful_disk import DirectDisk, Disk, PowerCut
from tests.journal.rows import rows, told
from zenlake.errors import JournalCorrupt, JournalError
from zenlake.journal import Journal
from zenlake.journal.writing.log import Log, LogLimits
from zenlake.journal.writing.retention import JournalRetention

KEYS = ["a", "b/c", "b/d"]
each_kind = pytest.mark.parametrize("kind", [Disk, DirectDisk])
Row = tuple[int, str, bytes]


class History:
    """A writer with a memory of its own: what it wrote, in the order of the offsets."""

    def __init__(self, disk: Disk, limits: LogLimits | None = None, partitions: int = 1) -> None:
        self.disk = disk
        self.limits = limits or LogLimits()
        self.count = partitions
        self.written: list[list[tuple[str, bytes]]] = [[] for _ in range(partitions)]
        self.now = 1000.0
        self.serial = 0

    def open(self) -> None:
        self.log = Log(self.disk, partitions=self.count, limits=self.limits, clock=lambda: self.now)

    def write(self, partition: int, count: int) -> None:
        keys = [KEYS[(self.serial + i) % len(KEYS)] for i in range(count)]
        batch = rows(keys, start=self.serial, source=(b"\x07", 1))
        values = [str(self.serial + i).encode() for i in range(count)]
        self.serial += count
        # Before the call: a block may survive though the call did not return.
        self.written[partition] += zip(keys, values, strict=True)
        self.log.write(partition, batch)

    def promised(self) -> tuple[int, ...]:
        """What anybody could have read from outside."""
        try:
            return Journal(self.disk, "disk").watermark().offsets
        except JournalError:
            return (0,) * self.count

    def check(self, promised: tuple[int, ...]) -> None:
        """Compare the recovered journal with the memory, and forget what it lost."""
        journal = Journal(self.disk, "disk")
        assert journal.watermark().offsets == tuple(p.next for p in self.log.partitions)
        listed = {s.path for p in range(self.count) for s in journal.segments(p)}
        lying = {name for name in self.disk.names if name.startswith("p")}
        assert {name for name in lying if "manifest" not in name} == listed
        assert not [name for name in self.disk.names if name.endswith(".tmp")]
        for partition in range(self.count):
            found = told(journal.scan(partition=partition))
            earliest = journal.earliest()[partition]
            end = self.log.partitions[partition].next
            assert end >= promised[partition]
            assert [offset for offset, _, _ in found] == list(range(earliest, end))
            assert [row[1:] for row in found] == self.written[partition][earliest:end]
            del self.written[partition][end:]


def survivors(disk: Disk, seeds: int) -> Iterator[Disk]:
    yield disk.killed()
    yield disk.failed(None)
    for seed in range(seeds):
        yield disk.failed(random.Random(seed))


def crash_everywhere(
    kind: type[Disk], play: Callable[[History], None], limits: LogLimits, seeds: int
) -> int:
    """Play, with the power failing in each operation in turn; recover, check, go on."""
    point = 0
    while True:
        disk = kind()
        disk.fuse = point
        history = History(disk, limits, partitions=2)
        try:
            play(history)
        except PowerCut:
            pass
        else:
            return point
        promised = history.promised()
        for survivor in survivors(disk, seeds):
            after = History(survivor, limits, partitions=2)
            after.written = [list(each) for each in history.written]
            after.serial = history.serial
            after.open()
            after.check(promised)
            # What it found is now promised, and must outlive a loss of power that comes next.
            promised_now = after.promised()
            after.disk = survivor.failed(None)
            after.open()
            after.check(promised_now)
            after.write(0, 2)
            after.log.commit()
            after.check(after.log.watermark.offsets)
        point += 1


@pytest.mark.slow
@each_kind
def test_the_power_may_fail_in_every_operation(kind: type[Disk]) -> None:
    def play(history: History) -> None:
        history.open()
        for turn in range(3):
            history.write(0, 3)
            history.write(turn % 2, 1)
            history.log.commit()
            history.log.tend()
            history.write(1, 1)
        history.log.close()

    # Segments of one or two blocks, and room for a few of them: all steps happen.
    limits = LogLimits(segment_bytes=6000, retention=JournalRetention(bytes=30_000))
    points = crash_everywhere(kind, play, limits, seeds=2)
    assert points > 50


@pytest.mark.slow
@each_kind
def test_the_power_may_fail_while_segments_are_let_go(kind: type[Disk]) -> None:
    def play(history: History) -> None:
        history.open()
        for _ in range(4):
            history.write(0, 1)
            history.log.commit()
            history.log.tend()
        assert history.log.partitions[0].manifest.earliest > 0

    limits = LogLimits(segment_bytes=1, retention=JournalRetention(bytes=8_000))
    assert crash_everywhere(kind, play, limits, seeds=2) > 40


@each_kind
def test_the_power_may_fail_again_while_recovering(kind: type[Disk]) -> None:
    disk = kind()
    history = History(disk, LogLimits(segment_bytes=6000), partitions=2)
    history.open()
    for _ in range(3):
        history.write(0, 2)
        history.write(1, 1)
        history.log.commit()
    history.log.partitions[0].active.seal(history.now)  # not in the manifest yet
    promised = history.promised()
    for seed in range(4):
        first = disk.failed(random.Random(seed))
        for point in range(100):
            again = first.killed()
            again.fuse = point
            after = History(again, history.limits, partitions=2)
            after.written = [list(each) for each in history.written]
            try:
                after.open()
            except PowerCut:
                for survivor in survivors(again, 2):
                    last = History(survivor, history.limits, partitions=2)
                    last.written = [list(each) for each in history.written]
                    last.open()
                    last.check(promised)
            else:
                break


def _torn(kind: type[Disk], cut: Callable[[bytes, int], bytes], every: int) -> None:
    disk = kind()
    history = History(disk)
    history.open()
    ends = []
    for _ in range(2):
        history.write(0, 2)
        ends.append(history.log.partitions[0].active.size)
    path = history.log.partitions[0].active.path
    whole = disk.read(path)
    assert len(whole) == ends[-1]
    for size in range(0, len(whole) + 1, every):
        survivor = disk.killed()
        left = cut(whole, size)
        survivor.names[path].seen[:] = left
        after = History(survivor)
        after.written = [list(each) for each in history.written]
        after.open()
        kept = sum(left[:end] == whole[:end] for end in ends)
        assert after.log.partitions[0].next == 2 * kept, size
        if size % 16 == 0:
            after.check((0,))
            after.write(0, 1)
            after.log.commit()
            after.check((2 * kept + 1,))


@each_kind
def test_a_tail_torn_at_any_byte_loses_only_the_block_it_is_in(kind: type[Disk]) -> None:
    _torn(kind, lambda whole, size: whole[:size], 1)


@each_kind
def test_a_tail_of_zeros_from_any_byte_on_is_cut(kind: type[Disk]) -> None:
    _torn(kind, lambda whole, size: whole[:size] + bytes(len(whole) - size), 7)


def test_rows_after_a_damaged_block_are_not_given_the_wrong_place() -> None:
    disk = Disk()
    history = History(disk)
    history.open()
    for _ in range(3):
        history.write(0, 2)
    active = history.log.partitions[0].active
    second = active.blocks[1]
    disk.names[active.path].seen[second.position + 100] ^= 1
    after = History(disk.killed())
    after.written = history.written
    after.open()
    assert after.log.partitions[0].next == 2
    assert after.log.partitions[0].cut == active.size - second.position
    after.check((0,))


def test_damage_below_the_watermark_names_file_block_and_offset() -> None:
    disk = Disk()
    history = History(disk)
    history.open()
    for _ in range(3):
        history.write(0, 2)
        history.log.commit()
    active = history.log.partitions[0].active
    second = active.blocks[1]
    disk.names[active.path].seen[second.position + 100] ^= 1
    before = disk.killed()
    wanted = rf"p0000/0{{20}}\.open is damaged in block 1 at byte {second.position}: .*checksum"
    with pytest.raises(JournalCorrupt, match=wanted) as error:
        History(before).open()
    assert "Offsets 2 to 6 were acknowledged" in str(error.value)
    # Nothing was touched: the damage can still be looked at.
    assert {name: bytes(inode.seen) for name, inode in before.names.items()} == {
        name: bytes(inode.seen) for name, inode in disk.names.items()
    }
    with pytest.raises(JournalCorrupt, match="is damaged in block 1 at byte"):
        told(Journal(before, "disk").scan())
    del disk.names[active.path]
    with pytest.raises(JournalCorrupt, match="is missing: offsets 0 to 6 were acknowledged"):
        History(disk.killed()).open()


@pytest.mark.parametrize("name", ["journal.json", "p0000/manifest.json"])
def test_a_page_that_is_damaged_is_named(name: str) -> None:
    disk = Disk()
    history = History(disk, LogLimits(segment_bytes=1))
    history.open()
    history.write(0, 2)
    history.log.commit()
    history.log.tend()
    page = disk.names[name].seen
    for at in range(len(page)):
        worse = disk.killed()
        worse.names[name].seen[at] ^= 0x20
        if name == "journal.json" and at > 10:
            continue  # its words are for people; a journal by another name is still one
        with pytest.raises(JournalError, match=name.rpartition("/")[2] + "|format"):
            History(worse).open()


def test_without_fsync_a_loss_of_power_costs_rows_and_not_the_journal() -> None:
    disk = Disk()
    log = Log(disk, durable=False)
    log.write(0, rows(["a", "b"]))
    assert log.commit().offsets == (2,)
    assert not log.watermark.synced
    for seed in range(20):
        again = Log(disk.failed(random.Random(seed)), durable=False)
        assert again.partitions[0].next in (0, 2)
    assert Log(disk.killed(), durable=False).partitions[0].next == 2


def test_sequence_numbers_of_rows_found_beyond_the_watermark_are_known() -> None:
    disk = Disk()
    history = History(disk)
    history.open()
    history.write(0, 2)
    history.log.commit()
    history.write(0, 3)
    assert Log(disk.killed()).watermark.sources == {"7:1": 4}


Step = tuple[str, int, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 1), st.integers(1, 4)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
        st.tuples(st.just("tend"), st.just(0), st.integers(0, 50)),
        st.tuples(st.just("cut"), st.integers(0, 12), st.integers(0, 1 << 16)),
        st.tuples(st.just("kill"), st.just(0), st.just(0)),
        st.tuples(st.just("close"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from([Disk, DirectDisk]),
    steps=STEPS,
    segment=st.sampled_from([1, 5000, 12_000]),
    keep=st.sampled_from([None, 25_000]),
)
def test_a_journal_is_a_list_that_loses_only_its_unacknowledged_end(
    kind: type[Disk], steps: list[Step], segment: int, keep: int | None
) -> None:
    limits = LogLimits(
        segment_bytes=segment, segment_age=100.0, retention=JournalRetention(bytes=keep)
    )
    history = History(kind(), limits, partitions=2)
    history.open()
    for name, first, second in steps:
        if name == "write":
            history.write(first, second)
        elif name == "commit":
            assert history.log.commit().offsets == tuple(map(len, history.written))
        elif name == "tend":
            history.now += second
            history.log.tend()
        elif name == "close":
            history.log.commit()
            history.log.close()
            history.open()
        else:
            promised = history.promised()
            if name == "cut":
                history.disk.fuse = first
                try:
                    for _ in range(6):
                        history.write(0, 1)
                        history.log.commit()
                        history.log.tend()
                        promised = history.promised()
                except PowerCut:
                    promised = history.promised()
                history.disk = history.disk.failed(random.Random(second) if second else None)
            else:
                history.disk = history.disk.killed()
            history.open()
            history.check(promised)
    history.log.commit()
    history.check(history.log.watermark.offsets)


def test_a_listed_segment_that_is_missing_is_named() -> None:
    disk = Disk()
    history = History(disk, LogLimits(segment_bytes=1))
    history.open()
    history.write(0, 2)
    history.log.commit()
    history.log.tend()
    del disk.names["p0000/00000000000000000000.arrow"]
    with pytest.raises(JournalCorrupt, match=r"0\.arrow is missing: it held offsets 0 to 2"):
        History(disk).open()
    with pytest.raises(JournalCorrupt, match=r"0\.arrow is missing: it holds offsets 0 to 2"):
        told(Journal(disk, "disk").scan())

from __future__ import annotations

import contextlib
import errno
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.forgetful_disk import DirectDisk, Disk, DiskPages, Inode, PowerCut
from zenlake.journal.disk.direct import PAGE, STAGE, DirectFile

SIZES = st.sampled_from(
    [0, 1, 100, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, STAGE - 1, STAGE, STAGE + 3]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(SIZES, min_size=1, max_size=3)),
        st.tuples(st.just("truncate"), st.integers(0, 3 * PAGE)),
        st.tuples(st.sampled_from(["fsync", "reopen"]), st.just(0)),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_whole_pages_from_aligned_memory_make_the_bytes_that_were_written(
    steps: list[tuple[str, object]],
) -> None:
    """The pages that it writes to refuse everything else, as a disk does."""
    disk, inode = Disk(), Inode()
    file = DirectFile(DiskPages(disk, inode))
    wanted = b""
    for number, (step, value) in enumerate(steps):
        if isinstance(value, list):
            parts = [bytes([number + 1]) * size for size in value]
            file.write(parts)
            wanted += b"".join(parts)
        elif step == "truncate":
            assert isinstance(value, int)
            wanted = wanted[:value]
            file.truncate(len(wanted))
        elif step == "fsync":
            file.fsync()
            assert inode.safe == wanted
        else:
            file.close()
            file = DirectFile(DiskPages(disk, inode))
        assert inode.seen == wanted
    file.close()


def test_an_error_of_the_disk_is_told_though_the_file_is_closed_meanwhile() -> None:
    inode = Inode()
    file = DirectFile(DiskPages(Disk(capacity=0), inode))
    with pytest.raises(OSError, match="No space left") as error, contextlib.closing(file):
        file.write([b"x" * 10])
    assert error.value.errno == errno.ENOSPC


def test_after_a_write_that_found_no_room_it_goes_on_where_it_is_cut() -> None:
    inode = Inode()
    disk = Disk()
    file = DirectFile(DiskPages(disk, inode))
    file.write([b"a" * 5000])
    # The double counts files with names only.
    disk.names["f"] = inode
    disk.capacity = 2 * PAGE
    with pytest.raises(OSError, match="No space left"):
        file.write([b"b" * 5 * PAGE])
    file.truncate(5000)
    disk.capacity = None
    file.write([b"c" * 10])
    assert inode.seen == b"a" * 5000 + b"c" * 10


def test_synced_bytes_outlive_every_loss_of_power_while_their_page_is_written_again() -> None:
    for fuse in range(8):
        disk = DirectDisk()
        file = disk.create("f")
        disk.sync("")
        file.write([b"a" * 5000])
        file.fsync()
        disk.fuse = fuse
        with contextlib.suppress(PowerCut):
            for _ in range(4):
                file.write([b"b" * 100])
        disk.fuse = None
        failed = [disk.failed(random.Random(seed)) for seed in range(20)]
        for survivor in (disk.killed(), disk.failed(None), *failed):
            assert survivor.read("f")[:5000] == b"a" * 5000

"""Errors that pass: the journal waits or drops, says so, and goes on by itself."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from pathlib import Path
from typing import Literal

import pytest

from tests.journal.forgetful_disk import Disk
from tests.journal.rows import rows, told
from tests.waiting import SECONDS, until
from zenlake.errors import JournalError
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.disk.watermark import WATERMARK
from zenlake.journal.verify import verify


@pytest.mark.parametrize("operation", ["write", "create", "sync"])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
@pytest.mark.parametrize("policy", ["block", "drop"])
def test_the_writer_goes_on_when_it_is_over(
    operation: str, number: int, policy: Literal["block", "drop"]
) -> None:
    if operation == "sync" and number == errno.EIO:
        return  # a failed fsync does not pass
    disk = Disk()
    writer = JournalWriter.open("disk", files=disk, fsync="1ms", on_full=policy, segment_bytes=2000)
    writer.append(0, rows(["a"] * 3))
    writer.flush(SECONDS)
    disk.suffering[operation] = number
    start = 3
    # Some operations come only with a new segment.
    while not writer.stats.stuck:
        writer.append(0, rows(["a"] * 3, start=start))
        start += 3
        until(lambda: writer.stats.stuck or not writer.stats.queued_bytes)
    assert os.strerror(number) in writer.stats.stuck
    assert writer.stats.retries
    disk.suffering.clear()
    writer.append(0, rows(["b"], start=start))
    until(lambda: not writer.stats.stuck)
    writer.flush(SECONDS)
    writer.close()
    found = told(Journal(disk, "disk").scan())
    assert [offset for offset, _, _ in found] == list(range(start + 1 - writer.stats.dropped_rows))
    assert found[-1][1:] == ("b", str(start).encode())
    if policy == "block":
        assert writer.stats.dropped_rows == 0
    assert verify(Journal(disk, "disk")).problems == []


def test_a_process_without_descriptors_goes_on_recording(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    with JournalWriter.open(tmp_path / "j", fsync="1ms") as writer:
        writer.append(0, rows(["a"] * 3))
        writer.flush(SECONDS)
        try:
            # Above all that this process has open already: tests before may have left much.
            most = max(int(name) for name in os.listdir("/proc/self/fd")) + 16
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, most), hard))
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.open(os.devnull, os.O_RDONLY))
            assert 0 < len(taken) <= most
            for start in range(3, 30, 3):
                writer.append(0, rows(["a"] * 3, start=start))
                writer.flush(SECONDS)
            assert writer.watermark.offsets == (30,)
            assert not writer.stats.stuck
        finally:
            for fd in taken:
                os.close(fd)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(told(Journal.open(tmp_path / "j").scan())) == 30


def test_an_error_that_does_not_pass_ends_the_writer_and_says_why() -> None:
    disk = Disk()
    writer = JournalWriter.open("disk", files=disk, fsync="1ms")
    disk.suffering["write"] = errno.EPERM
    writer.append(0, rows(["a"]))
    with pytest.raises(JournalError, match="cannot be written"):
        writer.flush(SECONDS)
    with pytest.raises(JournalError):
        writer.close()


@pytest.mark.parametrize("page", [None, b"", b'{"offs', b"\0" * 40])
def test_a_watermark_that_is_missing_or_torn_is_seen_and_made_again(
    tmp_path: Path, page: bytes | None
) -> None:
    folder = tmp_path / "j"
    with JournalWriter.open(folder, fsync="batch", segment_bytes=1) as writer:
        for start in range(3):
            writer.append(0, rows(["a"], start=start))
            writer.flush(SECONDS)
        until(lambda: writer.stats.sealed >= 2)
        writer.append(0, rows(["a"], start=3))
    if page is None:
        (folder / WATERMARK).unlink()
    else:
        (folder / WATERMARK).write_bytes(page)
    with Journal.open(folder) as journal:
        (problem,) = verify(journal).problems
        assert WATERMARK in problem
        assert "made again from the segments" in problem
    JournalWriter.open(folder).close()
    with Journal.open(folder) as journal:
        assert journal.watermark().offsets == (4,)
        assert verify(journal).problems == []


def test_nobody_else_may_look_into_a_journal(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path / "j") as writer:
        writer.append(0, rows(["a"]))
    for folder in (tmp_path / "j", *(p for p in (tmp_path / "j").iterdir() if p.is_dir())):
        assert folder.stat().st_mode & 0o077 == 0

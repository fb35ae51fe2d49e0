"""Times of the future and disks that take nothing, at a recorder that has no router."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.journal.recording import recording, until_heard, until_rows
from tests.waiting import until
from zenlake import Timestamp
from zenlake.errors import JournalError
from zenlake.journal.disk.files import File, LocalFiles
from zenlake.journal.ingest.future import latest_believed
from zenlake.recorded.time_bounds import HLC_BIAS

FAR = Timestamp.parse_rfc3339("2100-01-01T00:00:00Z/1234")


def latest(session: Any, key: str) -> list[bytes]:
    return [bytes(reply.ok.payload) for reply in session.get(key, timeout=5) if reply.ok]


def test_a_time_of_the_year_2100_does_not_stay_the_latest_and_is_counted(tmp_path: Path) -> None:
    with recording(tmp_path / "j") as (recorder, other):
        publisher = other.declare_publisher("r/a")
        until_heard(publisher)
        publisher.put("of the future", timestamp=FAR)
        publisher.put("of now")
        until_rows(recorder, 2)
        assert latest(other, "r/a") == [b"of now"]
        assert recorder.stats()["future"] == {"replaced": 1, "dropped": 0}
        other.delete("r/**", timestamp=FAR)
        until_rows(recorder, 3)
        publisher.put("after it")
        until_rows(recorder, 4)
        assert latest(other, "r/a") == [b"after it"]
        batches = list(recorder.journal.scan())
        now = time.time()
        for batch in batches:
            assert all(when.timestamp() < now + 1 for when in batch.column("time").to_pylist())


def test_half_a_second_ahead_is_believed_and_more_is_not() -> None:
    limit = latest_believed(10**9 * 1000) + HLC_BIAS
    assert (limit >> 32, limit & 0xFFFF_FFFF) == (1000, 1 << 31)


class SickFile:
    """A file that takes nothing while its disk is sick."""

    def __init__(self, disk: SickFiles, file: File) -> None:
        self._disk = disk
        self.truncate, self.fsync, self.close = file.truncate, file.fsync, file.close
        self._write = file.write

    def write(self, parts: Sequence[Any]) -> None:
        self._disk.check()
        self._write(parts)


class SickFiles(LocalFiles):
    """A disk of which every write fails while `number` is set."""

    number: int | None = None

    def check(self) -> None:
        if self.number is not None:
            raise OSError(self.number, "it is sick")

    def create(self, path: str) -> SickFile:
        self.check()
        return SickFile(self, super().create(path))

    def extend(self, path: str) -> SickFile:
        self.check()
        return SickFile(self, super().extend(path))


@pytest.fixture
def sick(tmp_path: Path) -> SickFiles:
    return SickFiles(tmp_path / "j")


@pytest.mark.parametrize(
    ("number", "why"), [(errno.EIO, "sick"), (errno.EMFILE, "sick"), (errno.ENOSPC, "full")]
)
def test_a_recorder_that_cannot_write_says_so_answers_for_no_keys_and_comes_back(
    tmp_path: Path, sick: SickFiles, number: int, why: str
) -> None:
    with recording(tmp_path / "j", files=sick) as (recorder, other):
        publisher = other.declare_publisher("r/a")
        until_heard(publisher)
        publisher.put("1")
        until_rows(recorder, 1)
        assert latest(other, "r/a") == [b"1"]
        sick.number = number
        publisher.put("2")
        until(lambda: why in str(recorder.stats()["stuck"]))
        until(lambda: latest(other, "r/a") == [])
        assert recorder.failure is None
        (told,) = latest(other, "@journal/j/stats")
        assert why.encode() in told
        sick.number = None
        until_rows(recorder, 2)
        until(lambda: latest(other, "r/a") == [b"2"])
        assert recorder.stats()["stuck"] == ""


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_closing_on_a_disk_that_takes_nothing_ends_and_says_what_is_lost(
    tmp_path: Path, sick: SickFiles, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zenlake.journal.recorder.CLOSE_SECONDS", 0.5)
    with recording(tmp_path / "j", files=sick) as (recorder, other):
        publisher = other.declare_publisher("r/a")
        until_heard(publisher)
        publisher.put("1")
        until_rows(recorder, 1)
        sick.number = number
        for n in range(5):
            publisher.put(str(n))
        until(lambda: recorder.stats()["stuck"])
        until(lambda: recorder.rows == 6)
        with pytest.raises(JournalError, match="5 rows that were heard are not on disk"):
            recorder.close()
        sick.number = None

"""Times of the future and disks that take nothing, at a recorder that has no router."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import zenlake
from tests.journal.recording import recording, until_heard, until_rows
from tests.waiting import SECONDS, until
from zenlake import Timestamp
from zenlake.errors import JournalError
from zenlake.journal.disk.files import File, LocalFiles
from zenlake.journal.ingest.future import latest_believed
from zenlake.journal.recorder import Recorder
from zenlake.journal.verify import verify
from zenlake.recorded.encoding import schema_bytes
from zenlake.recorded.time_bounds import HLC_BIAS

FAR = Timestamp.parse_rfc3339("2100-01-01T00:00:00Z/1234")


def latest(session: Any, key: str) -> list[bytes]:
    return [bytes(reply.ok.payload) for reply in session.get(key, timeout=SECONDS) if reply.ok]


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


#: Samples that somebody may send, each odd in one thing: what follows `r/`, and what is put there.
ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "a key of 60 kB": ("k" * 60_000, {"payload": b"x"}),
    "a key of many chunks": ("/".join("k" * 10_000), {"payload": b"x"}),
    "a key of control characters": ("\x1b[2J\u202e\n\0", {"payload": b"x"}),
    "a schema that is no UTF-8": (
        "s", {"payload": b"x", "encoding": zenlake.Encoding.from_wire(5, b"\xff\xfe\0")}
    ),
    "the longest schema": (
        "s", {"payload": b"x", "encoding": zenlake.Encoding.from_wire(0xFFFF, b"\xff" * 255)}
    ),
    "an encoding that nobody knows": (
        "s", {"payload": b"x", "encoding": zenlake.Encoding.from_wire(0xFFFE)}
    ),
    "an empty attachment": ("s", {"payload": b"x", "attachment": b""}),
    "an attachment of no bytes that mean anything": (
        "s", {"payload": b"x", "attachment": bytes(range(256)) * 300}
    ),
    # Of the size in which ROS 2 numbers samples: a number below zero, the largest, a wrong length.
    "a number of ROS below zero": ("s", {"payload": b"x", "attachment": b"\xff" * 33}),
    "a large number of ROS": (
        "s", {"payload": b"x", "attachment": b"\xff" * 7 + b"\x7f" + b"\0" * 8 + b"\x10" * 17}
    ),
    "the smallest number of ROS": (
        "s", {"payload": b"x", "attachment": b"\0" * 7 + b"\x80" + b"\0" * 8 + b"\x10" * 17}
    ),
    "an empty payload": ("s", {"payload": b""}),
    "a payload of 5 MB": ("s", {"payload": bytes(5_000_000)}),
    "the time zero": ("s", {"payload": b"x", "timestamp": Timestamp.parse_rfc3339(
        "1970-01-01T00:00:00Z/1")}),
}  # fmt: skip


def test_one_odd_value_costs_no_more_than_itself(tmp_path: Path) -> None:
    with recording(tmp_path / "j") as (recorder, other):
        publisher = other.declare_publisher("r/honest")
        until_heard(publisher)
        for number, (key, more) in enumerate(ODD.values()):
            # All of them in one frame, if there is time: a batch has honest rows beside odd ones.
            publisher.put(str(number))
            other.put(f"r/{key}", congestion_control=zenlake.CongestionControl.BLOCK, **more)
        publisher.put("last")
        honest = [*(b"%d" % n for n in range(len(ODD))), b"last"]
        until(lambda: values_of(recorder, "r/honest") == honest, "each honest value is there")
        assert recorder.failure is None
        assert recorder.stats()["dropped"] == 0
        assert latest(other, "r/honest") == [b"last"]
        found = {key: more["payload"] for key, more in ODD.values()}
        for key, payload in found.items():
            if key != "s":
                assert latest(other, f"r/{key}") == [payload]
    # What is written can be read and recorded further.
    verdict = verify(recorder.journal)
    assert (verdict.problems, verdict.rows) == ([], 2 * len(ODD) + 1)
    rows = [row for batch in recorder.journal.scan() for row in batch.to_pylist()]
    assert [row["value"] for row in rows if row["key"] != "r/honest"] == [
        more["payload"] for _, more in ODD.values()
    ]
    assert [row["attachment"] for row in rows if row["key"] == "r/s"] == [
        more.get("attachment") for key, more in ODD.values() if key == "s"
    ]
    schemas = [row["encoding_schema"] for row in rows if row["key"] == "r/s"]
    assert [schema_bytes(schema) for schema in schemas[:2]] == [b"\xff\xfe\0", b"\xff" * 255]
    with recording(tmp_path / "j") as (recorder, other):
        other.put("r/honest", "again")
        until(lambda: latest(other, "r/honest") == [b"again"])
        assert recorder.failure is None


def values_of(recorder: Recorder, key: str) -> list[bytes]:
    rows = [row for batch in recorder.journal.scan() for row in batch.to_pylist()]
    return [row["value"] for row in rows if row["key"] == key]

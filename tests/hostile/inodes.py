"""What is written to a disk that has no inode left: a real one, in a mount namespace.

    unshare -rm python -m tests.hostile.inodes storage|opening|journal|lake FOLDER

Mounts a small tmpfs at FOLDER, takes all its inodes, looks what the writers say, and gives the
inodes back. Ends with 0 if all that was acknowledged is there in the end.
"""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import zenlake
from tests.api.sessions import listening
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from tests.storage_manager.test_storages import manager, values
from tests.waiting import until
from zenlake.config.model_services import JournalService
from zenlake.engine.services import service_troubles
from zenlake.errors import LocalError
from zenlake.journal.reading.reader import Journal
from zenlake.keys import KeyExpr
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.maintain.status_file import read_status
from zenlake.lake.service.loop import Loop
from zenlake.supervise.recording import Recording

INODES = 120
FULL = "No space left on device"


class SmallDisk:
    """A tmpfs with few inodes, and files that take what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._taken = folder / "taken"
        options = f"nr_inodes={INODES},size=64m"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=True)
        self._taken.mkdir()

    def take_all(self) -> None:
        """Leave no inode; there are bytes enough."""
        for number in range(INODES):
            try:
                (self._taken / str(number)).touch()
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return
        raise AssertionError("the disk has more inodes than it was made with")

    def give_back(self) -> None:
        for file in self._taken.iterdir():
            file.unlink()


class Warned(logging.Handler):
    """What storages warn of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        logging.getLogger("zenlake.storage_manager").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def acknowledged(session: zenlake.Session, key: str) -> bool:
    """Whether a value of a key is kept for good."""
    try:
        session.put_acknowledged(key, key, timeout=20)
    except (LocalError, zenlake.ZError):
        return False
    return True


def storage(disk: SmallDisk) -> None:
    """A storage of the volume `fs`, which makes a file for each key."""
    plugins = manager(s={"key_expr": "s/**", "volume": {"id": "fs", "dir": str(disk.folder / "s")}})
    kept = []
    warned = Warned()
    with listening(mode='"router"', plugins=plugins) as router:
        kept += [key for key in ("s/a", "s/b") if acknowledged(router, key)]
        assert len(kept) == 2
        disk.take_all()
        assert not acknowledged(router, "s/c")
        router.put("s/d", "s/d")
        (trouble,) = service_troubles(router.runtime)
        assert "storage 's' cannot be written" in trouble
        assert FULL in trouble
        disk.give_back()
        until(lambda: not service_troubles(router.runtime))
        assert len([line for line in warned.lines if "goes on trying" in line]) == 1
        assert acknowledged(router, "s/e")
        kept += ["s/c", "s/d", "s/e"]  # what waited is written, too
    with listening(mode='"router"', plugins=plugins) as router:
        assert values(router, "s/**") == {key: key for key in kept}


def opening(disk: SmallDisk) -> None:
    """Storages that find no inode when they are opened: they are opened when there is one."""
    storages = {
        kind: {"key_expr": f"{kind}/**", "volume": {"id": kind, "dir": str(disk.folder / kind)}}
        for kind in ("fs", "sqlite")
    }
    (disk.folder / "sqlite").mkdir()  # so that it is SQLite that finds none
    disk.take_all()
    with listening(mode='"router"', plugins=manager(**storages)) as router:
        first, second = service_troubles(router.runtime)
        assert f"storage 'fs' is not open: {disk.folder}/fs cannot be written: {FULL}" in first
        assert "storage 'sqlite' is not open" in second
        assert not acknowledged(router, "fs/a")
        disk.give_back()
        until(lambda: not service_troubles(router.runtime))
        assert acknowledged(router, "fs/b")
        assert acknowledged(router, "sqlite/b")


def journal(disk: SmallDisk) -> None:
    """A recorder whose segments end after each row, so that each row needs new files."""
    folder = disk.folder / "j"
    service = JournalService(
        name=KeyExpr("here"), dir=str(folder), key_exprs=(KeyExpr("r/**"),), segment_bytes=1
    )
    kept = []
    with listening(mode='"router"') as router, Recording(router, (service,)) as recording:
        kept += [key for key in ("r/a", "r/b") if acknowledged(router, key)]
        assert len(kept) == 2
        disk.take_all()
        for number in range(3):  # the first of them may find a segment that is open
            if acknowledged(router, f"r/{number}"):
                kept.append(f"r/{number}")
        until(lambda: bool(recording.troubles()))
        (trouble,) = service_troubles(router.runtime)
        assert "journal 'here'" in trouble
        assert "full" in trouble or FULL in trouble
        disk.give_back()
        until(lambda: not recording.troubles())
        until(lambda: acknowledged(router, "r/z"))
        kept.append("r/z")
    with Journal.open(str(folder)) as opened:
        keys = [key for batch in opened.scan() for key in batch.column("key").to_pylist()]
    assert set(kept) <= set(keys)


def lake(disk: SmallDisk) -> None:
    """A lake, whose commits are files; its journal lies elsewhere."""
    home = disk.folder.parent / "journal"
    write(home, [Row("a", b"1", 1)])
    where = str(disk.folder / "lake")
    told: list[str] = []
    pipeline = Pipeline(where, str(home), Here(), LakeConfig(families=False))
    loop = Loop(pipeline, Here(), complain=told.append, every=0.05)
    clock = iter(range(10**6))
    until(lambda: (loop.turn(float(next(clock))), loop.done.rows == 1)[1])
    disk.take_all()
    write(home, [Row("a", b"2", 2), Row("b", b"3", 3)])
    until(lambda: (loop.turn(float(next(clock))), bool(told))[1])
    assert "the disk is full" in told[0]

    def said() -> bool:
        loop.turn(float(next(clock)))
        status = read_status(where)
        assert status is not None
        return status.state == "retrying" and "the disk is full" in (status.error or "")

    until(said)
    disk.give_back()
    until(lambda: (loop.turn(float(next(clock))), loop.done.behind == 0 and loop.done.rows == 3)[1])
    loop.end(float(next(clock)))
    assert sorted(row["value"] for row in rows_of(where, "samples")) == [b"1", b"2", b"3"]
    latest = {row["key"]: row["value"] for row in rows_of(where, "latest")}
    assert latest == {"a": b"2", "b": b"3"}


if __name__ == "__main__":
    writers = {"storage": storage, "opening": opening, "journal": journal, "lake": lake}
    writers[sys.argv[1]](SmallDisk(Path(sys.argv[2])))
    os._exit(0)  # threads of other libraries may end it otherwise

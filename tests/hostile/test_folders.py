"""Folders of what was recorded, stored and logged are for their owner, whoever makes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from zenlake.supervise.logfile import LogFile
from zenlake.supervise.readers import write_readers
from zenlake.volumes.fs import Files


def log_into(folder: Path) -> None:
    file = LogFile(folder / "router.log")
    file.write(b"a line\n")
    file.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: write_readers(folder, {}),
        log_into,
        lambda folder: Files("demo", {"dir": str(folder)}).close(),
    ],
    ids=["journal", "log", "storage"],
)
def test_nobody_else_on_the_machine_reads_a_folder_that_was_made(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    make(folder)
    assert folder.stat().st_mode & 0o077 == 0

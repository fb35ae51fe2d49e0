"""A disk without a free inode, which the system calls full though it has room: a real one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


# Each is some seconds of retries.
JOURNAL = pytest.mark.nightly(day="journal/writing/test_full.py")
LAKE = pytest.mark.nightly(day="lake/service/test_loop.py")


@pytest.mark.parametrize(
    "writer",
    [
        "storage",
        "opening",
        pytest.param("journal", marks=JOURNAL),
        pytest.param("lake", marks=LAKE),
    ],
)
def test_nothing_acknowledged_is_lost_without_inodes_and_it_goes_on_when_there_are_some(
    writer: str, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    may = subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(disk)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert may.returncode == 0, f"this needs a machine on which disks may be mounted: {may.stderr}"
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-W", "ignore", "-m", "tests.hostile.inodes", writer,
         str(disk)],
        cwd=ROOT, capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr

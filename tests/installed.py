"""Programs of this machine, and of Debian packages that tests install where they may.

They are found on the PATH as it was at first: tests of Spark put a folder of links, made once, in
its place, where what is installed later is not.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

#: For the package manager. Services that it installs are not started.
ENVIRONMENT = os.environ | {"RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}


def which(program: str) -> str | None:
    """Where a program is, or None."""
    return shutil.which(program, path=ENVIRONMENT["PATH"])


def installed(packages: str, find: Callable[[], str | None]) -> str:
    """The path of a program of Debian packages, installed if need be and possible."""
    found = find()
    why = ""
    if found is None and os.getuid() == 0 and which("apt-get"):
        with Path("/tmp/zenlake-apt.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (found := find()) is None:
                # The lists of a fresh machine are old or not there, and some of its other sources
                # may be out of reach: only the installation itself tells whether it worked.
                _apt("update")
                why = _apt("install", "-y", "--no-install-recommends", *packages.split())
                found = find()
    if found is None:
        pytest.skip(f"a program is missing: apt-get install {packages} {why}")
    return found


def _apt(*words: str) -> str:
    """Run apt-get, when others who do are done; gives the last of what it said."""
    patient = ["-q", "-o", "DPkg::Lock::Timeout=240", "-o", "Acquire::Retries=3"]
    done = subprocess.run(
        ["apt-get", *patient, *words],
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
        timeout=540,
    )
    return f"{done.stdout}\n{done.stderr}"[-1000:]

"""The Python client of November 2018, from PyPI, in a folder and a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.programs import Program

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("0.1.0", "0.1.2")

#: 0.1.0 has room for two bytes of the process's number.
BEFORE = "import os, sys; sys.path.insert(0, {folder!r}); os.getpid = lambda: {pid}\n"


def folder(version: str) -> Path:
    """Where a version is installed; it is fetched once."""
    place = ROOT / "build" / "old-peers" / version
    if not (place / "zenoh" / "zenoh_api.py").exists():
        subprocess.run(
            [
                sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                "--disable-pip-version-check", "--target", str(place), f"zenoh=={version}",
            ],
            check=True,
        )  # fmt: skip
    return place


def script(version: str, code: str, pid: int = 4242) -> Program:
    """Run code on that version; what it prints is heard."""
    return Program("-c", BEFORE.format(folder=str(folder(version)), pid=pid) + code)

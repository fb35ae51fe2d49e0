"""Every volume, opened for a storage of the test's own."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.volumes import servers
from zenlake.storage_manager.service import checked_options
from zenlake.volumes import Volume, volume_class

#: The options of each volume, for what a folder's name tells apart.
OPTIONS: dict[str, Callable[[Path], dict[str, object]]] = {
    "sqlite": lambda folder: {"dir": str(folder), "fsync": False},
    "fs": lambda folder: {"dir": str(folder / "fs"), "fsync": False},
    "rocksdb": lambda folder: {"dir": str(folder), "fsync": False},
    "postgres": lambda folder: {"url": servers.postgres()[1], "schema": _told_apart(folder)},
    "redis": lambda folder: {"url": servers.redis()[1], "prefix": _told_apart(folder)},
    "s3": lambda folder: {
        "url": servers.s3()[1],
        "bucket": "zenlake",
        "access_key": "me",
        "secret_key": "hush",
        "prefix": _told_apart(folder),
    },
}

#: Those that lie on other machines.
REMOTE = ("postgres", "redis", "s3")
#: On a fresh machine the first who needs a server waits until its package is installed.
PATIENT = pytest.mark.timeout(900)
#: All of them, for tests to run with each.
KINDS = [pytest.param(kind, marks=PATIENT) if kind in REMOTE else kind for kind in OPTIONS]


def _told_apart(folder: Path) -> str:
    return f"t{zlib.crc32(str(folder).encode()):08x}"


def options_of(kind: str, folder: Path) -> dict[str, object]:
    """All options of a volume of a kind, in this folder or told apart by it."""
    return checked_options(kind, volume_class(kind), OPTIONS[kind](folder))


def opened(kind: str, folder: Path) -> Volume:
    """The volume of a kind, for the storage `s`."""
    return volume_class(kind)("s", options_of(kind, folder))
